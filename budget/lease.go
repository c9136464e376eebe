package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// leases are the scratch arenas of an open budget, by worker. A worker that is known at set-up has its
// own, by number ([Budget.Scratches]); a goroutine that comes and goes borrows those of one that is free
// ([Budget.Lease]). What was asked for by number is never lent. Its methods are for any goroutine.
type leases struct {
	budget    string // the plan's name
	left      *leftOpen
	published *published
	each      int // scratch arenas of a worker

	free chan int      // the workers whose scratch may be lent, each once; and some asked for by number since
	over chan struct{} // closed when no scratch will ever be free again

	mu      sync.Mutex // guards what follows
	workers []lendable
	fixed   int // workers asked for by number
	closed  bool
	kept    leaks // at Close: what was never given back
}

// lendable is a worker's scratch arenas; the state is what may be done with them.
type lendable struct {
	site   arena_c.Site // where they were taken
	stacks []*scope.Stack
	state  atomic.Int32 // changes under the lock, but from giving to free
}

const (
	scratchFree   = iota // in the channel
	scratchFixed         // asked for by number: a worker's, until Close
	scratchLent          // a goroutine's, until Release
	scratchGiving        // given back with scopes left open, whose finalizers run
)

func newLeases(plan Plan, scratches []*scope.Stack, left *leftOpen, published *published) *leases {
	n, each := plan.Scratch.Workers, plan.Scratch.Each
	p := &leases{budget: plan.Name, left: left, published: published, each: each,
		free: make(chan int, n), over: make(chan struct{}), workers: make([]lendable, n)}
	for i := range p.workers {
		stacks := scratches[i*each : (i+1)*each]
		for _, st := range stacks {
			st.Siblings = stacks
		}
		p.workers[i].stacks = stacks
		p.free <- n - 1 - i // those that are asked for by number count from 0
	}
	return p
}

func (p *leases) of(worker int) scope.Scratches {
	if worker < 0 || worker >= len(p.workers) {
		panic(fmt.Sprintf("budget: BUG: scratch of worker %d: plan %q has scratch for %d workers", worker, p.budget, len(p.workers)))
	}
	w := &p.workers[worker]
	if w.state.Load() != scratchFixed {
		p.fix(worker)
	}
	return w.stacks[0].Scratches()
}

func (p *leases) fix(worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.workers[worker]
	switch state := w.state.Load(); {
	case p.closed, state == scratchFixed:
	case state != scratchFree:
		panic(fmt.Sprintf("budget: BUG: the scratch of worker %d of plan %q is asked for by number while it is lent; "+
			"ask for them before the first Lease", worker, p.budget))
	default:
		w.state.Store(scratchFixed)
		if p.fixed++; p.fixed == len(p.workers) {
			close(p.over)
		}
	}
}

func (p *leases) lease(ctx context.Context) (Lease, error) {
	if len(p.workers) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no scratch; give it scratch.workers and scratch.size", p.budget))
	}
	for {
		if err := ctx.Err(); err != nil {
			return Lease{}, p.refusal(err)
		}
		select {
		case i := <-p.free:
			if l, ok := p.lend(i); ok {
				return l, nil
			}
		case <-ctx.Done():
			return Lease{}, p.refusal(ctx.Err())
		case <-p.over:
			return Lease{}, p.refusal(nil)
		}
	}
}

// lend is false for what was asked for by number since it came into the channel, and after Close.
func (p *leases) lend(i int) (l Lease, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.workers[i]
	if p.closed || w.state.Load() != scratchFree {
		return Lease{}, false
	}
	w.state.Store(scratchLent)
	w.site.Note()
	return Lease{w.stacks[0].Scratches(), p, i}, true
}

// refusal says why there is nothing to be had; ended is the end of the ctx of who waited, or nil.
func (p *leases) refusal(ended error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, n := p.budget, len(p.workers)
	switch {
	case p.closed:
		return fmt.Errorf("budget %q: Lease of scratch: %w", name, scope.ErrClosed)
	case ended == nil:
		return fmt.Errorf("budget %q: BUG: Lease of scratch: all %d were asked for by number and are never lent; "+
			"raise scratch.workers in the plan", name, n)
	}
	lent := 0
	for i := range p.workers {
		if state := p.workers[i].state.Load(); state == scratchLent || state == scratchGiving {
			lent++
		}
	}
	return fmt.Errorf("budget %q: Lease of scratch: %d of %d are lent, %d are asked for by number: %w", name, lent, n, p.fixed,
		ended)
}

