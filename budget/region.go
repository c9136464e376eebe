package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Region is a region of an open budget, or one slot of a region for as long as somebody has acquired it. Regions are
// rewound from the top: a region takes along those after it in the plan, a slot never its siblings.
type Region struct {
	*region
	owner uint64       // the region's owner when this was made
	in    *scope.Scope // see In; nil without it
}

// region is a region or a slot.
type region struct {
	b       *Budget
	index   int // of its arena in the map
	level   int // in the order of rewinding: its index in the plan
	slot    int // which of its siblings; -1 for a region without slots
	name    string
	stack   *scope.Stack
	word    atomic.Uint64 // its phase, and how often that changed: see step
	owner   atomic.Uint64 // whom its readers let in: see ownerShut
	busy    *load         // the innermost that touches it; guarded by b.mu
	readers []*Reader     // guarded by b.mu
	site    arena_c.Site  // of a slot, where it was acquired
}

// phase is what a region is at.
type phase uint64

const (
	empty     phase = iota
	loading         // the load's function is at work, or what closes its temporaries
	loaded          // and frozen
	rewinding       // finalizers are at work
	phases
)

var phaseNames = [phases]string{"empty", "loading", "loaded", "rewinding"}

// phase is for who has the region for itself, or the whole budget.
func (r *region) phase() phase { return phase(r.word.Load()) % phases }

// step changes the phase, and gives the word of the new one. Any other step is a bug of this
// package.
func (r *region) step(to phase, from ...phase) (word uint64) {
	now := r.phase()
	if !slices.Contains(from, now) {
		panic(fmt.Sprintf("budget: BUG: region %s is %s and becomes %s", r.name, phaseNames[now], phaseNames[to]))
	}
	word = r.word.Load() - uint64(now) + uint64(phases+to)
	r.word.Store(word)
	return word
}

// open begins what the load's function makes.
func (r *region) open() scope.Scope {
	r.step(loading, empty)
	r.stack.CountNames(true)
	return r.stack.Open(r.name)
}

// keep makes it final, if its function closed what it opened and heeded what it met.
func (r *region) keep() (word uint64, err error) {
	if err := r.stack.Left(1); err != nil {
		return 0, err
	}
	r.stack.Freeze() // first: finalizers of temporaries may not add to what is loaded
	r.b.note(r.stack.CloseTemp())
	return r.step(loaded, loading), nil
}

// rewind empties the region, finalizers newest first.
func (r *region) rewind() error {
	r.step(rewinding, empty, loading, loaded)
	defer r.step(empty, rewinding) // also when a finalizer ends the goroutine
	return r.stack.CloseTo(0)
}

// Of an owner word. Above stands how often the slot was released.
const (
	ownerShut  uint64 = 1 << iota // a load, a rewind or Close keeps workers out
	ownerTaken                    // of a slot: somebody acquired it
)

// taken says whether somebody has the slot.
func (r *region) taken() bool { return r.owner.Load()&ownerTaken != 0 }

// take is for who acquires a slot that is free.
func (r *region) take() *Region {
	return &Region{region: r, owner: (r.owner.Or(ownerTaken) | ownerTaken) &^ ownerShut}
}

// disown ends the owner's time: what he has refuses from now on. pre: b.mu is held.
func (r *region) disown() {
	r.readers = nil
	r.owner.Add(ownerTaken)
}

// released says whether the slot has another owner by now, or none.
func (r *Region) released() bool { return r.owner != r.region.owner.Load()&^ownerShut }

// In is the region for who is inside a load of a lower one: s is the scope that the load's function
// was given, and the proof. Load, Rewind and Release take it, one at a time, as long as that
// function runs; after that, and with any other scope, they are ErrLoading. For everything else it
// is as the region itself. A goroutine that the function started may use it too; a load ends when
// what goes on inside has ended, and reports one that outlasts its function as a bug.
func (r *Region) In(s scope.Scope) *Region { return &Region{r.region, r.owner, &s} }

