package budget

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// leases are the scratch arenas of an open budget, by worker. A worker that is known at set-up has its
// own, by number ([Budget.Scratches]); a goroutine that comes and goes borrows those of one that is free
// ([Budget.Lease]). What was asked for by number is never lent. Its methods are for any goroutine.
//
// While no goroutine waits, Lease and Release are one swap of a worker's state each: no lock, and no
// word that all goroutines write. A goroutine that finds no free worker counts itself as waiting,
// looks once more if no other waits, and waits at the channel, which serves in turn. Release frees the worker
// first and then looks for a waiting goroutine, to which it sends the worker. Because both sides write
// before they look, one of the two sees the other: no worker stays free while a goroutine waits.
type leases struct {
	budget    string // the plan's name
	left      *leftOpen
	published *published
	each      int // scratch arenas of a worker
	workers   []lendable

	waiting atomic.Int64  // goroutines that wait; while there is one, nobody else looks for a worker that is free
	free    chan int      // workers for those that wait; some of them were asked for by number since
	over    chan struct{} // closed when no scratch will ever be free again
	hints   [leaseHints]atomic.Int32

	mu     sync.Mutex // guards what follows, and changes to scratchFixed and scratchShut
	fixed  int        // workers asked for by number
	closed bool
	kept   leaks // at Close: what was never given back
}

// leaseHints is how many hints there are, by where a goroutine's stack is, of the worker that it begins with.
const leaseHints = 64

// lendable is a worker's scratch arenas. The state is what may be done with them, and above it how often they were lent.
type lendable struct {
	state  atomic.Uint64
	from   *leases
	index  int
	stacks []*scope.Stack
	site   arena_c.Site // where they were taken
	_      [64]byte     // a line of its own
}

const (
	scratchFree   = iota
	scratchFixed  // asked for by number: a worker's, until Close
	scratchLent   // a goroutine's, until Release
	scratchGiving // being lent or given back: for a moment
	scratchEnding // given back with scopes left open, whose finalizers run
	scratchSent   // in the channel, for the first that waits
	scratchShut   // by Close
	scratchKept   // lent, and shut by Close
	scratchStates = 8
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
		w := &p.workers[i]
		w.from, w.index, w.stacks = p, i, stacks
	}
	for i := range p.hints {
		p.hints[i].Store(int32(n - 1)) // those that are asked for by number count from 0
	}
	return p
}

// is says whether the state is one of scratchFree and so on.
func (w *lendable) is(state uint64) bool { return w.state.Load()%scratchStates == state }

// swap changes the state from one to another.
func (w *lendable) swap(from, to uint64) bool {
	is := w.state.Load()
	return is%scratchStates == from && w.state.CompareAndSwap(is, is-from+to)
}

func (p *leases) of(worker int) scope.Scratches {
	if worker < 0 || worker >= len(p.workers) {
		panic(fmt.Sprintf("budget: BUG: scratch of worker %d: plan %q has scratch for %d workers", worker, p.budget, len(p.workers)))
	}
	w := &p.workers[worker]
	if !w.is(scratchFixed) {
		p.fix(worker)
	}
	return w.stacks[0].Scratches()
}

func (p *leases) fix(worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.workers[worker]
	for !p.closed && !w.is(scratchFixed) {
		switch {
		case w.is(scratchLent), w.is(scratchGiving), w.is(scratchEnding):
			panic(fmt.Sprintf("budget: BUG: the scratch of worker %d of plan %q is asked for by number while it is lent; "+
				"ask for them before the first Lease", worker, p.budget))
		case w.swap(scratchFree, scratchFixed), w.swap(scratchSent, scratchFixed):
			if p.fixed++; p.fixed == len(p.workers) {
				close(p.over)
			}
		}
	}
}

func (p *leases) lease(ctx context.Context) (Lease, error) {
	if len(p.workers) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no scratch; give it scratch.workers and scratch.size", p.budget))
	}
	if err := ctx.Err(); err != nil {
		return Lease{}, p.refusal(err)
	}
	if p.waiting.Load() == 0 {
		if l := p.borrow(); l.from != nil {
			return l, nil
		}
	}
	return p.wait(ctx)
}

