package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// Region is a region of an open budget, or one slot of a region for as long as somebody has acquired it. Regions are
// rewound from the top: a region takes along those after it in the plan, a slot never its siblings ([RegionPlan] shows the
// order). Who comes with a scope, pool or container of a region that was emptied is told by which load, and when. It is a small
// value; copy it freely. The zero Region is nobody's: its methods panic.
type Region struct {
	*region
	owner  uint64      // the region's owner when this was made
	in     scope.Scope // see In
	inside bool        // it came from In
}

// region is a region or a slot.
type region struct {
	b       *Budget
	index   int // of its arena in the map
	level   int // in the order of rewinding: its index in the plan
	slot    int // which of its siblings; -1 for a region without slots
	name    string
	state   bool // see RegionPlan
	track   bool
	tracker *platform.Tracker // of its pages; nil where they are compared instead
	// why tracker is nil, if the plan has the region tracked; guarded by b.mu
	untracked string
	stack     *scope.Stack
	word      atomic.Uint64 // its phase, and how often that changed: see step
	owner     atomic.Uint64 // whom its readers let in: see ownerShut
	busy      *load         // the innermost that touches it; guarded by b.mu
	readers   []*Reader     // guarded by b.mu
	site      arena_c.Site  // of a slot, where it was acquired

	siblingsEnd int  // among the budget's regions: those above begin there
	own         load // the one that begins here; guarded by b.mu
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
	if r.state {
		r.stack.Clear()
	}
	return r.stack.Open(r.name)
}

// keep makes it final, if its function closed what it opened and heeded what was reported to it.
func (r *region) keep() (word uint64, err error) {
	if err := r.stack.Left(1); err != nil {
		return 0, err
	}
	r.stack.Freeze() // first: finalizers of temporaries may not add to what is loaded
	r.b.note(r.stack.CloseTemp())
	return r.step(loaded, loading), nil
}

// rewind empties the region, finalizers newest first. Who comes with what was there is told of the load, but what came with a
// scope that had ended before Close is told of that.
func (r *region) rewind(l *load, failed bool) error {
	r.step(rewinding, empty, loading, loaded)
	defer r.step(empty, rewinding) // also when a finalizer ends the goroutine
	if l.of == nil {
		return r.stack.CloseTo(0)
	}
	return r.stack.Empty(l.what, l.of.name, l.site, failed)
}

// Of an owner word. Above stands how often the slot was released.
const (
	ownerShut  uint64 = 1 << iota // a load, a rewind or Close keeps workers out
	ownerTaken                    // of a slot: somebody acquired it
)

// taken says whether somebody has the slot.
func (r *region) taken() bool { return r.owner.Load()&ownerTaken != 0 }

// take is for who acquires a slot that is free.
func (r *region) take() Region {
	return Region{region: r, owner: (r.owner.Or(ownerTaken) | ownerTaken) &^ ownerShut}
}

// disown ends the owner's time: what he has refuses from now on. pre: b.mu is held.
func (r *region) disown() {
	r.readers = nil
	r.owner.Add(ownerTaken)
}

// its is r, unless nobody gave it.
func (r Region) its() *region {
	if r.region == nil {
		panic("budget: BUG: a zero Region: Budget.Region gives one, and Slots.Acquire")
	}
	return r.region
}

// released says whether the slot has another owner by now, or none.
func (r Region) released() bool { return r.owner != r.its().owner.Load()&^ownerShut }

// Region is the region of that name, one without slots. An unknown name is a caller's bug and panics with the names there
// are.
func (b *Budget) Region(name string) Region {
	for _, r := range b.regions {
		if r.name == name && r.slot < 0 {
			return Region{region: r}
		}
	}
	for _, s := range b.slots {
		if s.name == name {
			panic(fmt.Sprintf("budget: BUG: region %q of plan %q has slots: Slots(%q).Acquire gives one", name, b.plan.Name, name))
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q; it has %s", b.plan.Name, name, b.regionNames(false)))
}

// regionNames are the names of the regions with slots, or of those without.
func (b *Budget) regionNames(slots bool) string {
	var names []string
	for _, r := range b.plan.Regions {
		if slots == (r.Slots != 0) {
			names = append(names, r.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// In is the region for who is inside a load of a lower one: s is the scope that the load's function
// was given, and the proof. Load, Rewind and Release take it, one at a time, as long as that
// function runs; after that, and with any other scope, they are ErrLoading. For everything else it
// is as the region itself. A goroutine that the function started may use it too; a load ends when
// what goes on inside has ended, and reports one that outlasts its function as a bug.
func (r Region) In(s scope.Scope) Region { return Region{r.its(), r.owner, s, true} }

// Name is the region's name in the plan; a slot's is followed by its number: "match 3".
func (r Region) Name() string { return r.its().name }

// Slot returns the slot's number among its siblings, from 0; -1 for a region without slots. A program
// that has a Go value for each slot keeps them in a slice by that number.
func (r Region) Slot() int { return r.its().slot }

// Base is what arena.Ptr and its like count from within this region: a copy of the region's bytes can be read on
// another machine.
func (r Region) Base() arena.Base {
	header := r.its().b.table.Row(uint64(r.index))
	return arena.BaseAt(unsafe.Add(unsafe.Pointer(header), header.Arena.Start), header.Size())
}

// emptyAll empties the regions of a load, top first: what lies above may point into what is below. After a load that
// failed the peak of its region stays: how far it came.
func (l *load) emptyAll(failed bool) (errs []error) {
	insist(l.along.count(), func(i int) {
		i = l.along.count() - 1 - i
		r := l.along.at(i)
		if err := r.rewind(l, failed); err != nil {
			errs = append(errs, err)
		}
		if i > 0 || !failed {
			r.stack.ResetPeak(false)
		}
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
	for ; i < n; i++ { // no iterator: who rewound is found by the first call outside of the library
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
func (r Region) Reader(name string) *Reader {
	r.its().b.mu.Lock()
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

// Report are the figures of this region now; after Close, as they were then. It is for who may load it, while no load below
// does; any other goroutine has [Budget.Published].
func (r Region) Report() ArenaReport {
	if r.released() {
		return ArenaReport{Name: r.name} // the figures are another owner's
	}
	if r.b.closed.Load() {
		return r.b.last.Arenas[r.index].clone()
	}
	return r.b.published.regions[r.index].now().ArenaReport
}
