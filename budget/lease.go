package budget

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// leases are the scratch arenas of an open budget, by worker. A worker that is known at set-up
// takes its arenas by number ([Budget.Scratches]), and they are never lent. A goroutine that comes
// and goes borrows the arenas of a free worker ([Budget.Lease]). Any goroutine may call the
// methods.
//
// While no goroutine waits, Lease and Release swap one worker's state each: there is no lock, and
// no word that all goroutines write. A goroutine that finds no free worker counts itself as
// waiting, looks again if it is the only one, and waits at the channel, which serves in turn.
// Release frees the worker first and then looks for a waiting goroutine to send the worker to. Both
// sides write before they look, so one of them sees the other: no worker stays free while a
// goroutine waits.
//
// A worker's state is one atomic word: scratchStates times the count of loans, plus one of the
// states below. So each loan has a state of its own, which its Lease keeps. For example, a free
// worker with 0 is lent with 8 + 2 = 10, released to 8, and lent again with 18. A second Release of
// the first Lease compares 10 with 18, and fails.
type leases struct {
	whole     *Budget
	budget    string // the plan's name
	left      *leftOpen
	published *published
	each      int // scratch arenas of a worker
	workers   []lendable

	// goroutines that wait; if there are any, no other goroutine looks for a free worker
	waiting atomic.Int64
	free    chan int      // workers sent to them; some were taken by number since
	over    chan struct{} // closed when no worker can become free again
	hints   [leaseHints]atomic.Int32

	mu     sync.Mutex // guards the fields below, and changes to scratchFixed and scratchShut
	fixed  int        // workers taken by number
	closed bool
	kept   leaks // at Close: leases never released
}

// leaseHints is the number of hints. A hint is the worker to try first; a goroutine finds its hint
// by the address of its stack.
const leaseHints = 64

// lendable is a worker's scratch arenas and their state word (see leases).
type lendable struct {
	state     atomic.Uint64
	from      *leases
	index     int
	stacks    []*stack.Stack
	site      arena_c.Site  // the call of Lease
	goroutine atomic.Uint64 // of this call, in checked builds
	pins      []*Reader     // of this loan
	_         [64]byte      // a cache line of its own
}

const (
	scratchFree   = iota
	scratchFixed  // taken by number: a worker's, until Close
	scratchLent   // a goroutine's, until Release
	scratchGiving // being lent or released: for a moment
	scratchEnding // released with open scopes, whose finalizers run
	scratchSent   // in the channel, for the first that waits
	scratchShut   // closed while free
	scratchKept   // closed while lent
	scratchStates = 8
)

func newLeases(plan Plan, scratches []*stack.Stack, left *leftOpen, published *published) *leases {
	n, each := plan.Scratch.Workers, plan.Scratch.Each
	p := &leases{budget: plan.Name, left: left, published: published, each: each,
		free: make(chan int, n), over: make(chan struct{}), workers: make([]lendable, n)}
	for i := range p.workers {
		stacks := scratches[i*each : (i+1)*each]
		for _, st := range stacks {
			st.Siblings = stacks
		}
		w := &p.workers[i]
		w.from, w.index, w.stacks, w.pins = p, i, stacks, make([]*Reader, 0, len(plan.Regions))
	}
	for i := range p.hints {
		p.hints[i].Store(int32(n - 1)) // workers that are taken by number count from 0
	}
	return p
}

func (w *lendable) is(state uint64) bool { return w.state.Load()%scratchStates == state }

// swap changes the state if it is from, and reports whether it did.
func (w *lendable) swap(from, to uint64) bool {
	is := w.state.Load()
	return is%scratchStates == from && w.state.CompareAndSwap(is, is-from+to)
}

func (p *leases) of(worker int) scope.Scratches {
	if worker < 0 || worker >= len(p.workers) {
		panic(fmt.Sprintf("budget: BUG: scratch of worker %d: plan %q has scratch for %d workers", worker, p.budget,
			len(p.workers)))
	}
	w := &p.workers[worker]
	if !w.is(scratchFixed) {
		p.fix(worker)
	}
	return scope.ScratchesOf(w.stacks[0])
}

