package budget

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// Loaded is what a load made. It is a small value. Who reloads keeps it in a variable; workers that follow reloads read it
// from an atomic.Pointer[Loaded[T]] that the loader stores to.
type Loaded[T any] struct {
	region     *OpenRegion
	generation uint64
	value      *T
}

// Get is the value, or nil after the region was rewound. Any goroutine may ask; to keep it while working, be inside
// (Door). Cost: one atomic read.
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
// OnError, never into the verdict.
//
// Inside fn a region above may be loaded. The same or a lower one, or any from another goroutine or from a finalizer
// that a load or rewind runs, is ErrLoading, and nothing changes. Frame and pads stand beside: pad scopes that fn opened
// are closed when it fails, and stay when it doesn't.
//
// Load waits for workers inside (Door) until ctx ends, and then says who is; a ctx that has ended already is refused at
// once; in both cases nothing changes. After a second of waiting OnError is told. fn itself watches ctx if it wants to.
func Load[T any](ctx context.Context, r *OpenRegion, fn func(scope.Scope) (*T, error)) (Loaded[T], error) {
	var value *T
	err := r.load(ctx, func(s scope.Scope) (err error) {
		if value, err = fn(s); err == nil {
			err = r.outlives(unsafe.Pointer(value))
		}
		return err
	})
	if err != nil {
		return Loaded[T]{}, err
	}
	return Loaded[T]{r, r.generation.Load(), value}, nil
}

// load is one Load, Rewind or Close at work. They nest, upwards, on one goroutine.
type load struct {
	region    *OpenRegion
	what      string
	goroutine string
	inside    bool // fn is running; only its goroutine reads and writes this
	pads      []openPad
}

// openPad is a pad on which the load opened scopes, and how many were open before.
type openPad struct {
	pad   *scope.Stack
	depth int
}

func (r *OpenRegion) load(ctx context.Context, fn func(scope.Scope) error) (err error) {
	l, err := r.b.enter(ctx, r, "Load")
	if err != nil {
		return err
	}
	defer r.b.leave(l)
	r.b.note(r.b.emptyFrom(r.index))
	loaded := false
	defer func() {
		if loaded {
			return
		}
		l.inside = false
		verdict, other := r.stack.Verdict(recover(), err)
		err = r.undo(l, verdict)
		if other != nil {
			panic(other)
		}
	}()
	s := r.stack.Open(r.name)
	l.inside = true
	err = fn(s)
	l.inside = false
	if err == nil {
		err = errors.Join(r.stack.LeftOpen(1), r.stack.Remembered(0))
	}
	if err == nil {
		r.keep()
		loaded = true
	}
	return err
}

// outlives refuses a value that would be gone when the load returns: one in the temporaries, or in a scope inside the
// load's.
func (r *OpenRegion) outlives(value unsafe.Pointer) error {
	if value == nil || r.stack.Depth() != 1 || r.stack.Keeps(value) {
		return nil
	}
	return fmt.Errorf("budget %q: BUG: the value that a Load of region %s returns lies in its temporaries, or in a scope that closed; "+
		"both are gone when Load returns", r.b.plan.Name, r.name)
}

// keep makes what fn made final.
func (r *OpenRegion) keep() {
	r.b.note(r.stack.CloseTemp())
	r.stack.Freeze()
	r.generation.Add(1)
}

// undo empties the region after a load that failed, and those above it first: what fn loaded there may point into it.
func (r *OpenRegion) undo(l *load, verdict error) error {
	return insist(func() error {
		return errors.Join(verdict, r.b.closePads(l), r.b.emptyFrom(r.index+1), r.stack.CloseTo(0))
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

// begin takes a place among the loads, or says why there is none.
func (b *Budget) begin(r *OpenRegion, what string) (*load, error) {
	l := &load{region: r, what: what, goroutine: goroutine()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: %s: %w", b.plan.Name, what, ErrClosed)
	}
	if n := len(b.loads); n > 0 {
		running := b.loads[n-1]
		if running.goroutine != l.goroutine {
			return nil, fmt.Errorf("budget %q: %s of region %s during a %s of region %s on another goroutine: %w", b.plan.Name, what,
				r.name, running.what, running.region.name, ErrLoading)
		}
		if !running.inside {
			return nil, fmt.Errorf("budget %q: %s of region %s from a finalizer, during a %s of region %s: %w", b.plan.Name, what,
				r.name, running.what, running.region.name, ErrLoading)
		}
		if what == "Close" {
			return nil, fmt.Errorf("budget %q: Close inside a %s of region %s: %w", b.plan.Name, running.what,
				running.region.name, ErrLoading)
		}
		if r.index <= running.region.index {
			return nil, fmt.Errorf("budget %q: %s of region %s inside a %s of region %s; only regions above it may be touched: %w",
				b.plan.Name, what, r.name, running.what, running.region.name, ErrLoading)
		}
	}
	b.loads = append(b.loads, l)
	b.watch.Arm(b.noteOpen)
	return l, nil
}

func (b *Budget) end(l *load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads = b.loads[:len(b.loads)-1]
	if n := len(b.loads); n > 0 {
		b.loads[n-1].pads = append(b.loads[n-1].pads, l.pads...)
	} else {
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
	b.shut(r.index, 1)
	if still := b.waitOutside(ctx, r.index); still != nil {
		b.leave(l)
		return nil, fmt.Errorf("budget %q: %s of region %s waited for workers: %s: %w", b.plan.Name, what, r.name,
			strings.Join(still, ", "), ctx.Err())
	}
	return l, nil
}

func (b *Budget) leave(l *load) {
	b.shut(l.region.index, -1)
	b.end(l)
}

// shut keeps workers out of the regions from index up; by -1 it lets them in again.
func (b *Budget) shut(index int, by int32) {
	for _, r := range b.regions[index:] {
		r.gate.Add(by)
	}
}

// noteOpen remembers a pad on which a load's goroutine opens its first scope. Workers open scopes on their own pads
// meanwhile: they pay the goroutine's name for as long as something loads.
func (b *Budget) noteOpen(pad *scope.Stack) {
	me, depth := goroutine(), pad.Depth()-1
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.loads { // what was open from here up is closed by now
		l.pads = slices.DeleteFunc(l.pads, func(o openPad) bool { return o.pad == pad && o.depth >= depth })
	}
	if len(b.loads) == 0 || b.loads[len(b.loads)-1].goroutine != me {
		return
	}
	l := b.loads[len(b.loads)-1]
	if !slices.ContainsFunc(l.pads, func(o openPad) bool { return o.pad == pad }) {
		l.pads = append(l.pads, openPad{pad, depth})
	}
}

// goroutine names the goroutine. Go has no call for it but the head of its stack trace: "goroutine 7 [running]". A load
// can afford the microsecond, and must not mistake another goroutine for its own.
func goroutine() string {
	var buf [64]byte
	head, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
	return head
}