// Name is the region's name in the plan; a slot's is followed by its number: "match 3".
func (r *Region) Name() string { return r.name }

// Base is what arena.Ptr and its like count from within this region: a copy of the region's bytes can be read on
// another machine.
func (r *Region) Base() arena.Base {
	row := r.b.table.Row(uint64(r.index))
	return arena.BaseAt(unsafe.Add(unsafe.Pointer(row), row.Arena.Start), row.Size())
}

// Rewind empties this region and those above it, top first: finalizers newest first, then the cursor goes back. It
// returns the finalizers' errors. It waits for workers that have it pinned ([Reader]) until ctx ends; then it says who is, and
// nothing has changed.
func (r *Region) Rewind(ctx context.Context) error {
	defer forgive()()
	l, err := r.b.enter(ctx, r, "Rewind")
	if err != nil {
		return err
	}
	defer r.b.leave(l)
	return errors.Join(emptyAll(l.along)...)
}

// regionNames are the names that Region knows.
func (b *Budget) regionNames() string {
	var names []string
	for _, r := range b.regions {
		if r.slot < 0 {
			names = append(names, r.name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// along are the regions that go when r is rewound, bottom first: itself and those above it, but not its siblings. nil
// stands for the whole budget.
func (b *Budget) along(r *Region) (list []*region) {
	for _, other := range b.regions {
		if r == nil || other.region == r.region || other.level > r.level {
			list = append(list, other.region)
		}
	}
	return list
}

// emptyAll empties regions, top first.
func emptyAll(regions []*region) (errs []error) {
	insist(len(regions), func(i int) {
		r := regions[len(regions)-1-i]
		if err := r.rewind(); err != nil {
			errs = append(errs, err)
		}
		r.stack.ResetPeak(false)
	})
	return errs
}

// insist calls step for 0 up to n-1, and again for one in which a finalizer ended the goroutine: no finalizer runs twice, so
// it comes to an end.
func insist(n int, step func(i int)) { insistFrom(0, n, step) }

func insistFrom(i, n int, step func(i int)) {
	defer func() {
		if i == n {
			return
		}
		if v := recover(); v != nil {
			panic(v)
		}
		insistFrom(i, n, step)
	}()
	for ; i < n; i++ { // no iterator: who rewound is told by the first call outside of the library
		step(i)
	}
}

// Reader is a worker's right to pin a region: while it does, Load and Rewind of the region, or of one below it, wait. It
// keeps the region from being rewound, no more: workers that write the same object still need a lock of their own. A
// worker that follows reloads reads the newest Loaded from an atomic.Pointer that the loader stores to.
type Reader struct {
	region *region
	owner  uint64 // the region's owner when this was made
	name   string
	inside atomic.Bool
	_      [64]byte // a line of its own: each worker writes only its own reader
}

// Reader makes a reader for a worker; the name is for the message of a load that waits in vain. Make it once, at set-up; that of
// a slot, which ends with Release, in the slot's load, where Strict forgives the Go allocation.
func (r *Region) Reader(name string) *Reader {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	d := &Reader{region: r.region, owner: r.owner, name: strings.Clone(name)}
	r.readers = append(r.readers, d)
	return d
}

// Pin says true when the region is pinned: until Unpin it isn't rewound. False: it is being loaded or rewound,
// a slot that was released, or the budget is closed; do something else before trying again. Ask Loaded.Get after Pin.
// One goroutine at a time holds a Reader's pin: a second Pin before Unpin panics, so make one Reader for each worker.
// Cost: one atomic write and one read.
func (d *Reader) Pin() bool {
	if d.inside.Swap(true) {
		panic(fmt.Sprintf("budget: BUG: %q pins region %s twice: each worker has a Reader of its own", d.name, d.region.name))
	}
	if d.region.owner.Load() != d.owner { // it is shut, or another's
		d.inside.Store(false)
		return false
	}
	return true
}

// Unpin ends what Pin began. Without it, it is a caller's bug and panics.
func (d *Reader) Unpin() {
	if !d.inside.Swap(false) {
		panic(fmt.Sprintf("budget: BUG: %q unpins region %s, which it has not pinned", d.name, d.region.name))
	}
}

// inside lists who is inside the regions.
func (b *Budget) inside(regions []*region) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range regions {
		for _, d := range r.readers {
			if d.inside.Load() {
				names = append(names, fmt.Sprintf("%q has pinned region %s", d.name, r.name))
			}
		}
	}
	return names
}

// keepOut lets no worker into the regions until the load ends, and waits until nobody is inside.
// After a second it tells the plan's OnError: a goroutine that waits for its own Unpin waits for
// ever.
func (b *Budget) keepOut(ctx context.Context, l *load, regions []*region) (still []string) {
	l.shut = regions
	for _, r := range regions {
		r.owner.Or(ownerShut)
	}
	start, reported := time.Now(), false
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if still = b.inside(regions); len(still) == 0 {
			return nil
		}
		if !reported && time.Since(start) > time.Second {
			reported = true
			b.note(fmt.Errorf("budget %q: waiting for %s", b.plan.Name, strings.Join(still, ", ")))
		}
		select {
		case <-ctx.Done():
			return still
		case <-time.After(pause):
		}
	}
}

// Loaded is what a load made. It is a small value. Who reloads keeps it in a variable; workers that follow reloads read it
// from an atomic.Pointer[Loaded[T]] that the loader stores to.
type Loaded[T any] struct {
	region *region
	word   uint64 // of the region while this is loaded
	value  *T
}

// Get is the value, or nil after the region was rewound, for ever: what is loaded next is another Loaded's. Any goroutine may ask; to keep it while working, pin it
// ([Reader]). Cost: one atomic read.
func (l Loaded[T]) Get() *T {
	if l.region == nil || l.region.word.Load() != l.word {
		return nil
	}
	return l.value
}

// Load empties the region and those above it, runs fn on it, and freezes it: what fn made stays until the next Load or
// Rewind, and nothing is added.
//
// The value may be made in s, or be an ordinary Go value whose slices and pools point into the region; the latter is
// the convenient one, since it may also hold maps and strings. It may not lie in the temporaries or in a scope inside
// s, both of which are gone when Load returns, and fn closes the scopes that it opens: either is a BUG error.
//
// The error is nil exactly when the region is loaded. When fn fails, the region is empty, and those above it too; what
// fn made is finalized, newest first. A full in fn, wherever, is the error returned; so is a full that a Try... met in
// the region and that fn ignored. A panic after it becomes that error with the panic as its cause. Any other panic
// unwinds and goes on, and so does Goexit. Errors of the old contents' finalizers go to the report and the plan's
// OnError, never into the verdict; so do all finalizers' where Load doesn't return.
//
// Inside fn a region above may be loaded, rewound or released by who proves to be inside, with the
// scope that fn was given:
//
//	budget.Load(ctx, level.In(s), ...)
//
// See [Region.In]. Everything else that touches what a load or rewind at work touches is
// ErrLoading, and nothing changes: the same region, a lower one, a call from a finalizer, one
// without In.
//
// Frame and scratch arenas stand beside, and a load that fails doesn't touch them. For scratch fn uses
// [scope.Scratch.Do], which closes its scope whatever happens; a scope that fn opened and left open
// stays, and is a leak ([Leaks]).
//
// Load waits for workers that have it pinned ([Reader]) until ctx ends, and then says who is; a ctx that has ended already is refused at
// once; in both cases nothing changes. After a second of waiting OnError is told. fn itself watches ctx if it wants to.
func Load[T any](ctx context.Context, r *Region, fn func(scope.Scope) (*T, error)) (Loaded[T], error) {
	defer forgive()()
	var value *T
	word, err := r.load(ctx, func(s scope.Scope) (err error) {
		if value, err = fn(s); err == nil {
			err = r.outlives(unsafe.Pointer(value), uint64(unsafe.Sizeof(*value)))
		}
		return err
	})
	if err != nil {
		return Loaded[T]{}, err
	}
	return Loaded[T]{r.region, word, value}, nil
}

// load is one Load, Rewind, Release, Reconfigure or Close at work. They stand beside each other as
// long as no region is touched by two, but for those inside a Load, which touch what is above it.
type load struct {
	name     string      // in messages: "Load of region level"
	along    []*region   // what it touches, bottom first
	shut     []*region   // of those, where it keeps workers out
	releases bool        // the lowest is a slot that is free when this ends
	scope    scope.Scope // that its fn was given; the zero one unless fn runs
	outer    *load       // that it is inside of, or nil
	inner    *load       // that is inside of it, or nil
	over     chan struct{}
}

func (r *Region) load(ctx context.Context, fn func(scope.Scope) error) (word uint64, err error) {
	l, err := r.b.enter(ctx, r, "Load")
	if err != nil {
		return 0, err
	}
	defer r.b.leave(l)
	r.b.note(emptyAll(l.along)...)
	defer func() {
		if word != 0 {
			return
		}
		other, verdict := r.stack.Verdict(recover(), err)
		errs := undo(l)
		if err = errors.Join(append([]error{verdict}, errs...)...); verdict == nil {
			r.b.note(errs...) // fn panics, or ends its goroutine: nobody gets what Load returns
		}
		if other != nil {
			panic(other)
		}
	}()
	if err = r.b.run(l, r.open(), fn); err == nil {
		word, err = r.keep()
	}
	return word, err
}

// run calls fn, whose scope is meanwhile the proof of being inside. A load inside that outlasts fn
// is a bug: what it loads may point into what ends here.
func (b *Budget) run(l *load, s scope.Scope, fn func(scope.Scope) error) error {
	b.mu.Lock()
	l.scope = s
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		l.scope = scope.Scope{}
		inner := l.inner
		b.mu.Unlock()
		if inner != nil {
			defer func() { <-inner.over }() // deferred: OnError may panic
			b.note(fmt.Errorf("budget %q: BUG: %s ends while a %s, inside it, is at work; it waits: %w",
				b.plan.Name, l.name, inner.name, ErrLoading))
		}
	}()
	return fn(s)
}

// outlives refuses a value that would be gone when the load returns: one in the temporaries, or in a scope inside the
// load's.
func (r *region) outlives(value unsafe.Pointer, size uint64) error {
	if value == nil || r.stack.Depth() != 1 || r.stack.Keeps(value, size) {
		return nil
	}
	return fmt.Errorf("budget %q: BUG: the value that a Load of region %s returns lies in its temporaries, or in a scope that closed; "+
		"both are gone when Load returns", r.b.plan.Name, r.name)
}

// undo empties the region after a load that failed, and those above it first: what fn loaded there may point into it.
func undo(l *load) (errs []error) {
	insist(2, func(i int) {
		if i == 0 {
			errs = append(errs, emptyAll(l.along[1:])...)
		} else {
			errs = append(errs, l.along[0].rewind()) // its peak stays: how far the load came
		}
	})
	return errs
}

// begin takes a place among the loads, or says why there is none. r is nil for Close and
// Reconfigure, which touch all.
func (b *Budget) begin(r *Region, what string) (*load, error) {
	l := &load{name: what, along: b.along(r), over: make(chan struct{})}
	if r != nil {
		l.name = what + " of region " + r.name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	if r != nil && r.released() {
		return nil, fmt.Errorf("budget %q: BUG: %s, which was released: %w", b.plan.Name, l.name, ErrClosed)
	}
	refused := ""
	if r != nil && r.in != nil {
		l.outer, refused = b.outer(r)
	} else {
		refused = b.beside(r, l.along, what)
	}
	if refused != "" {
		return nil, fmt.Errorf("budget %q: %s %s: %w", b.plan.Name, l.name, refused, ErrLoading)
	}
	for _, part := range l.along {
		part.busy = l
	}
	if l.outer != nil {
		l.outer.inner = l
	}
	return l, nil
}

// beside says why what touches these regions can't stand beside the loads at work. pre: b.mu is
// held.
func (b *Budget) beside(r *Region, along []*region, what string) (refused string) {
	for _, part := range along {
		by := part.busy
		switch {
		case by == nil:
			continue
		case by.scope == (scope.Scope{}) || r == nil || r.level <= by.along[0].level:
			return "during a " + by.name
		}
		how := b.plan.Regions[r.level].Name + ".In(s)" // without the slot's number
		if what == "Load" {
			how = "Load(ctx, " + how + ", ...)"
		} else {
			how += "." + what + "(ctx)"
		}
		return fmt.Sprintf("during a %s; inside the load write %s, where s is the scope that its function was given", by.name, how)
	}
	return ""
}

// outer is the load whose scope the caller knows, or why the caller isn't inside it. pre: b.mu is
// held.
func (b *Budget) outer(r *Region) (outer *load, refused string) {
	for _, part := range b.regions {
		if l := part.busy; l != nil && l.scope == *r.in && l.scope != (scope.Scope{}) {
			outer = l
			break
		}
	}
	switch {
	case outer == nil:
		return nil, "with In of a scope that is not that of a load at work"
	case r.level <= outer.along[0].level:
		return nil, fmt.Sprintf("inside a %s; only regions above it may be touched", outer.name)
	case outer.inner != nil:
		return nil, fmt.Sprintf("inside a %s, during a %s there; one at a time", outer.name, outer.inner.name)
	}
	return outer, ""
}

// enter is begin, with the workers outside and kept there.
func (b *Budget) enter(ctx context.Context, r *Region, what string) (*load, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("budget %q: %s of region %s: %w", b.plan.Name, what, r.name, err)
	}
	l, err := b.begin(r, what)
	if err != nil || l.outer != nil { // the outermost keeps them out
		return l, err
	}
	entered := false
	defer func() { // also when the plan's OnError ends the goroutine
		if !entered {
			b.end(l)
		}
	}()
	if still := b.keepOut(ctx, l, l.along); still != nil {
		return nil, fmt.Errorf("budget %q: %s waited for workers: %s: %w", b.plan.Name, l.name, strings.Join(still, ", "), ctx.Err())
	}
	entered = true
	return l, nil
}

func (b *Budget) leave(l *load) {
	b.publishRegions(l.along)
	b.end(l)
}

// end gives the regions back, in one move: to the load outside, or to their owners and workers.
func (b *Budget) end(l *load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.releases {
		l.along[0].disown()
	}
	for _, part := range l.shut {
		part.owner.And(^ownerShut)
	}
	for _, part := range l.along {
		part.busy = l.outer
	}
	if l.outer != nil {
		l.outer.inner = nil
	}
	close(l.over)
}

// Region is the region of that name, one without slots. An unknown name is a caller's bug and panics with the names there
// are.
func (b *Budget) Region(name string) *Region {
	for _, r := range b.regions {
		if r.name == name && r.slot < 0 {
			return r
		}
	}
	for _, s := range b.slots {
		if s.name == name {
			panic(fmt.Sprintf("budget: BUG: region %q of plan %q has slots: Slots(%q).Acquire gives one", name, b.plan.Name, name))
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q; it has %s", b.plan.Name, name, b.regionNames()))
}

// Report are the figures of this region now; after Close, as they were then. See [Budget.Report].
func (r *Region) Report() RegionReport {
	defer forgive()()
	if r.released() {
		return RegionReport{Name: r.name} // the figures are another owner's
	}
	if r.b.closed.Load() {
		return r.b.last.Regions[r.index].clone()
	}
	return r.b.published.regions[r.index].now().RegionReport
}

// publishRegions is for who has them for itself: the end of what touched them.
func (b *Budget) publishRegions(touched []*region) {
	p := &b.published
	p.loads.Lock()
	defer p.loads.Unlock()
	for _, r := range touched {
		p.regions[r.index].publish()
	}
}