// borrow lends a worker that is free: the last, else the next one below. The zero Lease says that none is. So a goroutine that
// borrows again finds what its caches hold, and a program of one goroutine the same scratch arenas each time. Goroutines on
// several processors would all look at the last one, and take its line from each other: where a goroutine lost one to another, it
// begins with the one that it got instead, from then on. A goroutine is known by where its stack is, which is a hint.
func (p *leases) borrow() Lease {
	var here byte
	hint := &p.hints[uintptr(unsafe.Pointer(&here))>>13%leaseHints]
	first, lost := int(hint.Load()), false
	for i := first; ; {
		l, taken := p.workers[i].lend(scratchFree)
		if l.from != nil {
			if lost {
				hint.Store(int32(i))
			}
			return l
		}
		lost = lost || taken
		if i--; i < 0 {
			i = len(p.workers) - 1
		}
		if i == first {
			return Lease{}
		}
	}
}

// lend lends the worker if it is free, or sent to the caller. lost says that it was, and that another was faster.
func (w *lendable) lend(from uint64) (l Lease, lost bool) {
	is := w.state.Load()
	if is%scratchStates != from {
		return Lease{}, false
	}
	held := is - from + scratchStates + scratchLent
	if !arena_c.Checked {
		if !w.state.CompareAndSwap(is, held) {
			return Lease{}, true
		}
	} else {
		if !w.state.CompareAndSwap(is, is-from+scratchGiving) {
			return Lease{}, true
		}
		w.site.Note() // Close reads it of what is lent
		w.state.Store(held)
	}
	return Lease{w.stacks[0].Scratches(), w, held}, false
}

// wait is lease for when no worker is free, or others wait.
func (p *leases) wait(ctx context.Context) (Lease, error) {
	first := p.waiting.Add(1) == 1
	defer p.waited()
	if p.isClosed() {
		return Lease{}, p.refusal(nil)
	}
	if first {
		if l := p.borrow(); l.from != nil {
			return l, nil
		}
	}
	for {
		select {
		case i := <-p.free:
			if l, _ := p.workers[i].lend(scratchSent); l.from != nil { // else it was asked for by number
				return l, nil
			}
		case <-ctx.Done():
			return Lease{}, p.refusal(ctx.Err())
		case <-p.over:
			return Lease{}, p.refusal(nil)
		}
	}
}

// isClosed waits for a Close that is at work.
func (p *leases) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// waited ends a wait. What became free for the first that waits may be more than one.
func (p *leases) waited() {
	if p.waiting.Add(-1) == 0 {
		p.unsend()
	}
	p.send()
}

// put makes a worker free, and gives it to the first that waits. pre: nobody else has it.
func (p *leases) put(w *lendable) {
	is := w.state.Load()
	w.state.Store(is - is%scratchStates + scratchFree)
	if p.waiting.Load() != 0 {
		p.send()
	}
}

// send sends workers that are free to those that wait.
func (p *leases) send() {
	n := p.waiting.Load()
	for i := range p.workers {
		if n <= 0 {
			return
		}
		if p.workers[i].swap(scratchFree, scratchSent) {
			p.free <- i // there is room: no worker is in it twice
			n--
		}
	}
}

