package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Loaded is the result of a load: a small value. The goroutine that loads keeps it in a variable. A
// worker that pins the region calls the function [Get].
type Loaded[T any] struct {
	region *region
	word   uint64 // the region's word while this is loaded
	value  *T
}

// Get returns the value until the region is emptied, and nil from then on; the next load returns
// another Loaded. Any goroutine may call Get. To keep the value valid during work, pin the region
// ([Reader]). Cost: one atomic read.
func (l Loaded[T]) Get() *T {
	if l.region == nil || l.region.word.Load() != l.word {
		return nil
	}
	return l.value
}

// Load empties the region and the regions above it (that stand on it in the plan, directly or not),
// calls fn with a scope of the region, and freezes the region: it takes no more objects. The
// objects that fn made in its scope stay until a Load or Rewind of this or a lower region, a
// Release, or Close.
//
// The value that fn returns may be in fn's scope, or be an ordinary Go value with slices and pools
// of the region. The Go value is convenient, because it may also hold maps and strings. A value in
// the temporaries ([scope.Scope.Temp]) or in a scope inside fn's scope ends before Load returns.
// Load returns a BUG error for such a value, unless its bytes are in use again by then. Load also
// returns a BUG error if fn leaves a scope open. fn may return nil.
//
// The error is nil exactly when the region is loaded. If fn fails, its objects are finalized,
// newest first, and the region and the regions above it are empty. Load then returns, joined with
// the errors of these finalizers:
//
//   - the error of fn;
//   - the FullError that unwinds fn, or that of a Try call in the region if fn ignored it;
//   - the FullError that fn ignored before it panicked, with the panic as its cause.
//
// After any other panic or a Goexit, Load empties the regions in the same way, and the panic or
// Goexit continues.
//
// Errors of the finalizers of old contents, and of temporaries of a load that succeeds, go to the
// report and to Plan.OnError, never into Load's error. Leaks of heaps there go the same way. If
// Load doesn't return, all finalizers' errors go there. Blocks left by a failed load aren't
// reported as leaks, because fn had no chance to free them.
//
// Inside fn the program may load, rewind or release a region above, with fn's scope as a token
// ([Region.In]):
//
//	budget.Load(ctx, level.In(s), ...)
//
// Any other Load, Rewind or Release that touches a region of a running load, rewind, trim, restore
// or Reconfigure returns [ErrLoading] and changes nothing. Examples are a call on the same or a
// lower region, a call in a finalizer, and a call without In.
//
// A failed load doesn't touch frame and scratch. In fn, use scratch through [scope.Scratch.Do],
// which closes its scope. A scratch scope that fn opens without Do and leaves open stays open, and
// is a leak ([Leaks]).
//
// Load waits for workers that pin a touched region ([Reader]). If ctx ends first, Load returns an
// error with the workers' names. If ctx has already ended, Load fails at once. In both cases
// nothing changes. After a wait of one second, Load calls Plan.OnError and waits on. Once fn runs,
// Load ignores ctx.
//
// Cost: a few hundred ns for each touched region, the finalizers, and fn. A region with State
// ([RegionPlan]) is also filled with zeros, and one with Trim returns its pages. Load, Rewind and
// Release make no Go allocation of their own, unless they fail, wait or are traced, or a region has
// more heaps, rings and pools of package arena than before. fn doesn't escape, so a closure or a
// method value as fn makes no allocation either.
func Load[T any](ctx context.Context, r Region, fn func(scope.Scope) (*T, error)) (Loaded[T], error) {
	var value *T
	word, err := r.load(ctx, func(s scope.Scope) (err error) {
		if value, err = fn(s); err == nil {
			err = r.outlives(unsafe.Pointer(value), uint64(unsafe.Sizeof(*value)))
		}
		r.value = value
		return err
	})
	if err != nil {
		return Loaded[T]{}, err
	}
	return Loaded[T]{r.region, word, value}, nil
}

// Rewind empties this region and the regions above it, top first. Finalizers run, newest first, and
// all bytes are free. The returned error has the finalizers' errors, and names heaps with live
// blocks ([arena.Heap.MayLive]). Rewind waits for workers that pin a touched region ([Reader]). If
// ctx ends first, Rewind returns an error with the workers' names, and nothing has changed.
func (r Region) Rewind(ctx context.Context) error {
	return r.empty(ctx, "Rewind", false)
}

// empty is Rewind, or Release of a slot.
func (r Region) empty(ctx context.Context, what string, releases bool) error {
	if r.its().slot < 0 && releases {
		return fmt.Errorf("budget %q: BUG: Release of region %s, which has no slots; Rewind it", r.b.plan.Name, r.name)
	}
	defer traced(ctx, what, r.region)()
	l, err := r.b.enter(ctx, r, what, r.b.along(r.region))
	if err != nil {
		return err
	}
	l.releases = releases
	defer r.b.leave(l) // deferred: also when a finalizer ends the goroutine
	return errors.Join(l.emptyAll(false)...)
}

