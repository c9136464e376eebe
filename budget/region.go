package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Region is a region of an open budget, or a slot from its Acquire to its Release. Rewinding a
// region also rewinds the regions that stand on it, but rewinding a slot doesn't touch its
// siblings ([RegionPlan] shows the tree). A report of misuse in an emptied region names the Load,
// Rewind or Release that emptied the region, in checked builds with the line of that call. Region
// is a small value; copy it freely. The methods of the zero Region panic.
//
// The zero Region takes the place of nil: it is no region, such as the match of a player outside of
// any match. To ask for it, compare: r == (budget.Region{}). Copies of a Region are equal. A slot
// that is acquired again is another Region, and so is the result of In.
type Region struct {
	*region
	owner  uint64      // the owner word when this was made
	in     scope.Scope // see In
	inside bool        // it came from In
}

// region is a region or a slot.
type region struct {
	b       *Budget
	index   int // of its arena in the map
	level   int // its index in the plan
	slot    int // its index among its siblings; -1 without slots
	name    string
	state   bool // see RegionPlan
	track   bool
	tracker *platform.Tracker // nil where pages are compared instead
	// why tracker is nil if the plan has Track; guarded by b.mu
	untracked string
	trims     bool // "trim": "empty"
	trimmed   bool // since the last load; at first no page was used by a load
	zero      bool // trimmed, and all its bytes are zero
	moved     bool // since the last load: it may have another region's bytes
	stack     *stack.Stack
	word      atomic.Uint64 // the phase and the count of its changes: see step
	owner     atomic.Uint64 // see ownerShut
	busy      *load         // the innermost load that touches it; guarded by b.mu
	readers   []*Reader     // guarded by b.mu
	// the *T of the last load, for Get; written while workers are kept out
	value   any
	lent    atomic.Pointer[[]Reader] // of the workers that are lent, by number
	waiting []*Reader                // in PinContext, the first that waits first; guarded by b.mu
	site    arena_c.Site             // of a slot: the line of Acquire
	// of a slot: the goroutine of Acquire, in checked builds; Slots.mu guards it
	goroutine uint64
	queue     *quota // of a slot: the queue of its Slots, or nil

	above []*region // those that stand on it: a part of b.regions
	own   load      // the load that begins here; guarded by b.mu
}

type phase uint64

const (
	empty     phase = iota
	loading         // the load's function runs, or its temporaries close
	loaded          // and frozen
	rewinding       // finalizers run
	phases
)

var phaseNames = [phases]string{"empty", "loading", "loaded", "rewinding"}

// phase returns the phase. pre: the caller owns the region or the whole budget.
func (r *region) phase() phase { return phase(r.word.Load()) % phases }

// step changes the phase and returns the new word. It panics if the phase's bit isn't in from: that
// is a bug of this package.
//
// The word is one atomic number: phases times the count of steps, plus the phase. So each step
// makes a word that the region never had before, and one read answers "still the same load?". For
// example, a load and a rewind of a new region:
//
//	step  phase      word = 4*step + phase
//	0     empty       0
//	1     rewinding   7    a load first empties the region
//	2     empty       8
//	3     loading    13
//	4     loaded     18    Loaded keeps 18, and Get compares
//	5     rewinding  23    Get returns nil from here on
//	6     empty      24
func (r *region) step(to phase, from uint64) (word uint64) {
	now := r.phase()
	if from>>now&1 == 0 {
		panic(fmt.Sprintf("budget: BUG: region %s is %s and becomes %s", r.name, phaseNames[now], phaseNames[to]))
	}
	word = r.word.Load() - uint64(now) + uint64(phases+to)
	r.word.Store(word)
	return word
}

// open begins the load: it opens the scope for fn.
func (r *region) open() scope.Scope {
	r.step(loading, 1<<empty)
	if r.state && (!r.zero || r.moved) {
		r.stack.Clear(r.moved) // Open's bytes are zero
	}
	r.trimmed, r.zero, r.moved = false, false, false
	return scope.At(r.stack.Open(0, r.name))
}

