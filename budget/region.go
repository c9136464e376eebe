package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// OpenRegion is a region of an open budget. Regions are rewound from the top: a region takes along those after it in
// the plan.
type OpenRegion struct {
	b          *Budget
	index      int
	name       string
	stack      *scope.Stack
	generation atomic.Uint64 // of what is loaded; odd while something is
	gate       atomic.Int32  // loads and rewinds that keep workers out
	doors      []*Door       // guarded by b.mu
}

// Name is the region's name in the plan.
func (r *OpenRegion) Name() string { return r.name }

// Base is what arena.Ptr and its like count from within this region: a copy of the region's bytes can be read on
// another machine.
func (r *OpenRegion) Base() arena.Base {
	row := r.b.table.Row(uint64(r.index))
	return arena.BaseAt(row.Slot(0).At(row.Start), row.End-row.Start)
}

// Rewind empties this region and those above it, top first: finalizers newest first, then the cursor goes back. It
// returns the finalizers' errors. It waits for workers that are inside (Door) until ctx ends; then it says who is, and
// nothing has changed.
func (r *OpenRegion) Rewind(ctx context.Context) error {
	l, err := r.b.enter(ctx, r, "Rewind")
	if err != nil {
		return err
	}
	defer r.b.leave(l)
	return r.b.emptyFrom(r.index)
}

// emptyFrom empties the region and those above it.
func (b *Budget) emptyFrom(index int) error {
	return insist(func() error {
		var errs []error
		for i := len(b.regions) - 1; i >= index; i-- {
			errs = append(errs, b.regions[i].empty())
		}
		return errors.Join(errs...)
	})
}

// insist calls fn again when a finalizer ended the goroutine in it: no finalizer runs twice, so it comes to an end.
func insist(fn func() error) (err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		if v := recover(); v != nil {
			panic(v)
		}
		err = errors.Join(err, insist(fn))
	}()
	err = fn()
	finished = true
	return err
}

func (r *OpenRegion) empty() error {
	if r.generation.Load()%2 == 1 {
		r.generation.Add(1)
	}
	err := r.stack.CloseTo(0)
	r.stack.ResetPeak()
	return err
}

// Door is a worker's way into a region. While it is inside, Load and Rewind of the region, or of one below it, wait. It
// keeps the region from being rewound, no more: workers that write the same object still need a lock of their own. A
// worker that follows reloads reads the newest Loaded from an atomic.Pointer that the loader stores to.
type Door struct {
	region *OpenRegion
	name   string
	inside atomic.Bool
	_      [64]byte // a line of its own: each worker writes only its own door
}

// Door makes a door for a worker; the name is for the message of a load that waits in vain. Make it once, at set-up.
func (r *OpenRegion) Door(name string) *Door {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	d := &Door{region: r, name: name}
	r.doors = append(r.doors, d)
	return d
}

// Enter says true when the worker is inside: until Leave the region isn't rewound. False: it is being loaded or rewound,
// or the budget is closed; do something else before trying again. Ask Loaded.Get after Enter. Cost: one atomic write and
// one read.
func (d *Door) Enter() bool {
	if d.inside.Swap(true) {
		panic(fmt.Sprintf("budget: BUG: %s enters region %s twice", d.name, d.region.name))
	}
	if d.region.gate.Load() != 0 {
		d.inside.Store(false)
		return false
	}
	return true
}

// Leave ends what Enter began. Without it, it is a caller's bug and panics.
func (d *Door) Leave() {
	if !d.inside.Swap(false) {
		panic(fmt.Sprintf("budget: BUG: %s leaves region %s without being inside", d.name, d.region.name))
	}
}

// inside lists who is inside the regions from index up.
func (b *Budget) inside(index int) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.regions[index:] {
		for _, d := range r.doors {
			if d.inside.Load() {
				names = append(names, fmt.Sprintf("%s is inside region %s", d.name, r.name))
			}
		}
	}
	return names
}

// waitOutside waits until nobody is inside the regions from index up; their gates are shut. After a second it tells the
// plan's OnError: a goroutine that waits for its own door waits for ever.
func (b *Budget) waitOutside(ctx context.Context, index int) (still []string) {
	start, told := time.Now(), false
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if still = b.inside(index); len(still) == 0 {
			return nil
		}
		if !told && time.Since(start) > time.Second {
			told = true
			b.note(fmt.Errorf("budget %q: waiting for %s", b.plan.Name, strings.Join(still, ", ")))
		}
		select {
		case <-ctx.Done():
			return still
		case <-time.After(pause):
		}
	}
}