func (p *leases) fix(worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.workers[worker]
	for !p.closed && !w.is(scratchFixed) {
		switch {
		case w.is(scratchLent), w.is(scratchGiving), w.is(scratchEnding):
			panic(fmt.Sprintf("budget: BUG: the scratch of worker %d of plan %q is taken by number while it is lent; "+
				"call Scratches at set-up, before the first Lease", worker, p.budget))
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

// borrow lends a free worker, or returns the zero Lease if there is none. It tries the last worker
// first, then the next below. So a goroutine that borrows again gets arenas that its processor's
// caches hold, and a program of one goroutine gets the same arenas each time. Goroutines on several
// processors would contend for the last worker. So a goroutine that lost a worker to another stores
// the worker that it got instead in its hint, and begins there from then on.
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

// lend lends the worker if its state is from. lost reports that another goroutine was faster.
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
		w.site.Note() // Close reads the site of lent workers
		w.goroutine.Store(goroutine())
		w.state.Store(held)
	}
	return Lease{scope.ScratchesOf(w.stacks[0]), w, held}, false
}

// wait returns a loan once a worker is free for it, or an error when ctx ends or lending has ended.
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
	if arena_c.Checked {
		p.whole.waits(leaseRank, "a lease of scratch")
		defer p.whole.hasWaited()
	}
	for {
		select {
		case i := <-p.free:
			// else it was taken by number
			if l, _ := p.workers[i].lend(scratchSent); l.from != nil {
				return l, nil
			}
		case <-ctx.Done():
			return Lease{}, p.refusal(ctx.Err())
		case <-p.over:
			return Lease{}, p.refusal(nil)
		}
	}
}

// isClosed reports whether lending has ended. It waits for a running Close.
func (p *leases) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// waited ends a wait. If no other goroutine waits, it takes back the sent workers; else it sends
// free workers to the others.
func (p *leases) waited() {
	if p.waiting.Add(-1) == 0 {
		p.unsend()
	}
	p.send()
}

// put makes a worker free, and sends it to the first goroutine that waits. pre: the caller owns the
// worker.
func (p *leases) put(w *lendable) {
	is := w.state.Load()
	w.state.Store(is - is%scratchStates + scratchFree)
	if p.waiting.Load() != 0 {
		p.send()
	}
}

func (p *leases) send() {
	n := p.waiting.Load()
	for i := range p.workers {
		if n <= 0 {
			return
		}
		if p.workers[i].swap(scratchFree, scratchSent) {
			p.free <- i // it has room: no worker is in it twice
			n--
		}
	}
}

// unsend takes back the workers that no goroutine waits for.
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

// refusal returns the error of Lease; ended is the error of the caller's ctx, or nil.
func (p *leases) refusal(ended error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, n := p.budget, len(p.workers)
	switch {
	case p.closed:
		return fmt.Errorf("budget %q: Lease of scratch: %w", name, scope.ErrClosed)
	case ended == nil:
		return fmt.Errorf("budget %q: BUG: Lease of scratch: all %d workers are taken by number and never lent; "+
			"raise scratch.workers in the plan", name, n)
	}
	lent := 0
	for i := range p.workers {
		if w := &p.workers[i]; w.is(scratchLent) || w.is(scratchGiving) || w.is(scratchEnding) {
			lent++
		}
	}
	return fmt.Errorf("budget %q: Lease of scratch: %d of %d workers are lent, %d taken by number; Release a "+
		"Lease, or raise scratch.workers in the plan: %w", name, lent, n, p.fixed, ended)
}

// Lease is a loan of a worker: its scratch arenas, its number, and a [Reader] of each region. A
// scratch arena is used like lease.Scratch(0).Do("reply", fn); see [scope.Scratches] for Scratch
// and Pick. A Lease is a small value, for one goroutine at a time. The zero Lease has no worker:
// its scratch arenas can't be used, and Worker and Reader panic.
type Lease struct {
	scope.Scratches
	from *lendable
	held uint64 // the worker's state during the loan
}

// its returns the worker, and panics if l isn't a loan now. A finalizer of a Release still has the
// loan, and so has a goroutine whose Lease was kept until Close.
func (l Lease) its(what string) *lendable {
	w := l.from
	if w == nil {
		panic("budget: BUG: " + what + " of a zero Lease: get one from Budget.Lease")
	}
	switch w.state.Load() {
	case l.held, l.held - scratchLent + scratchEnding, l.held - scratchLent + scratchKept:
		return w
	}
	panic(fmt.Sprintf("budget %q: BUG: %s of a Lease that was released", w.from.budget, what))
}

