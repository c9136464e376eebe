package model_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

const (
	maxScopes = 6
	maxPools  = 4
	maxOwned  = 4000
	maxLabels = 64 // never full
	rooms     = 2
	helper    = 0 // the worker for the scratch arenas of finalizers
	worker    = 1 // the program's own
	workers   = 4
	logged    = 400
)

var background = context.Background()

func plan() budget.Plan {
	return budget.Plan{Name: "model",
		Regions: []budget.RegionPlan{{Name: "init", Size: 128 * budget.KiB},
			{Name: "room", Size: 192 * budget.KiB, Slots: rooms}, {Name: "level", Size: 256 * budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: workers, Size: 64 * budget.KiB},
		Limits:  budget.Limits{Scopes: maxScopes, Pools: maxPools, Owned: maxOwned, Labels: maxLabels}}
}

// world is a budget and a program's objects in it.
type world struct {
	b          *budget.Budget
	base       unsafe.Pointer // of the budget
	random     *rand.Rand
	arenas     []*arena
	parts      []*part
	frames     []*arena
	frame      int
	scratches  []*arena
	leases     []lease
	given      []budget.Lease
	free       []int // pairs that may be leased
	running    []*load
	emptied    []*part       // by running calls, bottom first
	over       []scope.Scope // of loads whose functions ended
	finalizers map[int64]*finalizer
	stale      []scope.Scope
	gone       []*life
	held       []*held
	pools      []*pool
	lists      []*list
	ran        []int64 // finalizers
	now        int64   // the finalizer that runs out of its turn
	id         int64
	steps      int
	limit      int // of steps
	layers     int // calls that call back
	flight     *life
	exiting    bool              // a function ends the goroutine
	exits      bool              // finalizers may end the goroutine
	wideAligns bool              // offsets of wide alignments follow from the address
	curious    bool              // Err of each scope is called after every step
	offsets    uint64            // a hash of them, and of the peaks
	reported   int               // errors in the report
	recording  *record.Recording // of every other program
	recorded   bytes.Buffer
	did        map[string]int
	log        []string
	failed     string
}

func newWorld(seed uint64, limit int) (*world, error) {
	b, err := budget.Open(plan())
	if err != nil {
		return nil, err
	}
	w := &world{b: b, random: rand.New(rand.NewPCG(seed, 18)), finalizers: map[int64]*finalizer{},
		did:   map[string]int{},
		exits: seed%2 == 0, wideAligns: seed%4 == 2, curious: seed%3 == 0, limit: limit, free: []int{3, 2}}
	if seed%2 == 1 {
		if w.recording, err = record.Start(b, &w.recorded); err != nil {
			return nil, err
		}
	}
	current = w
	clib.Finalize = func(id int64) { _ = w.finalize(id) }
	b.Scratches(helper)
	b.Scratches(worker)
	w.layOut()
	for i := range w.frames {
		w.frames[i].base = 1
	}
	w.frames[0].open(b.Frame(), "frame")
	return w, nil
}

// place returns the offset that an arena charges for an object: its place, except in checked and
// asan builds.
func (w *world) place(a *arena, p unsafe.Pointer) uint64 {
	return uint64(uintptr(w.base)) + arena_c.Place(p, w.base) - a.start
}

// layOut takes the arenas' places from Walk.
func (w *world) layOut() {
	w.base = unsafe.Pointer(unsafe.SliceData(w.b.Base().Bytes()))
	ranges, err := w.b.Walk()
	w.check(err == nil, "Walk: %v", err)
	byName := map[string]*arena{}
	for _, r := range ranges {
		if a := byName[r.Arena]; a != nil && (r.What == "used" || r.What == "free") {
			a.size += r.Size
		} else if r.What == "used" || r.What == "free" {
			byName[r.Arena] = &arena{name: r.Arena, start: uint64(uintptr(w.base)) + r.Offset, size: r.Size}
			w.arenas = append(w.arenas, byName[r.Arena])
		}
	}
	for i, name := range []string{"init", "room 0", "room 1", "level"} {
		p := &part{arena: byName[name], level: []int{0, 1, 1, 2}[i]}
		if p.slot = p.level == 1; !p.slot {
			p.region = w.b.Region(name)
		}
		w.parts = append(w.parts, p)
	}
	w.frames = []*arena{byName["frame 0"], byName["frame 1"]}
	for i := range 2 * workers {
		w.scratches = append(w.scratches, byName[fmt.Sprintf("scratch %d.%d", i/2, i%2)])
	}
}

func (w *world) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *world) good() bool { return w.failed == "" }

