package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// leases are the pairs of scratch arenas of an open budget. A worker that is known at set-up has its own
// pair, by number ([Budget.Scratches]); a goroutine that comes and goes borrows one ([Budget.Lease]). A
// pair that was asked for by number is never lent. Its methods are for any goroutine.
type leases struct {
	b    *Budget
	free chan int      // the pairs that may be lent, each once; and some that were asked for by number since
	over chan struct{} // closed when no pair will ever be free again

	mu     sync.Mutex // guards what follows
	pairs  []pair
	fixed  int // pairs asked for by number
	closed bool
	kept   leaks // at Close: pairs that were never given back
}

// pair is two scratch arenas; the state is what may be done with them.
type pair struct {
	site          arena_c.Site // where it was taken
	first, second *scope.Stack
	state         atomic.Int32 // changes under the lock, but from giving to free
	lending       uint64       // number of the one that runs, or of the next
}

const (
	pairFree   = iota // in the channel
	pairFixed         // asked for by number: a worker's, until Close
	pairLent          // a goroutine's, until Release
	pairGiving        // given back with scopes left open, whose finalizers run
)

func newLeases(b *Budget) *leases {
	n := b.plan.Scratch.Workers
	p := &leases{b: b, free: make(chan int, n), over: make(chan struct{}), pairs: make([]pair, n)}
	for i := range p.pairs {
		p.pairs[i].first, p.pairs[i].second = b.scratches[planScratchEach*i], b.scratches[planScratchEach*i+1]
		p.free <- n - 1 - i // those that are asked for by number count from 0
	}
	return p
}

// Scratches is the pair of a worker. It stays that worker's until Close and is never lent. Out of the plan's range, or a pair
// that is lent at the moment, is a caller's bug and panics: ask at set-up, before the first Lease. Cost: an atomic
// read.
func (b *Budget) Scratches(worker int) scope.Scratches { return b.leases.of(worker) }

func (p *leases) of(worker int) scope.Scratches {
	if worker < 0 || worker >= len(p.pairs) {
		panic(fmt.Sprintf("budget: BUG: scratch of worker %d: plan %q has scratch for %d workers", worker, p.b.plan.Name, len(p.pairs)))
	}
	q := &p.pairs[worker]
	if q.state.Load() != pairFixed {
		p.fix(worker)
	}
	return q.first.Scratches(q.second)
}

func (p *leases) fix(worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.pairs[worker]
	switch state := q.state.Load(); {
	case p.closed, state == pairFixed:
	case state != pairFree:
		panic(fmt.Sprintf("budget: BUG: the scratch of worker %d of plan %q is asked for by number while it is lent; "+
			"ask for them before the first Lease", worker, p.b.plan.Name))
	default:
		q.state.Store(pairFixed)
		if p.fixed++; p.fixed == len(p.pairs) {
			close(p.over)
		}
	}
}

// Lease lends a pair that is free, and waits for one until ctx ends; then the error says how many are lent. Who waits is
// served in turn. After Close it is ErrClosed, also for those who wait. Without scratch arenas in the plan it panics. Cost: that
// of a channel and a lock; no Go allocation.
func (b *Budget) Lease(ctx context.Context) (Lease, error) { return b.leases.lease(ctx) }

