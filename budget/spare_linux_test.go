package budget_test

import (
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// holdings counts the process's mappings, and its bytes of addresses and of memory.
type holdings struct{ mappings, addresses, resident uint64 }

func holdingsNow(t *testing.T) holdings {
	debug.FreeOSMemory() // the Go heap's memory doesn't count
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	kib := statusKiB(t, "VmSize:")
	return holdings{uint64(strings.Count(string(maps), "\n")), kib * budget.KiB, statusKiB(t, "RssAnon:") * budget.KiB}
}

// anyPlan returns a plan that differs from the others in everything: counts, sizes, limits, guards.
func anyPlan(r *rand.Rand) budget.Plan {
	size := func() uint64 { return 1 + r.Uint64N(budget.KiB<<r.IntN(13)) } // up to 4 MiB
	p := budget.Plan{Name: "any", Pages: budget.Pages{Prefault: budget.Off}}
	for i := range 1 + r.IntN(4) {
		region := budget.RegionPlan{Name: string(rune('a' + i)), Size: size()}
		if r.IntN(3) == 0 {
			region.Slots = 1 + r.IntN(1<<r.IntN(6))
		}
		p.Regions = append(p.Regions, region)
	}
	if r.IntN(2) == 0 {
		p.Frame = budget.FramePlan{Buffers: 2 + r.IntN(3), Size: size()}
	}
	if r.IntN(2) == 0 {
		p.Scratch = budget.ScratchPlan{Workers: 1 + r.IntN(4), Size: size()}
	}
	p.Limits = budget.Limits{Scopes: 2 + r.IntN(1<<r.IntN(9)), Pools: 1 + r.IntN(1<<r.IntN(9)), Owned: 1 + r.IntN(9),
		Labels: 1 + r.IntN(9)}
	if r.IntN(4) == 0 {
		p.Pages.Guards = budget.Wished
	}
	return p
}

// handles has handles that a program may keep after its budget is closed.
type handles struct {
	s    scope.Scope
	pool scope.Pool[frog]
	put  *frog // nil: there was no room for a pool
}

func handlesOf(t *testing.T, b *budget.Budget) (h handles) {
	region := b.Plan().Regions[0]
	take := func() (budget.Region, error) { return b.Region(region.Name), nil }
	if region.Slots != 0 {
		take = b.Slots(region.Name).Acquire
	}
	r, err := take()
	require.NoError(t, err)
	_, err = budget.Load(background, r, func(s scope.Scope) (*frog, error) {
		h.s = s
		if s.Free() > 256 {
			h.pool = frogs.Pool(s, 4)
			h.put = h.pool.Get()
		}
		return nil, nil
	})
	require.NoError(t, err)
	if region.Slots != 0 {
		require.NoError(t, r.Release(background))
	}
	return h
}

// refused checks that the handles return nothing, and that their errors explain it.
func (h handles) refused() bool {
	panics := func(fn func()) (told bool) {
		defer func() { _, told = recover().(error) }()
		fn()
		return false
	}
	if h.put != nil && (h.pool.Get() != nil || !panics(func() { h.pool.Put(h.put) })) {
		return false
	}
	return h.s.TryAllocUnzeroed(8, 8) == nil && h.s.Close() != nil && h.s.Free() == 0 &&
		panics(func() { frogs.New(h.s) }) && panics(func() { h.s.Open("more") })
}

// class identifies ranges that can be reused for each other: the head of the tables, and the size
// up to the next power of two.
type class struct {
	head platform.Head
	size uint64
}

// widest counts the ranges of each class that were open at once, at most.
type widest struct{ now, most map[class]uint64 }

func classOf(b *budget.Budget) class {
	return class{budget.HeadOf(b.Plan()), 1 << bits.Len64(b.Size()-1)}
}

func (w widest) open(b *budget.Budget) {
	c := classOf(b)
	w.now[c]++
	w.most[c] = max(w.most[c], w.now[c])
}

func (w widest) close(b *budget.Budget) { w.now[classOf(b)]-- }

// bound returns the most that the process may hold after that: the aligned addresses of each range,
// and the head of its tables.
func (w widest) bound() (h holdings) {
	for c, count := range w.most {
		h.mappings += 2 * count // the head, and the pages after it without access
		h.addresses += count * (c.size + platform.Align)
		h.resident += count * c.head.Size
	}
	return h
}

// openAny opens and closes plans that all differ, up to three at once.
func openAny(t *testing.T, opens int, random *rand.Rand, w widest) {
	var stale [256]handles // the last closed budgets
	var open [3]*budget.Budget
	var living [3]handles
	closed := 0
	shut := func(k int) {
		if open[k] != nil {
			w.close(open[k])
			require.NoError(t, open[k].Close())
			stale[closed%len(stale)] = living[k]
			closed++
		}
	}
	for i := range opens {
		k := random.IntN(len(open))
		shut(k)
		b, err := budget.Open(anyPlan(random))
		require.NoError(t, err)
		w.open(b)
		open[k], living[k] = b, handlesOf(t, b)
		for _, h := range stale[:min(closed, len(stale))] {
			require.True(t, h.refused(), "open %d", i)
		}
		if i%64 == 0 {
			requireWalk(t, b)
		}
	}
	for k := range open {
		shut(k)
	}
}

// requireWithin checks that the process holds no more than before and the bound, except for the
// runtime's own.
func requireWithin(t *testing.T, before holdings, w widest) {
	t.Helper()
	now, bound := holdingsNow(t), w.bound()
	t.Logf("before %+v, bound %+v, now %+v", before, bound, now)
	if arena_c.Checked || arena_c.Asan {
		return // the addresses outside each budget come on top
	}
	assert.LessOrEqual(t, now.mappings, before.mappings+bound.mappings+60)
	assert.LessOrEqual(t, now.addresses, before.addresses+bound.addresses+256*budget.MiB)
	assert.LessOrEqual(t, now.resident, before.resident+bound.resident+16*budget.MiB)
}

// TestOpensOfAnyPlan: of each class, the process keeps as many ranges as were open at once. A
// handle stays dead when its table becomes another plan's.
func TestOpensOfAnyPlan(t *testing.T) {
	if instrumented {
		step.Needs(t, step.Gate) // its code is the same in each build
	}
	step.Machine(t, step.Addresses(4*budget.GiB)) // of ranges of many sizes, which stay reserved
	if platform.GoBacked {
		t.Skip("with -race the Go heap chooses the address: go test ./budget runs it")
	}
	opens := step.Pick(150, 1000, 100_000)
	before, w := holdingsNow(t), widest{map[class]uint64{}, map[class]uint64{}}
	openAny(t, opens, rand.New(rand.NewPCG(20, 1)), w)
	requireWithin(t, before, w)
	assert.Less(t, len(w.most), 400, "there are few classes, whatever the plans are")
}

// TestStaleScopesAndBadAligns: a generation counts bad aligns, and never becomes a generation of a
// later budget, after any number of arenas.
func TestStaleScopesAndBadAligns(t *testing.T) {
	const arenas = 16
	plan := budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{{Name: "room", Size: 4096, Slots: arenas - 1},
		{Name: "level", Size: 4096}}, Pages: budget.Pages{Prefault: budget.Off}}
	var stale scope.Scope
	for i := range 8 {
		b, err := budget.Open(plan)
		require.NoError(t, err)
		// the bad aligns are this load's
		_, _ = load(b, "level", func(s scope.Scope) error {
			if i == 0 {
				stale = s
			}
			for range 64 {
				in := s.Open("in")
				for align := uint64(3); i != 0 && align < 32; align++ {
					require.Nil(t, stale.TryAllocUnzeroed(8, align), "budget %d, align %d", i, align)
				}
				_ = in.Close()
			}
			for _, align := range []uint64{1<<63 - 1, 1<<64 - 1} { // these faults wrap
				in := s.Open("in")
				require.Nil(t, in.TryAllocUnzeroed(8, align))
				require.ErrorContains(t, in.Err(), "a power of two", "budget %d, align %d", i, align)
				_ = in.Close()
			}
			return nil
		})
		require.NoError(t, b.Close())
	}
}

