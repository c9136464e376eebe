package budget_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// house is a random program with all that a plan can have: slots that are acquired, loaded and released, loads in each
// other and beside each other, pads on loan, and edges that are redrawn. It does each thing to the budget and to a plain
// model, and compares them after each.
type house struct {
	program
	plan    budget.Plan
	parts   []*housePart
	pads    []*housePad
	free    []int // pairs that may be lent, in the order in which they will be
	lent    []houseLent
	given   []budget.Lent
	running []*houseLoad
	loadID  int
	ended   []scope.Scope // of loads whose functions ended: proofs of nothing
	arena   map[int64]int
	leavers bool           // there are finalizers that end the goroutine
	leaves  map[int64]bool // those
	did     map[string]int // a program that does nothing proves nothing
}

// housePart is a region or slot.
type housePart struct {
	modelStack
	name   string
	level  int
	slot   int                  // -1: none
	region *budget.OpenRegion   // nil: a slot that nobody has
	stale  []*budget.OpenRegion // of owners before
	loaded budget.Loaded[frog]
	alive  bool
}

// houseLoad is a load that is at work.
type houseLoad struct {
	id, part int
	scope    scope.Scope
	outer    *houseLoad // that it is inside of
}

// houseClaim is what somebody says who touches a region: of which load he has the scope.
type houseClaim struct {
	what  string
	of    *houseLoad // nil: of none that is at work
	scope scope.Scope
}

// housePad is a pad and the scopes that are open there.
type housePad struct {
	modelStack
	tops []scope.Scope
}

type houseLent struct {
	budget.Lent
	pair int
}

const (
	houseRooms = 3
	houseUnit  = 128 * budget.KiB
	houseFixed = 0 // the worker whose pads are asked for by number
)

func housePlan(above bool) budget.Plan {
	plan := budget.Plan{Name: "house",
		Regions: []budget.Region{{Name: "init", Size: houseUnit}, {Name: "systems", Size: 2 * houseUnit},
			{Name: "room", Size: 2 * houseUnit, Slots: houseRooms}},
		Frame:  budget.Frame{Buffers: 2, Size: 4 * houseUnit},
		Pads:   budget.Pads{Workers: 3, Size: 4 * houseUnit},
		Limits: budget.Limits{Scopes: 8, Pools: 2, Held: 1000, Accounts: 4},
		Pages:  budget.Pages{Prefault: budget.Off}}
	if above {
		plan.Regions = append(plan.Regions, budget.Region{Name: "effects", Size: 2 * houseUnit})
	}
	return plan
}

func newHouse(t *testing.T, seed uint64) *house {
	h := &house{program: program{t: t, random: rand.New(rand.NewPCG(seed, 7)), fails: map[int64]bool{}}, plan: housePlan(seed%2 == 0),
		arena: map[int64]int{}, leavers: seed%3 == 0, leaves: map[int64]bool{}, did: map[string]int{}, free: []int{2, 1}}
	h.b = open(t, h.plan)
	for level, r := range h.plan.Regions {
		if r.Slots == 0 {
			h.parts = append(h.parts, &housePart{name: r.Name, level: level, slot: -1, region: h.b.Region(r.Name)})
		}
		for slot := range r.Slots {
			h.parts = append(h.parts, &housePart{name: fmt.Sprintf("room %d", slot), level: level, slot: slot})
		}
	}
	for range 2 * h.plan.Pads.Workers {
		h.pads = append(h.pads, &housePad{})
	}
	h.b.Pads.Of(houseFixed)
	h.frame[0].open()
	return h
}

// beside does fn on a goroutine of its own and waits for it: which one it is makes no difference.
func (h *house) beside(fn func()) outcome {
	return attempt(func() error { fn(); return nil })
}

// pad is the pad of that number, for who has it now.
func (h *house) pad(index int) (pad scope.Pad, ok bool) {
	if index/2 == houseFixed {
		return h.b.Pad(houseFixed, index%2), true
	}
	for _, l := range h.lent {
		if l.pair == index/2 {
			return l.Pad(index % 2), true
		}
	}
	return pad, false
}

