package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

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
// fn made is finalized, newest first. A full in fn, wherever, is the error returned; so is a full of a Try... in the
// region that fn ignored. A panic after it becomes that error with the panic as its cause. Any other panic
// unwinds and goes on, and so does Goexit. Errors of the old contents' finalizers go to the report and the plan's
// OnError, never into the verdict; so do all finalizers' where Load doesn't return, and leaks of heaps that lie in the old
// contents or in the load's temporaries. A load that fails leaks no blocks: fn had no chance to free them.
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
// once; in both cases nothing changes. After a second of waiting OnError is called. fn itself watches ctx if it wants to.
//
// Cost: a few hundred ns for each region that it touches, finalizers, and what fn does. Load, Rewind and Release make no Go
// allocation of their own, unless they fail or wait. fn doesn't
// escape: a closure or a method value written as the argument costs none either.
func Load[T any](ctx context.Context, r Region, fn func(scope.Scope) (*T, error)) (Loaded[T], error) {
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

// Rewind empties this region and those above it, top first: finalizers newest first, then the cursor goes back. It
// returns the finalizers' errors, and which heaps had live blocks ([arena.Heap.MayLive]). It waits for workers that have it pinned ([Reader]) until ctx ends; then it says who is, and
// nothing has changed.
func (r Region) Rewind(ctx context.Context) error {
	return r.empty(ctx, "Rewind", false)
}

// empty is Rewind, and Release of a slot.
func (r Region) empty(ctx context.Context, what string, releases bool) error {
	if r.its().slot < 0 && releases {
		return fmt.Errorf("budget %q: BUG: Release of region %s, which has no slots; Rewind it", r.b.plan.Name, r.name)
	}
	defer traced(ctx, what, r.region)()
	l, err := r.b.enter(ctx, r, what)
	if err != nil {
		return err
	}
	l.releases = releases
	defer r.b.leave(l) // deferred: also when a finalizer ends the goroutine
	return errors.Join(l.emptyAll(false)...)
}

// load is one Load, Rewind, Release, Reconfigure or Close at work. They stand beside each other as
// long as no region is touched by two, but for those inside a Load, which touch what is above it. Only
// one at a time begins at a region, and so a region has its own, which is used again and again.
type load struct {
	what     string  // "Load"
	of       *region // where it begins: the lowest; nil for Close and Reconfigure
	site     arena_c.Site
	along    reach         // what it touches
	shut     reach         // of that, where it keeps workers out
	releases bool          // the lowest is a slot that is free when this ends
	scope    scope.Scope   // that its fn was given; the zero one unless fn runs
	outer    *load         // that it is inside of, or nil
	inner    *load         // that is inside of it, or nil
	state    bool          // package save has a state of it
	over     chan struct{} // nil, unless somebody waits for the end
	begun    bool          // it counts in atWork
}

// name is what messages call it: "Load of region level".
func (l *load) name() string {
	if l.of == nil {
		return l.what
	}
	return l.what + " of region " + l.of.name
}

// reach is a list of regions, bottom first, in two parts of other lists: where a load begins, and what lies above.
type reach struct{ from, above []*region }

func (a reach) count() int { return len(a.from) + len(a.above) }

func (a reach) at(i int) *region {
	if i < len(a.from) {
		return a.from[i]
	}
	return a.above[i-len(a.from)]
}

// each yields them, the lowest first.
func (a reach) each(yield func(i int, r *region) bool) {
	for i := range a.count() {
		if !yield(i, a.at(i)) {
			return
		}
	}
}

func (r Region) load(ctx context.Context, fn func(scope.Scope) error) (word uint64, err error) {
	defer traced(ctx, "Load", r.its())()
	l, err := r.b.enter(ctx, r, "Load")
	if err != nil {
		return 0, err
	}
	defer r.b.leave(l)
	r.b.note(errors.Join(l.emptyAll(false)...))
	defer func() {
		if word != 0 {
			return
		}
		other, verdict := r.stack.Verdict(recover(), err)
		errs := l.emptyAll(true)
		if err = errors.Join(append([]error{verdict}, errs...)...); verdict == nil {
			r.b.note(errors.Join(errs...)) // fn panics, or ends its goroutine: nobody gets what Load returns
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
		if inner != nil {
			inner.over = make(chan struct{})
		}
		b.mu.Unlock()
		if inner != nil {
			defer func() { <-inner.over }() // deferred: OnError may panic
			b.note(fmt.Errorf("budget %q: BUG: %s ends while a %s, inside it, is at work; it waits: %w",
				b.plan.Name, l.name(), inner.name(), ErrLoading))
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

// begin adds a load to those at work, or says why it can't. r is the zero one for Close and
// Reconfigure, which touch all.
func (b *Budget) begin(r Region, what string) (*load, error) {
	made := load{what: what, of: r.region, along: b.along(r.region)}
	made.site.Note()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	if r.region != nil && r.released() {
		return nil, fmt.Errorf("budget %q: BUG: %s, which was released: %w", b.plan.Name, made.name(), ErrClosed)
	}
	refused := ""
	if r.inside {
		made.outer, refused = b.outer(r)
	} else {
		refused = b.beside(made.of, made.along, what)
	}
	if refused != "" {
		return nil, fmt.Errorf("budget %q: %s %s: %w", b.plan.Name, made.name(), refused, ErrLoading)
	}
	l := b.loadOf(r.region)
	*l = made
	if strictBuild {
		l.begun = true
		atWork.begun.Add(1)
	}
	for _, part := range l.along.each {
		part.busy = l
	}
	if l.outer != nil {
		l.outer.inner = l
	}
	return l, nil
}

// loadOf is what begins at a region, or a new one for the whole budget. pre: nothing else touches the region.
func (b *Budget) loadOf(r *region) *load {
	if r == nil {
		return new(load)
	}
	return &r.own
}

// along are the regions that go when r is rewound: itself and those above it, but not its siblings. nil stands for the
// whole budget.
func (b *Budget) along(r *region) reach {
	if r == nil {
		return reach{from: b.regions}
	}
	return reach{b.regions[r.index : r.index+1], b.regions[r.siblingsEnd:]}
}

// beside says why what touches these regions can't stand beside the loads at work. pre: b.mu is
// held.
func (b *Budget) beside(r *region, along reach, what string) (refused string) {
	for _, part := range along.each {
		by := part.busy
		switch {
		case by == nil:
			continue
		case by.scope == (scope.Scope{}) || r == nil || r.level <= by.along.at(0).level:
			return "during a " + by.name()
		}
		how := b.plan.Regions[r.level].Name + ".In(s)" // without the slot's number
		if what == "Load" {
			how = "Load(ctx, " + how + ", ...)"
		} else {
			how += "." + what + "(ctx)"
		}
		return fmt.Sprintf("during a %s; inside the load write %s, where s is the scope that its function was given", by.name(), how)
	}
	return ""
}

// outer is the load whose scope the caller knows, or why the caller isn't inside it. pre: b.mu is
// held.
func (b *Budget) outer(r Region) (outer *load, refused string) {
	for _, part := range b.regions {
		if l := part.busy; l != nil && l.scope == r.in && l.scope != (scope.Scope{}) {
			outer = l
			break
		}
	}
	switch {
	case outer == nil:
		return nil, "with In of a scope that is not that of a load at work"
	case r.level <= outer.along.at(0).level:
		return nil, fmt.Sprintf("inside a %s; only regions above it may be touched", outer.name())
	case outer.inner != nil:
		return nil, fmt.Sprintf("inside a %s, during a %s there; one at a time", outer.name(), outer.inner.name())
	}
	return outer, ""
}

// enter is begin, with the workers outside and kept there.
func (b *Budget) enter(ctx context.Context, r Region, what string) (*load, error) {
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
		return nil, b.waited(ctx, l, still)
	}
	entered = true
	return l, nil
}

// waited is the error of who waited in vain.
func (b *Budget) waited(ctx context.Context, l *load, still []string) error {
	return fmt.Errorf("budget %q: %s waited for workers: %s: %w", b.plan.Name, l.name(), strings.Join(still, ", "), ctx.Err())
}

// inside lists who is inside the regions.
func (b *Budget) inside(regions reach) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range regions.each {
		for _, d := range r.readers {
			if d.inside.Load() {
				names = append(names, fmt.Sprintf("%q has pinned region %s", d.name, r.name))
			}
		}
	}
	return names
}

// isPinned is inside for who needs no names.
func (b *Budget) isPinned(regions reach) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range regions.each {
		for _, d := range r.readers {
			if d.inside.Load() {
				return true
			}
		}
	}
	return false
}

// keepOut lets no worker into the regions until the load ends, and waits until nobody is inside.
// After a second it calls the plan's OnError: a goroutine that waits for its own Unpin waits for
// ever.
func (b *Budget) keepOut(ctx context.Context, l *load, regions reach) (still []string) {
	l.shut = regions
	for _, r := range regions.each {
		r.owner.Or(ownerShut)
	}
	start, reported := time.Now(), false
	var timer *time.Timer // one for the whole wait, and none without
	for pause := time.Microsecond; b.isPinned(regions); pause = min(2*pause, time.Millisecond) {
		if !reported && time.Since(start) > time.Second {
			reported = true
			b.note(fmt.Errorf("budget %q: waiting for %s", b.plan.Name, strings.Join(b.inside(regions), ", ")))
		}
		if timer == nil {
			timer = time.NewTimer(pause)
			defer timer.Stop()
		} else {
			timer.Reset(pause)
		}
		select {
		case <-ctx.Done():
			return b.inside(regions)
		case <-timer.C:
		}
	}
	return nil
}

func (b *Budget) leave(l *load) {
	b.publishRegions(l.along, l.what)
	b.end(l)
}

// publishRegions is for who has them for itself: the end of what touched them. The lowest comes first.
func (b *Budget) publishRegions(touched reach, what string) {
	p := &b.published
	p.loads.Lock()
	defer p.loads.Unlock()
	for i, r := range touched.each {
		f := &p.regions[r.index]
		f.publishRegion(happened(what, i == 0, r.phase() == empty && f.Used != 0))
	}
}

// happened is what the timeline tells of a region that something touched.
func happened(what string, lowest, emptied bool) Mark {
	switch {
	case what == "Reconfigure":
		return MarkMoved
	case what == "Load" && lowest:
		return MarkLoad
	case emptied:
		return MarkRewind
	}
	return 0
}

// end gives the regions back, in one move: to the load outside, or to their owners and workers.
func (b *Budget) end(l *load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.releases {
		l.of.disown()
	}
	for _, part := range l.shut.each {
		part.owner.And(^ownerShut)
	}
	for _, part := range l.along.each {
		part.busy = l.outer
	}
	if l.outer != nil {
		l.outer.inner = nil
	}
	if l.over != nil {
		close(l.over)
	}
	if l.begun {
		atWork.ended.Add(1)
	}
}