// Lease is the scratch arenas of a worker, on loan: lease.Scratch(0).Do("reply", fn); see [scope.Scratches]
// for Scratch and Pick. It is a small value; the scratch arenas of the zero
// Lease are of no use.
type Lease struct {
	scope.Scratches
	from   *leases
	worker int
}

// Release gives the scratch arenas back: from now on they refuse. Scopes that were left open are closed,
// newest first, counted as leaks, and named in the error, which has the errors of their finalizers too.
// From a finalizer of the scratch arenas, or inside a Do of theirs, it is refused and changes
// nothing, and so is a second Release. After Close it is ErrClosed. The zero Lease has nothing to give:
// `defer lease.Release()` may stand before the look at Lease's error. Cost: O(finalizers); no Go
// allocation.
func (l Lease) Release() error {
	if l.from == nil {
		return nil
	}
	p := l.from
	if open, err := p.takeBack(l); !open {
		return err
	}
	defer p.release(l.worker) // also when a finalizer ends the goroutine
	return p.closeOpen(&p.workers[l.worker])
}

// takeBack ends the lending. open says that scopes were left open: the worker is giving until release.
func (p *leases) takeBack(l Lease) (open bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, name := &p.workers[l.worker], p.budget
	if p.closed {
		return false, fmt.Errorf("budget %q: Release of scratch: %w", name, scope.ErrClosed)
	}
	if w.state.Load() != scratchLent || w.stacks[0].Scratches() != l.Scratches {
		return false, fmt.Errorf("budget %q: BUG: Release of %s, which were given back before", name, w.name())
	}
	for _, st := range w.stacks {
		closing, inside := st.Busy()
		if closing {
			return false, fmt.Errorf("budget %q: BUG: Release of %s from a finalizer of %s", name, w.name(), st.Arena)
		}
		if inside {
			return false, fmt.Errorf("budget %q: BUG: Release of %s while a Do or a Make is at work on %s",
				name, w.name(), st.Arena)
		}
	}
	for _, st := range w.stacks {
		st.EndLending()
		open = open || st.Depth() > 0
	}
	if open {
		w.state.Store(scratchGiving)
		return true, nil
	}
	p.release(l.worker)
	return false, nil
}

// release lets the next one have the scratch arenas.
func (p *leases) release(i int) {
	p.publish(i)
	p.workers[i].state.Store(scratchFree) // from giving without the lock: Close holds it while it waits for this
	p.free <- i                           // there is room: no worker is in it twice
}

// publish is while nobody else can have the worker's scratch arenas.
func (p *leases) publish(worker int) {
	p.published.beside.Lock()
	defer p.published.beside.Unlock()
	for i := worker * p.each; i < (worker+1)*p.each; i++ {
		p.published.scratch[i].publishChanged()
	}
}

// closeOpen closes what was left open, the last scratch arena first.
func (p *leases) closeOpen(w *lendable) error {
	var errs []error
	insist(len(w.stacks), func(i int) {
		if st := w.stacks[len(w.stacks)-1-i]; st.Depth() > 0 {
			p.left.add(st, 0)
			errs = append(errs, st.Left(0), st.CloseTo(0))
		}
	})
	return errors.Join(errs...)
}

func (w *lendable) name() string {
	var names []string
	for _, st := range w.stacks {
		names = append(names, st.Arena)
	}
	return strings.Join(names, " and ")
}

// close ends lending for good. It waits for a Release whose finalizers run until ctx ends; then, and when finalizers run on
// scratch that is lent, it says on which scratch arenas, and nothing has changed. Who would take or give meanwhile waits too.
func (p *leases) close(ctx context.Context) (busy string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept leaks
	for i := range p.workers {
		w := &p.workers[i]
		for w.state.Load() == scratchGiving {
			select {
			case <-ctx.Done():
				return w.name()
			case <-time.After(closeWait / 100):
			}
		}
		if w.state.Load() != scratchLent {
			continue
		}
		for _, st := range w.stacks {
			if closing, _ := st.Busy(); closing {
				return w.name()
			}
		}
		kept.add(w.name(), w.site.Tell(w.name()+" taken"))
	}
	p.kept, p.closed = kept, true
	if p.fixed < len(p.workers) { // else it is closed
		close(p.over)
	}
	return ""
}

// keptError names those that were never given back.
func (p *leases) keptError() error {
	return p.kept.err(fmt.Sprintf("budget %q: never given back: ", p.budget), "; call Release where Lease gave them")
}

// isFixed says whether only the goroutine that drives the program, or a worker that it knows, uses the scratch arena.
func (p *leases) isFixed(index int) bool {
	return p.workers[index/p.each].state.Load() == scratchFixed
}

// closeWait is for workers on their way out: one that finds a region shut is inside for a moment.
const closeWait = 10 * time.Millisecond