// along says what goes when a part is rewound.
func (h *house) along(part int) (list []int) {
	for i, other := range h.parts {
		if i == part || other.level > h.parts[part].level {
			list = append(list, i)
		}
	}
	return list
}

// claim is what somebody says next: mostly the truth, that he is inside the innermost load.
func (h *house) claim() houseClaim {
	switch n := h.random.IntN(8); {
	case n == 0 && len(h.ended) > 0:
		return houseClaim{what: "with a stale scope", scope: h.ended[h.random.IntN(len(h.ended))]}
	case n <= 1 || len(h.running) == 0:
		return houseClaim{}
	case n == 2:
		return claimOf(h.running[h.random.IntN(len(h.running))])
	default:
		return claimOf(h.running[len(h.running)-1])
	}
}

func claimOf(l *houseLoad) houseClaim {
	return houseClaim{fmt.Sprint("inside load ", l.id), l, l.scope}
}

func (c houseClaim) region(r *budget.OpenRegion) *budget.OpenRegion {
	if c.what == "" {
		return r
	}
	return r.In(c.scope)
}

// mayTouch says whether who claims this may load, rewind or release a part now: one inside touches
// what is above, and nothing else is inside there; others touch nothing that a load does.
func (h *house) mayTouch(part int, claim houseClaim) bool {
	if claim.what != "" {
		return claim.of != nil && h.parts[part].level > h.parts[claim.of.part].level &&
			!slices.ContainsFunc(h.running, func(l *houseLoad) bool { return l.outer == claim.of })
	}
	for _, l := range h.running {
		for _, i := range h.along(part) {
			if slices.Contains(h.along(l.part), i) {
				return false
			}
		}
	}
	return true
}

// empty is what a rewind of a part does, top first.
func (h *house) empty(part int) (fails bool) {
	for _, i := range slices.Backward(h.along(part)) {
		p := h.parts[i]
		p.alive = false
		fails = h.closeTo(&p.modelStack, 0) || fails
	}
	return fails
}

// work does one thing in a scope, and keeps in mind of which arena it was: 0, or 1 and more for a pad.
func (h *house) work(s scope.Scope, m *modelStack, arena int) {
	before := h.id
	for range 1 + h.random.IntN(3) {
		if h.leavers && h.chance(6) {
			h.leaver(s, m)
			continue
		}
		h.inScope(s, m)
	}
	for id := before + 1; id <= h.id; id++ {
		h.arena[id] = arena
	}
}

// perArena parts what ran: regions and frame in one order, and each pad's own. No order among pads is promised.
func (h *house) perArena(ids []int64) [][]int64 {
	lists := make([][]int64, 1+len(h.pads))
	for _, id := range ids {
		lists[h.arena[id]] = append(lists[h.arena[id]], id)
	}
	return lists
}

// check compares everything that can be seen from outside.
func (h *house) check() {
	h.t.Helper()
	assert.Equal(h.t, h.perArena(h.want), h.perArena(ran), "what ran, in order")
	assert.NoError(h.t, h.b.CheckAll())
	r := h.b.Report()
	var finalizers uint64
	for _, x := range slices.Concat(r.Regions, r.Beside) {
		finalizers += x.Finalizers
		assert.Equal(h.t, x.Size, x.Used+x.Free)
	}
	for i := range h.pads { // until a pad is given back, the report shows what it was when it was lent
		if pad, ok := h.pad(i); ok {
			finalizers += pad.Stats().Finalizers - r.Beside[len(h.frame)+i].Finalizers
		}
	}
	assert.EqualValues(h.t, len(h.want), finalizers)
	taken := 0
	for i, p := range h.parts {
		assert.Equal(h.t, p.alive, p.loaded.Get() != nil, p.name)
		assert.Equal(h.t, h.plan.Regions[p.level].Size, r.Regions[i].Size, p.name)
		assert.Equal(h.t, p.name, r.Regions[i].Name)
		if len(p.scopes) == 0 {
			assert.Zero(h.t, r.Regions[i].Used, p.name)
		}
		if p.slot >= 0 && p.region != nil {
			taken++
		}
	}
	assert.Equal(h.t, houseRooms-taken, h.b.Slots("room").Free())
	for i, p := range h.pads {
		if pad, ok := h.pad(i); ok {
			assert.Equal(h.t, len(p.scopes), pad.Depth(), "pad %d", i)
		}
		if beside := r.Beside[len(h.frame)+i]; len(p.scopes) == 0 {
			assert.Zero(h.t, beside.Used, beside.Name)
		}
	}
	if h.t.Failed() {
		h.t.Logf("program: %q", h.log)
		h.t.FailNow()
	}
}