func (w *world) say(format string, args ...any) {
	if w.good() {
		w.log = append(w.log, strings.Repeat("  ", w.layers)+fmt.Sprintf(format, args...))
	}
}

// fail keeps the first failure: later ones may follow from it.
func (w *world) fail(format string, args ...any) {
	if w.good() {
		w.failed = fmt.Sprintf(format, args...)
	}
}

func (w *world) check(ok bool, format string, args ...any) {
	if !ok {
		w.fail(format, args...)
	}
}

// recovered returns the panic of fn.
func (w *world) recovered(fn func()) (v any) {
	defer func() { v = recover() }()
	fn()
	return nil
}

func (w *world) hash(words ...uint64) {
	if w.wideAligns {
		return
	}
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, append(words, w.offsets))
	w.offsets = h.Sum64()
}

// reported is a set of reported errors: their kinds, and the finalizers that failed.
type reported struct {
	full, wrong bool
	other       error
	ids         []int64
	exits       bool // a finalizer ended the goroutine
}

func (t *reported) add(u reported) {
	t.full, t.wrong = t.full || u.full, t.wrong || u.wrong
	t.ids = append(t.ids, u.ids...)
	t.exits = t.exits || u.exits
}

func (t *reported) any() bool { return t.full || t.wrong || t.other != nil || len(t.ids) > 0 }

// expect compares an error with the errors that should be reported.
func (w *world) expect(what string, err error, t reported) {
	var misuse *scope.Misuse
	w.check((err != nil) == t.any(), "%s says %v, and not %+v", what, err, t)
	if err == nil || len(t.ids) > 10 {
		return
	}
	w.check(errors.Is(err, scope.ErrFull) == t.full, "%s says %v, and there was a full: %v", what, err, t.full)
	w.check(errors.As(err, &misuse) == t.wrong, "%s says %v, and there was misuse: %v", what, err, t.wrong)
	w.check(errors.Is(err, errLoader) == (t.other != nil && errors.Is(t.other, errLoader)), "%s says %v", what, err)
	for _, id := range t.ids {
		w.check(strings.Contains(err.Error(), fmt.Sprintf("object#%d ", id)), "%s doesn't say that %d failed: %v",
			what, id, err)
	}
	w.check(strings.Count(err.Error(), "object#") == len(t.ids)+otherIDs(t.other), "%s says %v, and %v failed",
		what, err, t.ids)
	w.check(!strings.Contains(err.Error(), "runtime error"), "%s: %v", what, err)
}

func otherIDs(err error) int {
	if err == nil {
		return 0
	}
	return strings.Count(err.Error(), "object#")
}

