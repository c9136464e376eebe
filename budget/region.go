package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// OpenRegion is a region of an open budget, or one slot of a region for as long as somebody has acquired it. Regions are
// rewound from the top: a region takes along those after it in the plan, a slot never its siblings.
type OpenRegion struct {
	*region
	owner uint64 // the region's owner when this was made
}

// region is a region or a slot.
type region struct {
	b          *Budget
	row        int // in the map
	level      int // in the order of rewinding: its index in the plan
	slot       int // which of its siblings; -1 for a region without slots
	siblings   *OpenSlots
	name       string
	stack      *scope.Stack
	generation atomic.Uint64 // of what is loaded; odd while something is
	gate       atomic.Int32  // loads and rewinds that keep workers out
	owner      atomic.Uint64 // of a slot: moves on when it is released
	doors      []*Door       // guarded by b.mu
}

// released says whether the slot has another owner by now, or none.
func (r *OpenRegion) released() bool { return r.owner != r.region.owner.Load() }

// Name is the region's name in the plan; a slot's is followed by its number: "match 3".
func (r *OpenRegion) Name() string { return r.name }

// Base is what arena.Ptr and its like count from within this region: a copy of the region's bytes can be read on
// another machine.
func (r *OpenRegion) Base() arena.Base {
	row := r.b.table.Row(uint64(r.row))
	return arena.BaseAt(row.Slot(0).At(row.Start), row.End-row.Start)
}

// Rewind empties this region and those above it, top first: finalizers newest first, then the cursor goes back. It
// returns the finalizers' errors. It waits for workers that are inside ([Door]) until ctx ends; then it says who is, and
// nothing has changed.
func (r *OpenRegion) Rewind(ctx context.Context) error {
	defer forgive()()
	l, err := r.b.enter(ctx, r, "Rewind")
	if err != nil {
		return err
	}
	defer r.b.leave(l)
	return emptyAll(l.along)
}

// regionNames are the names that Region knows.
func (b *Budget) regionNames() string {
	var names []string
	for _, r := range b.regions {
		if r.slot < 0 {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, ", ")
}

// along are the regions that go when r is rewound, bottom first: itself and those above it, but not its siblings. nil
// stands for the whole budget.
func (b *Budget) along(r *region) (list []*region) {
	for _, other := range b.regions {
		if r == nil || other.region == r || other.level > r.level {
			list = append(list, other.region)
		}
	}
	return list
}

// emptyAll empties regions, top first.
func emptyAll(regions []*region) error {
	return insist(func() error {
		var errs []error
		for _, r := range slices.Backward(regions) {
			errs = append(errs, r.empty())
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

func (r *region) empty() error {
	if r.generation.Load()%2 == 1 {
		r.generation.Add(1)
	}
	err := r.close()
	r.stack.ResetPeak()
	return err
}

func (r *region) close() error { return r.stack.CloseTo(0) }

// Door is a worker's way into a region. While it is inside, Load and Rewind of the region, or of one below it, wait. It
// keeps the region from being rewound, no more: workers that write the same object still need a lock of their own. A
// worker that follows reloads reads the newest Loaded from an atomic.Pointer that the loader stores to.
type Door struct {
	region *region
	owner  uint64 // the region's owner when this was made
	name   string
	inside atomic.Bool
	_      [64]byte // a line of its own: each worker writes only its own door
}

// Door makes a door for a worker; the name is for the message of a load that waits in vain. Make it once, at set-up; that of
// a slot, which ends with Release, in the slot's load, where Strict forgives the Go allocation.
func (r *OpenRegion) Door(name string) *Door {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	d := &Door{region: r.region, owner: r.owner, name: r.stack.Keep(name)}
	r.doors = append(r.doors, d)
	return d
}

// Enter says true when the worker is inside: until Leave the region isn't rewound. False: it is being loaded or rewound,
// a slot that was released, or the budget is closed; do something else before trying again. Ask Loaded.Get after Enter.
// Cost: one atomic write and two reads.
func (d *Door) Enter() bool {
	if d.inside.Swap(true) {
		panic(fmt.Sprintf("budget: BUG: %s enters region %s twice", d.name, d.region.name))
	}
	if d.region.gate.Load() != 0 || d.region.owner.Load() != d.owner {
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

// inside lists who is inside the regions.
func (b *Budget) inside(regions []*region) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range regions {
		for _, d := range r.doors {
			if d.inside.Load() {
				names = append(names, fmt.Sprintf("%s is inside region %s", d.name, r.name))
			}
		}
	}
	return names
}

// waitOutside waits until nobody is inside the regions; their gates are shut. After a second it tells the
// plan's OnError: a goroutine that waits for its own door waits for ever.
func (b *Budget) waitOutside(ctx context.Context, regions []*region) (still []string) {
	start, told := time.Now(), false
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if still = b.inside(regions); len(still) == 0 {
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