// Worker returns the number of the worker, from 0 up to the plan's number of workers. No other
// Lease has this number until Release. So a goroutine may use element Worker of the program's own
// table without a lock, unless others read the table meanwhile.
func (l Lease) Worker() int { return l.its("Worker").index }

// Reader returns the worker's reader of a region. It is the caller's until Release, which ends its
// pin; from then on it is the next Lease's, and no build reports a later use. A slot's reader ends
// with the slot's Release. The first call for a region, or for a slot and its owner, makes the
// readers of all workers: 300 bytes of the Go heap for each. Cost of a later call: an atomic read,
// and a look at the readers that this Lease has. No Go allocation then, unless a Lease has more
// readers than the plan has regions.
func (l Lease) Reader(r Region) *Reader {
	w := l.its("Reader")
	if r.its().b.leases != w.from {
		panic(fmt.Sprintf("budget %q: BUG: Reader of region %s, which is another budget's", w.from.budget, r.name))
	}
	d := r.readerOf(w.index)
	if !slices.Contains(w.pins, d) {
		w.pins = append(slices.DeleteFunc(w.pins, (*Reader).over), d)
	}
	return d
}

// Release ends the loan; from then on the scratch arenas refuse this Lease. Release closes scopes
// that were left open, newest first in each arena, and counts them as leaks. Then it ends the pins
// of the worker's readers. It returns an error with the names of these scopes and the errors of
// their finalizers. Release fails and changes nothing inside a Do, a Make or a finalizer of these
// arenas, and at a second call. After Close it returns [ErrClosed]. On the zero Lease it does
// nothing, so `defer lease.Release()` may precede the check of Lease's error.
//
// Cost: some ten ns, or some hundred ns if the report changes, plus O(finalizers). No Go
// allocation, unless it fails.
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

// notHeld returns why the loan can't be released. It returns nil if a Close that failed had shut
// the worker for a moment.
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
	return fmt.Errorf("budget %q: BUG: Release of %s, which were released before", p.budget, w.name())
}

// busy returns why the scratch arenas can't be released now.
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

func (p *leases) release(w *lendable) {
	if len(w.pins) > 0 {
		w.unpin()
	}
	p.publish(w.index)
	p.put(w)
}

// unpin ends the pins of the loan.
func (w *lendable) unpin() {
	for _, d := range w.pins {
		d.inside.Store(false)
	}
	clear(w.pins)
	w.pins = w.pins[:0]
}

// publish publishes a worker's scratch arenas, while the caller owns them. Most often nothing has
// changed.
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

// closeOpen closes the scopes that were left open, the last scratch arena first, and returns their
// errors.
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

// close ends lending for good. It waits for a Release whose finalizers run. If ctx ends first, or
// if finalizers run on lent scratch, it returns the names of the arenas, and nothing has changed.
// Meanwhile Lease and Release wait.
func (p *leases) close(ctx context.Context) (busy string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Add(1) // newcomers wait for the lock
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
	if p.fixed < len(p.workers) { // else it is closed already
		close(p.over)
	}
	return ""
}

// shut ends the lending of a worker. It returns false while the worker is sent, being lent or being
// released, which is a moment unless finalizers run.
func (w *lendable) shut() bool {
	return w.is(scratchFixed) || w.swap(scratchFree, scratchShut) || w.swap(scratchLent, scratchKept)
}

func (p *leases) unshut() {
	for i := range p.workers {
		if w := &p.workers[i]; !w.swap(scratchKept, scratchLent) && w.is(scratchShut) {
			p.put(w)
		}
	}
	p.send() // the workers that close took back before it shut them
}

func (p *leases) keptError() error {
	return p.kept.err(fmt.Sprintf("budget %q: never released: ", p.budget), "; call Release on each Lease")
}

// isFixed reports whether the scratch arena belongs to a worker by number, not to leases.
func (p *leases) isFixed(index int) bool {
	return p.workers[index/p.each].is(scratchFixed)
}

// closeWait is the time that Close waits for workers. A worker that finds a region shut counts as
// inside for a moment.
const closeWait = 10 * time.Millisecond