// load is one running call of Load, Rewind, Release, Trim, Reconfigure or Close. Two may run at
// once if they share no region, or if one is inside the other's fn, on regions above. At most one
// at a time begins at a region, so each region holds one load and reuses it.
type load struct {
	what     string  // "Load"
	of       *region // the lowest region it touches; nil for a call on the budget
	site     arena_c.Site
	along    reach         // the regions it touches
	shut     reach         // the part of along that it closes to workers
	releases bool          // the lowest region is a slot, free when this ends
	scope    scope.Scope   // fn's scope; zero unless fn runs
	outer    *load         // the load around this one, or nil
	inner    *load         // the load inside this one, or nil
	state    bool          // package save made a state in this load
	over     chan struct{} // nil, unless a goroutine waits for the end
	begun    bool          // counted in atWork
}

// name returns the load's name in messages: "Load of region level".
func (l *load) name() string {
	if l.of == nil {
		return l.what
	}
	return l.what + " of region " + l.of.name
}

// reach is a list of regions, bottom first, in two slices: a slot's siblings may be between them.
type reach struct{ from, above []*region }

func (a reach) count() int { return len(a.from) + len(a.above) }

func (a reach) at(i int) *region {
	if i < len(a.from) {
		return a.from[i]
	}
	return a.above[i-len(a.from)]
}

func (a reach) each(yield func(i int, r *region) bool) {
	for i := range a.count() {
		if !yield(i, a.at(i)) {
			return
		}
	}
}

func (r Region) load(ctx context.Context, fn func(scope.Scope) error) (word uint64, err error) {
	defer traced(ctx, "Load", r.its())()
	l, err := r.b.enter(ctx, r, "Load", r.b.along(r.region))
	if err != nil {
		return 0, err
	}
	defer r.b.leave(l)
	r.b.note(errors.Join(l.emptyAll(false)...))
	defer func() {
		if word != 0 {
			return
		}
		other, verdict := r.stack.Verdict(recover(), err, stack.Depths{})
		errs := l.emptyAll(true)
		if err = errors.Join(append([]error{verdict}, errs...)...); verdict == nil {
			// fn panicked or ended its goroutine: Load doesn't return
			r.b.note(errors.Join(errs...))
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

// run calls fn. While fn runs, s is the token of calls from inside it. A load inside must end
// before fn does: its objects may point into memory of this load.
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
			b.note(fmt.Errorf("budget %q: BUG: the function of %s returned before a %s inside it; the outer load "+
				"waits: %w", b.plan.Name, l.name(), inner.name(), ErrLoading))
		}
	}()
	return fn(s)
}

// outlives returns an error if value is in the temporaries or in a scope inside the load's: both
// end with the load.
func (r *region) outlives(value unsafe.Pointer, size uint64) error {
	if value == nil || r.stack.Depth() != 1 || r.stack.Keeps(value, size) {
		return nil
	}
	return fmt.Errorf("budget %q: BUG: Load of region %s returns a value in its temporaries or in a closed scope; "+
		"allocate it in the load's scope", r.b.plan.Name, r.name)
}

// begin starts a load of the regions along and returns it, or an error if it may not start. Close,
// Reconfigure and Budget.Trim, which begin at no region, pass the zero Region.
func (b *Budget) begin(r Region, what string, along reach) (*load, error) {
	made := load{what: what, of: r.region, along: along}
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
	switch {
	case r.region == nil && b.whole != nil: // the plan may have no region that it touches
		refused = "refused during a " + b.whole.name() + "; call it when that has returned"
	case r.inside:
		made.outer, refused = b.outer(r)
	default:
		refused = b.beside(made.of, made.along, what)
	}
	if refused != "" {
		return nil, fmt.Errorf("budget %q: %s %s: %w", b.plan.Name, made.name(), refused, ErrLoading)
	}
	l := b.loadOf(r.region)
	*l = made
	if r.region == nil {
		b.whole = l
	}
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

// loadOf returns the region's load, or a new one for the whole budget. pre: no other load touches
// the region.
func (b *Budget) loadOf(r *region) *load {
	if r == nil {
		return new(load)
	}
	return &r.own
}

// along returns the regions that a load of r touches: r and those that stand on it. For nil it
// returns all.
func (b *Budget) along(r *region) reach {
	if r == nil {
		return reach{from: b.regions}
	}
	return reach{b.regions[r.index : r.index+1], r.above}
}

// The result is the reason why running loads exclude a load of these regions, or "". pre: b.mu is
// held.
func (b *Budget) beside(r *region, along reach, what string) (refused string) {
	for _, part := range along.each {
		by := part.busy
		switch {
		case by == nil:
			continue
		case by.scope == (scope.Scope{}) || r == nil || !by.along.at(0).below(r):
			return "refused during a " + by.name() + by.related(r, part) + "; call it when that has returned"
		}
		how := b.plan.Regions[r.level].Name + ".In(s)" // without the slot's number
		if what == "Load" {
			how = "Load(ctx, " + how + ", ...)"
		} else {
			how += "." + what + "(ctx)"
		}
		return fmt.Sprintf("refused during a %s%s; in the function of that load call %s with its scope s, elsewhere "+
			"wait", by.name(), by.related(r, part), how)
	}
	return ""
}

// related returns how the load's region and r, the region of a refused call, are related: one
// stands on the other, or both calls touch part. It is "" if they are one region, and for a call on
// the budget.
func (l *load) related(r, part *region) string {
	switch {
	case r == nil || l.of == nil || l.of == r:
		return ""
	case l.of.below(r):
		return ", on which " + r.name + " stands"
	case r.below(l.of):
		return ", which stands on " + r.name
	}
	return ", and both touch region " + part.name
}

// outer returns the load whose scope is r's token, or the reason why there is none. pre: b.mu is
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
		return nil, "refused: In needs the scope that a running Load passed to its function"
	case !outer.along.at(0).below(r.region):
		return nil, fmt.Sprintf("refused inside a %s: only regions that stand on %s may be touched", outer.name(),
			outer.along.at(0).name)
	case outer.inner != nil:
		return nil, fmt.Sprintf("refused inside a %s, during a %s there; wait for the inner one first", outer.name(),
			outer.inner.name())
	}
	return outer, ""
}