func (p *leases) lease(ctx context.Context) (Lease, error) {
	if len(p.pairs) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no scratch; give it scratch.workers and scratch.size", p.b.plan.Name))
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

// lend is false for a pair that was asked for by number since it came into the channel, and after Close.
func (p *leases) lend(i int) (l Lease, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.pairs[i]
	if p.closed || q.state.Load() != pairFree {
		return Lease{}, false
	}
	q.state.Store(pairLent)
	q.site.Note()
	return Lease{q.first.Scratches(q.second), p, i, q.lending}, true
}

// refusal says why there is no pair to be had; ended is the end of the ctx of who waited, or nil.
func (p *leases) refusal(ended error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, n := p.b.plan.Name, len(p.pairs)
	switch {
	case p.closed:
		return fmt.Errorf("budget %q: Lease of scratch: %w", name, ErrClosed)
	case ended == nil:
		return fmt.Errorf("budget %q: BUG: Lease of scratch: all %d were asked for by number and are never lent; "+
			"raise scratch.workers in the plan", name, n)
	}
	lent := 0
	for i := range p.pairs {
		if state := p.pairs[i].state.Load(); state == pairLent || state == pairGiving {
			lent++
		}
	}
	return fmt.Errorf("budget %q: Lease of scratch: %d of %d are lent, %d are asked for by number: %w", name, lent, n, p.fixed,
		ended)
}

// Lease is a pair of scratch arenas on loan. It is a small value; the scratch arenas of the zero Lease are of no use.
type Lease struct {
	scope.Scratches
	from    *leases
	pair    int
	lending uint64
}

// Release gives the pair back: from now on its scratch arenas refuse. Scopes that were left open are closed, newest first, counted as
// leaks, and named in the error, which has the errors of their finalizers too. From a finalizer of the scratch arenas, or inside
// a Do of theirs, it is refused and changes nothing, and so is a second Release. After Close it is ErrClosed. The
// zero Lease has nothing to give: `defer scratch arenas.Release()` may stand before the look at Lease's error. Cost: O(finalizers); no
// Go allocation.
func (l Lease) Release() error {
	if l.from == nil {
		return nil
	}
	p := l.from
	if open, err := p.takeBack(l); !open {
		return err
	}
	defer p.release(l.pair) // also when a finalizer ends the goroutine
	return p.closePair(&p.pairs[l.pair])
}

// takeBack ends the lending. open says that scopes were left open: the pair is giving until release.
func (p *leases) takeBack(l Lease) (open bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, name := &p.pairs[l.pair], p.b.plan.Name
	if p.closed {
		return false, fmt.Errorf("budget %q: Release of scratch: %w", name, ErrClosed)
	}
	if q.state.Load() != pairLent || q.lending != l.lending {
		return false, fmt.Errorf("budget %q: BUG: Release of %s, which were given back before", name, q.name())
	}
	for _, st := range [...]*scope.Stack{q.first, q.second} {
		closing, inside := st.Busy()
		if closing {
			return false, fmt.Errorf("budget %q: BUG: Release of %s from a finalizer of %s", name, q.name(), st.Arena)
		}
		if inside {
			return false, fmt.Errorf("budget %q: BUG: Release of %s while a Do or a Make is at work on %s",
				name, q.name(), st.Arena)
		}
	}
	q.lending++
	q.first.EndLending()
	q.second.EndLending()
	if q.first.Depth()+q.second.Depth() > 0 {
		q.state.Store(pairGiving)
		return true, nil
	}
	p.release(l.pair)
	return false, nil
}

// release lets the next one have the pair.
func (p *leases) release(i int) {
	q := &p.pairs[i]
	p.b.publishPair(i)
	q.state.Store(pairFree) // from giving without the lock: Close holds it while it waits for this
	p.free <- i             // there is room: no pair is in it twice
}

// closePair closes what was left open, the second scratch arena first.
func (p *leases) closePair(q *pair) error {
	var errs []error
	scratches := [...]*scope.Stack{q.second, q.first}
	insist(len(scratches), func(i int) {
		if st := scratches[i]; st.Depth() > 0 {
			p.b.countOpen(st, 0)
			errs = append(errs, st.Left(0), st.CloseTo(0))
		}
	})
	return errors.Join(errs...)
}

func (q *pair) name() string { return q.first.Arena + " and " + q.second.Arena }

// close ends lending for good. It waits for a Release whose finalizers run until ctx ends; then, and when finalizers run on
// a pair that is lent, it says on which scratch arenas, and nothing has changed. Who would take or give meanwhile waits too.
func (p *leases) close(ctx context.Context) (busy string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept leaks
	for i := range p.pairs {
		q := &p.pairs[i]
		for q.state.Load() == pairGiving {
			select {
			case <-ctx.Done():
				return q.name()
			case <-time.After(closeWait / 100):
			}
		}
		if q.state.Load() != pairLent {
			continue
		}
		for _, st := range [...]*scope.Stack{q.first, q.second} {
			if closing, _ := st.Busy(); closing {
				return q.name()
			}
		}
		kept.add(q.name(), q.site.Tell(q.name()+" taken"))
	}
	p.kept, p.closed = kept, true
	if p.fixed < len(p.pairs) { // else it is closed
		close(p.over)
	}
	return ""
}

// keptError names the pairs that were never given back.
func (p *leases) keptError() error {
	return p.kept.err(fmt.Sprintf("budget %q: never given back: ", p.b.plan.Name), "; call Release where Lease gave them")
}

// isFixed says whether only the goroutine that drives the program, or a worker that it knows, uses the scratch arena.
func (p *leases) isFixed(index int) bool {
	return p.pairs[index/planScratchEach].state.Load() == pairFixed
}