// compare checks all rules that hold at any time.
func (w *world) compare() {
	if !w.good() {
		return
	}
	for _, a := range w.arenas {
		w.compareItems(a)
		for _, s := range slices.Concat(a.near, a.far) {
			for _, n := range s.nodes {
				w.check(!w.began(n), "%s is open, and of its finalizers one ran", s.name)
			}
			if w.curious {
				w.expect("Err of "+s.name, s.real.Err(), reported{full: s.full && !s.wrong, wrong: s.wrong})
			}
		}
	}
	r := w.b.Report()
	for i, p := range w.parts {
		w.compareFigures(p.arena, r.Arenas[i].Used, r.Arenas[i].Peak, r.Arenas[i].Finalizers)
		w.check((p.loaded.Get() != nil) == p.alive, "%s is loaded: %v", p.arena.name, p.loaded.Get() != nil)
	}
	for i, a := range w.frames {
		is := r.Arenas[len(w.parts)+i]
		w.compareFigures(a, is.Used, is.Peak, is.Finalizers)
	}
	for i, a := range w.scratches {
		if scratch, ok := w.scratch(i); ok {
			s := scratch.Stats()
			w.compareFigures(a, s.Used, s.Peak, s.Finalizers)
			w.check(scratch.Depth() == len(a.near), "%s has %d open scopes, not %d", a.name, scratch.Depth(),
				len(a.near))
		}
	}
	w.check(r.ErrorCount == w.reported, "the report has %d errors, not %d: %q", r.ErrorCount, w.reported, r.Errors)
	if _, err := w.b.Walk(); err != nil {
		w.fail("Walk: %v", err)
	}
}

// compareFigures: the peak only rises and is at least the used bytes; a scope frees its bytes when
// it closes.
func (w *world) compareFigures(a *arena, used, peak, finalizers uint64) {
	w.check(max(used, a.peak) <= peak && peak <= a.size, "%s uses %d, with a peak of %d after %d",
		a.name, used, peak, a.peak)
	w.check(len(a.near) > 0 || used == 0, "%s uses %d without a scope", a.name, used)
	if a.back != nil {
		w.check(used == *a.back, "%s uses %d, and %d before what closed was opened", a.name, used, *a.back)
	}
	w.check(finalizers == a.ran, "%s ran %d finalizers, not %d", a.name, finalizers, a.ran)
	a.used, a.peak, a.back = used, peak, nil
	w.hash(used, peak)
}

// compareItems compares the bytes of all live items of an arena: they have their contents, are
// inside the arena, and don't overlap.
func (w *world) compareItems(a *arena) {
	var all []*item
	for _, s := range slices.Concat(a.near, a.far) {
		all = append(all, s.items...)
	}
	for _, p := range w.pools {
		if p.of.arena == a && p.there() {
			for _, c := range p.live {
				all = append(all, c.item)
			}
		}
	}
	slices.SortFunc(all, func(x, y *item) int { return int(x.at) - int(y.at) })
	end := uint64(0)
	for _, it := range all {
		if len(it.real) == 0 {
			continue
		}
		if !bytes.Equal(it.real, it.copy) {
			w.fail("%s: what lies at %d has other bytes than were written", a.name, it.at)
			return
		}
		w.check(it.at >= end && it.at+uint64(len(it.real)) <= a.size,
			"%s: what lies at %d overlaps another, or the edge", a.name, it.at)
		end = it.at + uint64(len(it.real))
	}
}

// pick returns a scope for a step: mostly the topmost of an arena, sometimes one that may not
// allocate. It returns nil if no scope is open.
func (w *world) pick(inner *life) *life {
	if n := len(w.gone); n > 0 && w.chance(12) {
		return w.gone[w.random.IntN(n)]
	}
	a := w.frames[w.frame]
	switch n := w.random.IntN(8); {
	case n < 4 && inner != nil:
		a = inner.arena
	case n < 6:
		a = w.scratches[2*worker+w.random.IntN(2)]
	case n == 6 && len(w.leases) > 0:
		a = w.scratches[2*w.leases[0].pair+w.random.IntN(2)]
	case n == 7:
		a = w.arenas[w.random.IntN(len(w.parts))]
	}
	list := a.near
	if len(a.far) > 0 && w.chance(3) {
		list = a.far
	}
	switch {
	case len(list) == 0:
		return nil
	case w.chance(8):
		return list[w.random.IntN(len(list))]
	}
	return list[len(list)-1]
}