// step does one thing, at play or beside a load on another goroutine.
func (h *house) step() {
	switch h.random.IntN(16) {
	case 0, 1, 2:
		h.someLoad()
	case 3:
		h.rewind(h.random.IntN(len(h.parts)))
	case 4, 5:
		h.acquire()
	case 6:
		h.release(h.random.IntN(len(h.parts)))
	case 7:
		h.reconfigure()
	case 8:
		h.take()
	case 9:
		h.give()
	case 10:
		h.stale()
	case 11:
		h.endFrame()
	case 12:
		h.say("frame")
		h.work(h.b.Frame(), &h.frame[h.turn], 0)
	default:
		h.onPad(h.random.IntN(len(h.pads)))
	}
	h.check()
}

// TestModelOfAHouse plays random programs.
func TestModelOfAHouse(t *testing.T) {
	seeds, did := uint64(100), map[string]int{}
	if testing.Short() || instrumented {
		seeds = 30
	}
	goes := soaking(t, int(seeds))
	for seed := uint64(0); goes(int(seed)) || seed < seeds; seed++ {
		h := newHouse(t, seed)
		for range 80 {
			o := h.beside(h.step)
			if o.panicked != nil && o.panicked != "boom" || t.Failed() {
				t.Fatalf("seed %d: %v: %q", seed, o, h.log)
			}
			h.check()
		}
		h.finishAll(seed)
		for what, n := range h.did {
			did[what] += n
		}
		did["panics"] += h.panics
		did["exits"] += h.exits
		did["finalizers"] += len(ran)
	}
	t.Log(did)
	for _, what := range houseDeeds {
		assert.Positive(t, did[what], "programs that never do it prove nothing: %s", what)
	}
}

// houseDeeds are what the programs must have done together.
var houseDeeds = []string{"acquired", "no slot free", "released", "stale refused", "loaded", "load failed", "load refused", "nested",
	"beside", "rewound", "rewind refused", "redrawn", "redraw refused: loaded", "redraw refused: loading", "redraw refused: sum", "lent",
	"none to lend", "given", "given with scopes open", "given twice", "turned", "left", "load left", "panics",
	"exits", "finalizers"}

func (h *house) finishAll(seed uint64) {
	from := len(h.want)
	for _, p := range slices.Backward(h.parts) {
		h.closeTo(&p.modelStack, 0)
	}
	for i := range h.frame {
		h.closeTo(&h.frame[i], 0)
	}
	for _, p := range h.pads {
		h.closeTo(&p.modelStack, 0)
	}
	o := attempt(h.b.Close)
	assert.Equal(h.t, h.left(from), o.exited, "seed %d, at Close: %v: %q", seed, o, h.log)
	require.Equal(h.t, h.perArena(h.want), h.perArena(ran), "seed %d, at Close: %q", seed, h.log)
	for _, l := range h.lent {
		assert.ErrorIs(h.t, l.Give(), budget.ErrClosed)
	}
	_, err := h.b.Slots("room").Acquire()
	assert.ErrorIs(h.t, err, budget.ErrClosed)
}