// unsend takes back what nobody waits for.
func (p *leases) unsend() {
	for {
		select {
		case i := <-p.free:
			p.workers[i].swap(scratchSent, scratchFree)
		default:
			return
		}
	}
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
		if w := &p.workers[i]; w.is(scratchLent) || w.is(scratchGiving) || w.is(scratchEnding) {
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
	from *lendable
	held uint64 // its state meanwhile
}

// Release gives the scratch arenas back: from now on they refuse. Scopes that were left open are closed,
// newest first, counted as leaks, and named in the error, which has the errors of their finalizers too.
// From a finalizer of the scratch arenas, or inside a Do of theirs, it is refused and changes
// nothing, and so is a second Release. After Close it is ErrClosed. The zero Lease has nothing to give:
// `defer lease.Release()` may stand before the look at Lease's error. Cost: some ten ns, and O(finalizers);
// some hundred when a peak or another figure of the report has changed; no Go allocation.
func (l Lease) Release() error {
	if l.from == nil {
		return nil
	}
	w := l.from
	for !w.state.CompareAndSwap(l.held, l.held-scratchLent+scratchGiving) {
		if err := w.notHeld(l.held); err != nil {
			return err
		}
	}
	if err := w.busy(); err != nil {
		w.state.Store(l.held)
		return err
	}
	open := false
	for _, st := range w.stacks {
		st.EndLending()
		open = open || st.Depth() > 0
	}
	if !open {
		w.from.release(w)
		return nil
	}
	w.state.Store(l.held - scratchLent + scratchEnding)
	defer w.from.release(w) // also when a finalizer ends the goroutine
	return w.from.closeOpen(w)
}

// notHeld says why what was lent with that state can't be given back. Close may have it shut for a moment: then it is nil.
func (w *lendable) notHeld(held uint64) error {
	p := w.from
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return fmt.Errorf("budget %q: Release of scratch: %w", p.budget, scope.ErrClosed)
	case w.state.Load() == held:
		return nil
	}
	return fmt.Errorf("budget %q: BUG: Release of %s, which were given back before", p.budget, w.name())
}

// busy says why the scratch arenas can't be given back now.
func (w *lendable) busy() error {
	for _, st := range w.stacks {
		closing, inside := st.Busy()
		if closing {
			return fmt.Errorf("budget %q: BUG: Release of %s from a finalizer of %s", w.from.budget, w.name(), st.Arena)
		}
		if inside {
			return fmt.Errorf("budget %q: BUG: Release of %s while a Do or a Make is at work on %s",
				w.from.budget, w.name(), st.Arena)
		}
	}
	return nil
}

// release lets the next one have the scratch arenas.
func (p *leases) release(w *lendable) {
	p.publish(w.index)
	p.put(w)
}

// publish is while nobody else can have the worker's scratch arenas. Most often their figures stand as they were published.
func (p *leases) publish(worker int) {
	list := p.published.scratch[worker*p.each : (worker+1)*p.each]
	if !p.published.watched.Load() {
		stand := true
		for i := range list {
			stand = stand && list[i].stands()
		}
		if stand {
			return
		}
	}
	p.published.beside.Lock()
	defer p.published.beside.Unlock()
	for i := range list {
		list[i].publishChanged()
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
	p.waiting.Add(1) // all that come wait for the lock
	defer p.waited()
	var kept leaks
	defer func() {
		if busy != "" {
			p.unshut()
		}
	}()
	for i := range p.workers {
		w := &p.workers[i]
		for !w.shut() {
			if !w.is(scratchEnding) {
				p.unsend()
				runtime.Gosched()
				continue
			}
			select {
			case <-ctx.Done():
				return w.name()
			case <-time.After(closeWait / 100):
			}
		}
		if !w.is(scratchKept) {
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

// shut ends the lending of a worker. It is false while the worker is sent or given: a moment, but for its finalizers.
func (w *lendable) shut() bool {
	return w.is(scratchFixed) || w.swap(scratchFree, scratchShut) || w.swap(scratchLent, scratchKept)
}

// unshut undoes it for all.
func (p *leases) unshut() {
	for i := range p.workers {
		if w := &p.workers[i]; !w.swap(scratchKept, scratchLent) && w.is(scratchShut) {
			p.put(w)
		}
	}
	p.send() // what close took back before it was shut
}

// keptError names those that were never given back.
func (p *leases) keptError() error {
	return p.kept.err(fmt.Sprintf("budget %q: never given back: ", p.budget), "; call Release where Lease gave them")
}

// isFixed says whether only the goroutine that drives the program, or a worker that it knows, uses the scratch arena.
func (p *leases) isFixed(index int) bool {
	return p.workers[index/p.each].is(scratchFixed)
}

// closeWait is for workers on their way out: one that finds a region shut is inside for a moment.
const closeWait = 10 * time.Millisecond
