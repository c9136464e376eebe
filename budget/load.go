package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// Loaded is what a load made. It is a small value. Who reloads keeps it in a variable; workers that follow reloads read it
// from an atomic.Pointer[Loaded[T]] that the loader stores to.
type Loaded[T any] struct {
	region     *region
	generation uint64
	value      *T
}

// Get is the value, or nil after the region was rewound. Any goroutine may ask; to keep it while working, be inside
// ([Door]). Cost: one atomic read.
func (l Loaded[T]) Get() *T {
	if l.region == nil || l.region.generation.Load() != l.generation {
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
// Inside fn a region above may be loaded. The same or a lower one, any from a finalizer that a load or rewind runs, and
// from another goroutine one that touches what this one touches, is ErrLoading, and nothing changes. Frame and pads
// stand beside: pad scopes that fn opened are closed when it fails, and stay when it doesn't.
//
// Load waits for workers inside ([Door]) until ctx ends, and then says who is; a ctx that has ended already is refused at
// once; in both cases nothing changes. After a second of waiting OnError is told. fn itself watches ctx if it wants to.
func Load[T any](ctx context.Context, r *OpenRegion, fn func(scope.Scope) (*T, error)) (Loaded[T], error) {
	defer forgive()()
	var value *T
	generation, err := r.load(ctx, func(s scope.Scope) (err error) {
		if value, err = fn(s); err == nil {
			err = r.outlives(unsafe.Pointer(value), uint64(unsafe.Sizeof(*value)))
		}
		return err
	})
	if err != nil {
		return Loaded[T]{}, err
	}
	return Loaded[T]{r.region, generation, value}, nil
}

// load is one Load, Rewind, Release, Reconfigure or Close at work. On one goroutine they nest, upwards; on several they
// stand beside each other as long as no region is touched by two.
type load struct {
	region    *region // nil: Close or Reconfigure, which touch all
	along     []*region
	what      string
	goroutine uintptr
	entered   bool // no worker is inside, and none gets in
	releases  bool // the region is a slot that is given back when this ends
	inside    bool // fn is running; only its goroutine reads and writes this
	pads      []openPad
}

// openPad is a pad on which the load opened scopes, and how many were open before.
type openPad struct {
	pad   *scope.Stack
	depth int
}

func (r *OpenRegion) load(ctx context.Context, fn func(scope.Scope) error) (generation uint64, err error) {
	l, err := r.b.enter(ctx, r, "Load")
	if err != nil {
		return 0, err
	}
	defer r.b.leave(l)
	r.b.note(emptyAll(l.along))
	loaded := false
	defer func() {
		if loaded {
			return
		}
		l.inside = false
		verdict, other := r.stack.Verdict(recover(), err, 0)
		err = r.b.undo(l, verdict)
		if verdict == nil {
			r.b.note(err) // fn panics, or ends its goroutine: nobody gets what Load returns
		}
		if other != nil {
			panic(other)
		}
	}()
	r.stack.CountNames(true)
	s := r.stack.Open(r.name)
	l.inside = true
	err = fn(s)
	l.inside = false
	if err == nil {
		err = errors.Join(r.stack.LeftOpen(1), r.stack.Remembered(0))
	}
	if err == nil {
		generation = r.keep()
		loaded = true
	}
	return generation, err
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

// keep makes what fn made final.
func (r *region) keep() (generation uint64) {
	r.stack.Freeze() // first: finalizers of temporaries may not add to what is loaded
	r.b.note(errors.Join(r.stack.CloseTemp(), r.stack.Lost()))
	return r.generation.Add(1) // here: others may rewind it as soon as this load is over
}

// undo empties the region after a load that failed, and those above it first: what fn loaded there may point into it.
func (b *Budget) undo(l *load, verdict error) error {
	return insist(func() error {
		return errors.Join(verdict, b.closePads(l), emptyAll(l.along[1:]), l.region.close())
	})
}

// closePads closes the pad scopes that the load opened and left open.
func (b *Budget) closePads(l *load) error {
	b.mu.Lock()
	pads := slices.Clone(l.pads)
	b.mu.Unlock()
	var errs []error
	for _, o := range pads {
		errs = append(errs, o.pad.CloseTo(o.depth))
	}
	return errors.Join(errs...)
}

// begin takes a place among the loads, or says why there is none. r is nil for Close and Reconfigure.
func (b *Budget) begin(r *OpenRegion, what string) (*load, error) {
	l := &load{what: what, goroutine: goroutine()}
	if r != nil {
		l.region = r.region
	}
	l.along = b.along(l.region)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	if r != nil && r.released() {
		return nil, fmt.Errorf("budget %q: BUG: %s, which was released: %w", b.plan.Name, l.name(), ErrClosed)
	}
	if running := b.innermost(l.goroutine); running != nil {
		if err := b.nests(l, running); err != nil {
			return nil, err
		}
	}
	for _, running := range b.loads {
		if running.goroutine != l.goroutine && slices.ContainsFunc(l.along, running.touches) {
			return nil, fmt.Errorf("budget %q: %s during a %s on another goroutine: %w", b.plan.Name, l.name(), running.name(),
				ErrLoading)
		}
	}
	b.loads = append(b.loads, l)
	b.watch.Arm(b.noteOpen)
	return l, nil
}

// nests says why l can't be inside a load that runs on the same goroutine.
func (b *Budget) nests(l, running *load) error {
	switch {
	case !running.inside:
		return fmt.Errorf("budget %q: %s from a finalizer, during a %s: %w", b.plan.Name, l.name(), running.name(), ErrLoading)
	case l.region == nil:
		return fmt.Errorf("budget %q: %s inside a %s: %w", b.plan.Name, l.name(), running.name(), ErrLoading)
	case l.region.level <= running.region.level:
		return fmt.Errorf("budget %q: %s inside a %s; only regions above it may be touched: %w", b.plan.Name, l.name(),
			running.name(), ErrLoading)
	}
	return nil
}

// innermost is the load that began last on a goroutine, or nil. pre: b.mu is held.
func (b *Budget) innermost(goroutine uintptr) *load {
	for _, l := range slices.Backward(b.loads) {
		if l.goroutine == goroutine {
			return l
		}
	}
	return nil
}

func (l *load) touches(r *region) bool { return slices.Contains(l.along, r) }

// name is what the load is called in messages: "Load of region level".
func (l *load) name() string {
	if l.region == nil {
		return l.what
	}
	return l.what + " of region " + l.region.name
}

func (b *Budget) end(l *load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads = slices.DeleteFunc(b.loads, func(other *load) bool { return other == l })
	if l.releases {
		l.region.giveBack()
	}
	if outer := b.innermost(l.goroutine); outer != nil {
		outer.pads = append(outer.pads, l.pads...)
	}
	if len(b.loads) == 0 {
		b.watch.Arm(nil)
	}
}

// enter is begin, with the workers outside and kept there.
func (b *Budget) enter(ctx context.Context, r *OpenRegion, what string) (*load, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("budget %q: %s of region %s: %w", b.plan.Name, what, r.name, err)
	}
	l, err := b.begin(r, what)
	if err != nil {
		return nil, err
	}
	shut(l.along, 1)
	defer func() { // also when the plan's OnError ends the goroutine
		if !l.entered {
			b.leave(l)
		}
	}()
	if still := b.waitOutside(ctx, l.along); still != nil {
		return nil, fmt.Errorf("budget %q: %s waited for workers: %s: %w", b.plan.Name, l.name(), strings.Join(still, ", "), ctx.Err())
	}
	l.entered = true
	return l, nil
}

func (b *Budget) leave(l *load) {
	if l.entered {
		b.publishRegions(l.along)
	}
	shut(l.along, -1)
	b.end(l)
}

// shut keeps workers out of the regions; by -1 it lets them in again.
func shut(regions []*region, by int32) {
	for _, r := range regions {
		r.gate.Add(by)
	}
}

// noteOpen remembers a pad on which a load's goroutine opens its first scope. Workers open scopes on their own pads
// meanwhile: they pay a lock for as long as something loads.
func (b *Budget) noteOpen(pad *scope.Stack) {
	me, depth := goroutine(), pad.Depth()-1
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.loads { // what was open from here up is closed by now
		l.pads = slices.DeleteFunc(l.pads, func(o openPad) bool { return o.pad == pad && o.depth >= depth })
	}
	l := b.innermost(me)
	if l == nil {
		return
	}
	if !slices.ContainsFunc(l.pads, func(o openPad) bool { return o.pad == pad }) {
		l.pads = append(l.pads, openPad{pad, depth})
	}
}