// keep ends the load and returns the new word. It fails if fn left a scope open or ignored that an
// arena was full.
func (r *region) keep() (word uint64, err error) {
	if err := r.stack.Left(1); err != nil {
		return 0, err
	}
	r.stack.Freeze() // first, so that finalizers of temporaries can't allocate in the region
	r.b.note(r.stack.CloseTemp())
	r.stack.TellWarning() // before the region is loaded: a panic of OnWarn is one of the load
	return r.step(loaded, 1<<loading), nil
}

// rewind empties the region and runs its finalizers, newest first. It records the load for reports
// of stale use. At Close it records nothing, so older scopes keep the record of the call that ended
// them.
func (r *region) rewind(l *load, failed bool) error {
	r.step(rewinding, 1<<empty|1<<loading|1<<loaded)
	r.value = nil
	defer r.step(empty, 1<<rewinding) // also when a finalizer ends the goroutine
	if l.of == nil {
		return r.stack.CloseTo(0)
	}
	return r.stack.Empty(l.what, l.of.name, l.site, failed)
}

// The low bits of an owner word; above them is the count of releases. Adding ownerTaken to a taken
// slot clears the bit and counts one. For example, a new slot is 0, acquired 2, released 4,
// acquired again 6. The first owner's Region holds 2, so every call on it fails after the release.
const (
	ownerShut  uint64 = 1 << iota // a load, a rewind or Close keeps workers out
	ownerTaken                    // of a slot: it has an owner
)

func (r *region) taken() bool { return r.owner.Load()&ownerTaken != 0 }

func (r *region) take() Region {
	return Region{region: r, owner: (r.owner.Or(ownerTaken) | ownerTaken) &^ ownerShut}
}

// disown ends the ownership: Regions and Readers of the owner fail from now on. pre: b.mu is held.
func (r *region) disown() {
	r.wake(false)
	r.readers = nil
	r.lent.Store(nil)
	r.owner.Add(ownerTaken)
}

// below reports whether another region stands on r.
func (r *region) below(other *region) bool {
	n := len(r.above)
	return n > 0 && r.above[0].index <= other.index && other.index <= r.above[n-1].index
}

// its returns r.region, and panics for the zero Region.
func (r Region) its() *region {
	if r.region == nil {
		panic("budget: BUG: a zero Region: get one from Budget.Region or Slots.Acquire")
	}
	return r.region
}

// released reports whether r's ownership of the slot has ended.
func (r Region) released() bool { return r.owner != r.its().owner.Load()&^ownerShut }