// TestOpensOfGrowingSizes: each plan is larger than any kept range.
func TestOpensOfGrowingSizes(t *testing.T) {
	step.Machine(t, step.Addresses(4*budget.GiB)) // of ranges of many sizes, which stay reserved
	if platform.GoBacked {
		t.Skip("with -race the Go heap chooses the address: go test ./budget runs it")
	}
	if strconv.IntSize == 32 {
		t.Skip("32-bit builds keep ranges of several sizes: on a 64-bit machine, go test ./budget runs it")
	}
	before, w, plan := holdingsNow(t), widest{map[class]uint64{}, map[class]uint64{}}, paged()
	const more = 256 * budget.KiB
	opens := step.Pick[uint64](100, 500, 500)
	for i := range opens {
		plan.Regions[1].Size = (1 + i) * more
		b, err := budget.Open(plan)
		require.NoError(t, err)
		w.open(b)
		w.close(b)
		require.NoError(t, b.Close())
	}
	requireWithin(t, before, w)
	assert.Less(t, w.bound().addresses, 5*opens*more, "powers of two, of which the last is the half of all")
}

// TestMeasureLeavesNothingReserved: Measure keeps no addresses, although it measures in gigabytes.
func TestMeasureLeavesNothingReserved(t *testing.T) {
	if platform.GoBacked || arena_c.Checked || arena_c.Asan {
		t.Skip("this build keeps addresses next to each budget: go test ./budget runs it")
	}
	plan := paged()
	plan.Limits = budget.Limits{}
	before := holdingsNow(t)
	var kept scope.Scope
	for range 10 {
		r, err := budget.Measure(plan, func(b *budget.Budget) error {
			if kept != (scope.Scope{}) {
				require.Nil(t, kept.TryAllocUnzeroed(8, 8), "the last one's is dead")
			}
			_, err := load(b, "level", func(s scope.Scope) error { kept = s; s.Bytes(100_000); return nil })
			return err
		})
		require.NoError(t, err)
		require.InDelta(t, 100_000, r.Plan.Regions[1].Size, 100)
	}
	require.Nil(t, kept.TryAllocUnzeroed(8, 8))
	after := holdingsNow(t)
	t.Logf("before %+v, after %+v", before, after)
	assert.LessOrEqual(t, after.addresses, before.addresses+256*budget.MiB)
	assert.LessOrEqual(t, after.mappings, before.mappings+60)
}