// enter begins a load, shuts its regions to workers, and waits until no worker pins one.
func (b *Budget) enter(ctx context.Context, r Region, what string, along reach) (*load, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("budget %q: %s of region %s: %w", b.plan.Name, what, r.name, err)
	}
	l, err := b.begin(r, what, along)
	if err != nil || l.outer != nil { // the outermost load keeps workers out
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

func (b *Budget) waited(ctx context.Context, l *load, still []string) error {
	return fmt.Errorf("budget %q: %s waited: %s; nothing has changed: call Unpin, then try again: %w", b.plan.Name,
		l.name(), strings.Join(still, ", "), ctx.Err())
}

// inside returns pinned of the regions.
func (b *Budget) inside(regions reach) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinned(regions)
}

// pinned returns a line for each pin on the regions. pre: b.mu is held.
func (b *Budget) pinned(regions reach) (names []string) {
	for _, r := range regions.each {
		for _, d := range r.readers {
			if d.inside.Load() {
				names = append(names, fmt.Sprintf("worker %q has pinned region %s", d.name, r.name))
			}
		}
	}
	return names
}

// keepOut shuts the regions to workers until the load ends, and waits until no worker pins one. If
// ctx ends first, it returns a line for each pin that is left. After a second it calls OnError: a
// goroutine that waits for its own Unpin waits forever.
func (b *Budget) keepOut(ctx context.Context, l *load, regions reach) (still []string) {
	l.shut = regions
	for _, r := range regions.each {
		r.owner.Or(ownerShut)
	}
	start, reported := time.Now(), false
	var timer *time.Timer // one for the whole wait, made when it is needed
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if still = b.inside(regions); still == nil {
			return nil
		}
		if !reported && time.Since(start) > time.Second {
			reported = true
			b.note(fmt.Errorf("budget %q: %s waits: %s; call Unpin", b.plan.Name, l.name(), strings.Join(still, ", ")))
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
}

func (b *Budget) leave(l *load) {
	defer b.end(l) // also when OnWarn panics
	b.publishRegions(l.along, l.what)
	for _, r := range l.along.each {
		r.stack.TellWarning()
	}
}

// publishRegions publishes the touched regions, the lowest first, while the load still owns them.
func (b *Budget) publishRegions(touched reach, what string) {
	p := &b.published
	p.loads.Lock()
	defer p.loads.Unlock()
	for i, r := range touched.each {
		f := &p.regions[r.index]
		f.publishRegion(happened(what, i == 0, r.phase() == empty && f.Used != 0))
	}
}

// happened returns the timeline's mark for a region that a load touched.
func happened(what string, lowest, emptied bool) uint16 {
	switch {
	case what == "Reconfigure":
		return seam.Moved
	case what == "Load" && lowest:
		return seam.Load
	case emptied:
		return seam.Rewind
	}
	return 0
}

// end ends the load. In one move its regions belong to the outer load again, or to their owners and
// workers.
func (b *Budget) end(l *load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.releases {
		l.of.disown()
		if l.of.queue != nil {
			l.of.queue.putSlot()
		}
	}
	for _, part := range l.shut.each {
		part.owner.And(^ownerShut)
		if len(part.waiting) > 0 && part.phase() == loaded {
			part.wake(true)
		}
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
	if b.whole == l {
		b.whole = nil
	}
	if l.begun {
		atWork.ended.Add(1)
	}
}