// Region returns the region of that name. An unknown name, or a region with slots, is a caller's
// bug and panics.
func (b *Budget) Region(name string) Region {
	for _, r := range b.regions {
		if r.name == name && r.slot < 0 {
			return Region{region: r}
		}
	}
	for _, s := range b.slots {
		if s.name == name {
			panic(fmt.Sprintf("budget: BUG: region %q of plan %q has slots: Slots(%q).Acquire gives one", name,
				b.plan.Name, name))
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q; it has %s", b.plan.Name, name, b.regionNames(false)))
}

// regionNames returns the names of the regions with slots, or of those without.
func (b *Budget) regionNames(slots bool) string {
	var names []string
	for _, r := range b.plan.Regions {
		if slots == (r.Slots != 0) {
			names = append(names, r.Name)
		}
	}
	return orNone(names)
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// In returns r with a token, for calls inside a load of a lower region. The token is s, the scope
// that this load passed to its function. While the function runs, Load, Rewind, Release and Trim
// accept the returned Region, one call at a time. After the function has returned, with another
// scope, or for a region that isn't above, they return [ErrLoading]. All other methods work as on
// r. A goroutine that the function started may also use the returned Region. The outer load waits
// for such a call to end; if the call outlasts the function, the outer load reports a bug.
func (r Region) In(s scope.Scope) Region { return Region{r.its(), r.owner, s, true} }

// Name returns the region's name in the plan; a slot's name has its number: "match 3".
func (r Region) Name() string { return r.its().name }

// Slot returns the slot's number among its siblings, from 0, or -1 for a region without slots. A
// program that has a Go value for each slot can index a slice with this number.
func (r Region) Slot() int { return r.its().slot }

// Base returns the base for pointers within this region, such as [arena.Ptr]. These pointers count
// from the region's start, so a copy of the region's bytes can be read on another machine of the
// same architecture.
func (r Region) Base() arena.Base {
	header := r.its().b.table.Row(uint64(r.index))
	return arena.BaseAt(unsafe.Add(unsafe.Pointer(header), header.Arena.Start), header.Size())
}

// emptyAll empties the load's regions, top first, because a region above may point into one below.
// After a failed load, its own region keeps the LoadPeak, which shows how far the load came.
func (l *load) emptyAll(failed bool) (errs []error) {
	insist(l.along.count(), func(i int) {
		i = l.along.count() - 1 - i
		r := l.along.at(i)
		if err := r.rewind(l, failed); err != nil {
			errs = append(errs, err)
		}
		if l.of != nil { // else the whole memory is about to be released
			r.trimEmptied()
		}
		if i > 0 || !failed {
			r.stack.ResetPeak(false)
		}
	})
	return errs
}

// insist calls step for 0 up to n-1. If a finalizer ends the goroutine inside a step, insist calls
// that step again; no finalizer runs twice, so it comes to an end.
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
	for ; i < n; i++ { // no iterator: the rewind's line is the first frame outside the library
		step(i)
	}
}

// Reader lets a worker pin a region. While the region is pinned, each Load, Rewind and Release of
// this region, or of a region below, waits; so do Trim, Reconfigure and a restore (package save) of
// this region. Close fails. A pin only delays the rewind: workers that write the same object need a
// lock of their own. While it pins, the worker gets the value of the newest load from [Get].
type Reader struct {
	region *region
	owner  uint64 // the owner word when this was made
	name   string
	woken  chan bool // for PinContext: whether it has pinned
	inside atomic.Bool
	_      [64]byte // a cache line of its own: each worker writes only its own reader
}

// Reader returns a new reader for a worker. The error of a load that waits in vain has the reader's
// name. Make a reader once, at set-up. A slot's reader ends with the slot's Release, so make it in
// the slot's load, where [Budget.SealStrict] allows the Go allocation.
func (r Region) Reader(name string) *Reader {
	r.its().b.mu.Lock()
	defer r.b.mu.Unlock()
	d := new(Reader)
	r.add(d, strings.Clone(name))
	return d
}

// add makes d a reader. A reader of a released slot always fails. pre: b.mu is held.
func (r Region) add(d *Reader, name string) {
	d.region, d.owner, d.name, d.woken = r.region, r.owner, name, make(chan bool, 1)
	if r.released() {
		return
	}
	r.readers = append(r.readers, d)
	r.waiting = slices.Grow(r.waiting, len(r.readers)-len(r.waiting)) // a wait makes no allocation
}

// readerOf returns the reader of a worker that is lent.
func (r Region) readerOf(worker int) *Reader {
	list := r.lent.Load()
	if list == nil || (*list)[0].owner != r.owner {
		list = r.makeReaders()
	}
	return &(*list)[worker]
}

// makeReaders makes the readers of all workers.
func (r Region) makeReaders() *[]Reader {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if list := r.lent.Load(); list != nil && (*list)[0].owner == r.owner {
		return list
	}
	list := make([]Reader, len(r.b.leases.workers))
	for i := range list {
		r.add(&list[i], fmt.Sprintf("lease %d", i))
	}
	if !r.released() {
		r.lent.Store(&list)
	}
	return &list
}

// Pin pins the region and reports whether it did. The region isn't rewound until Unpin. Pin returns
// false while a Load, Rewind or another call that keeps workers out waits or works, after a slot's
// release, and after Close; do other work before the next try, or call PinContext. A Reader has at
// most one pin: a second Pin before Unpin panics, so make one Reader for each worker. Cost: one
// atomic write and one read.
func (d *Reader) Pin() bool {
	if d.inside.Swap(true) {
		panic(fmt.Sprintf("budget: BUG: %q pins region %s twice: each worker has a Reader of its own", d.name,
			d.region.name))
	}
	if d.region.owner.Load() != d.owner { // shut, or another owner's
		d.inside.Store(false)
		return false
	}
	return true
}

// PinContext pins the region like Pin, and waits while it can't, or while the region isn't loaded.
// When a load ends, each worker that waits gets its pin, the first that waits first, before another
// load can begin. A load that waits for workers lets no more in. So neither waits for more than one
// turn of the other.
//
// If ctx ends first, PinContext returns its error, with the load that kept the worker out and the
// time. After Close, and after a slot's release, the error is [ErrClosed]. Cost: that of Pin, or a
// lock and a wait; no Go allocation, unless it fails.
func (d *Reader) PinContext(ctx context.Context) error {
	r, b := d.its(), d.region.b
	if d.Pin() {
		if r.phase() == loaded {
			return nil
		}
		d.Unpin()
	}
	b.mu.Lock()
	switch owner := r.owner.Load(); {
	case b.closed.Load() || owner&^ownerShut != d.owner:
		b.mu.Unlock()
		return d.ended()
	case owner == d.owner && r.phase() == loaded:
		d.inside.Store(true)
		b.mu.Unlock()
		return nil
	}
	if slices.Contains(r.waiting, d) {
		b.mu.Unlock()
		panic(fmt.Sprintf("budget: BUG: %q waits for region %s twice: each worker has a Reader of its own", d.name,
			r.name))
	}
	r.waiting = append(r.waiting, d)
	b.mu.Unlock()
	start, pinned := time.Now(), false
	select {
	case pinned = <-d.woken:
	case <-ctx.Done():
		b.mu.Lock()
		if i := slices.Index(r.waiting, d); i >= 0 {
			defer b.mu.Unlock()
			r.waiting = slices.Delete(r.waiting, i, i+1)
			why := "it isn't loaded"
			if r.busy != nil {
				why = r.busy.name() + " is at work"
				if pinned := b.pinned(r.busy.along); pinned != nil {
					why = r.busy.name() + " waits: " + strings.Join(pinned, ", ")
				}
			}
			return fmt.Errorf("budget %q: %q waited %v to pin region %s: %s: %w", b.plan.Name, d.name,
				time.Since(start).Round(time.Microsecond), r.name, why, ctx.Err())
		}
		b.mu.Unlock()
		pinned = <-d.woken
	}
	if !pinned {
		return d.ended()
	}
	return nil
}

// its returns d.region, and panics for the zero Reader.
func (d *Reader) its() *region {
	if d.region == nil {
		panic("budget: BUG: a zero Reader: get one from Region.Reader or Lease.Reader")
	}
	return d.region
}

// over reports whether the slot's owner has released it.
func (d *Reader) over() bool { return Region{region: d.region, owner: d.owner}.released() }

// ended returns the error of a pin after Close, or after the slot's release.
func (d *Reader) ended() error {
	return fmt.Errorf("budget %q: %q pins region %s: %w", d.region.b.plan.Name, d.name, d.region.name, ErrClosed)
}

// wake ends the waits of workers. It pins the region for each, or refuses it. pre: b.mu is held.
func (r *region) wake(pin bool) {
	for _, d := range r.waiting {
		d.inside.Store(pin)
		d.woken <- pin
	}
	r.waiting = r.waiting[:0]
}

// Get returns the value that the region's last load returned, valid until Unpin, or nil if the
// region isn't loaded. T is the type of that load. A call with another type, or without a pin, is a
// caller's bug and panics. Cost: two reads and a comparison.
func Get[T any](d *Reader) *T {
	if !d.inside.Load() {
		panic(fmt.Sprintf("budget: BUG: %q reads region %s, which it has not pinned", d.name, d.its().name))
	}
	if d.region.value == nil {
		return nil
	}
	value, of := d.region.value.(*T)
	if !of {
		panic(fmt.Sprintf("budget: BUG: %q reads a %T of region %s, whose load returned a %T", d.name, value,
			d.region.name, d.region.value))
	}
	return value
}

// Unpin ends a pin. Without a pin it is a caller's bug and panics.
func (d *Reader) Unpin() {
	if !d.inside.Swap(false) {
		panic(fmt.Sprintf("budget: BUG: %q unpins region %s, which it has not pinned", d.name, d.its().name))
	}
}

// Report describes the region now, or as of Close. After a slot's release only Name is set. Only
// the goroutine that may load the region may call Report, while no load of a lower region runs. Any
// other goroutine uses [Budget.Published].
func (r Region) Report() ArenaReport {
	if r.released() {
		return ArenaReport{Name: r.name} // the bytes belong to another owner
	}
	if r.b.closed.Load() {
		return r.b.last.Arenas[r.index].clone()
	}
	return r.b.published.regions[r.index].now().ArenaReport
}
