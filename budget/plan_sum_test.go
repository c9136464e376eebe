package budget

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
)

// manySlots are n regions with so many slots of 64 KiB.
func manySlots(n, slots int) []RegionPlan {
	list := manyRegions(n, 1)
	for i := range list {
		list[i].Slots = slots
	}
	return list
}

// planSumChecks are about what the parts come to.
var planSumChecks = []struct {
	change func(*Plan)
	fault  string
}{
	{func(p *Plan) { p.Regions[1].Slots = 1 }, ""},
	{func(p *Plan) { p.Regions[1].Slots = 4096 }, ""},
	{func(p *Plan) { p.Regions[1].Slots = 4097 }, "regions[1].slots: 4097; 0 (the region is one) or 1 to 4096"},
	{func(p *Plan) { p.Regions[1].Slots = -1 }, "regions[1].slots: -1; 0 (the region is one) or 1 to 4096"},
	{func(p *Plan) { p.Regions[1].Slots = math.MinInt }, "regions[1].slots: -"},
	{func(p *Plan) { p.Regions[1].Slots = math.MaxInt }, "regions[1].slots: "}, // no sum of such a number
	{func(p *Plan) { *p = Plan{Name: "max", Regions: manySlots(16, 4096)} }, "regions[0].slots: 4096, the most of all; with each " +
		"slot, buffer and scratch there are 65536 arenas, and a budget has at most 65535"},
	{func(p *Plan) { p.Regions[2].Size, p.Regions[2].Slots = 1<<38, 2 }, "regions: the parts need 524310MiB ("},
	{func(p *Plan) { p.Regions[2].Size, p.Regions[2].Slots = 1<<38, 4096 }, "regions: the parts need "},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4096), RegionPlan{Name: "a", Size: 1, Slots: 4095})}
	}, ""},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4095), RegionPlan{Name: "a", Size: 1, Slots: 4096}),
			Scratch: ScratchPlan{Workers: 8, Size: 1}}
	},
		`plan "max": regions[15].slots: 4096, the most of all; with each slot, buffer and scratch there are 65537 arenas, ` +
			"and a budget has at most 65535"},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4096), manyRegions(64, 1)[15:]...), Frame: FramePlan{8, 1},
			Scratch: ScratchPlan{Workers: 256, Size: 1}}
	},
		""},

	{func(p *Plan) { p.Regions[1].Size = Rest }, `size: 0, but regions[1].size is "rest"; give the size that it is the rest of`},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB+64*KiB, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB+1, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB, Rest }, "size: 50MiB leaves no rest: the parts need 50MiB (" +
		"regions 44MiB, frame 2MiB, scratch 4MiB; each rounded up to 64KiB), and regions[1], which has the rest, 64KiB or more; " +
		"64KiB more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size = MiB, Rest }, "; 50240KiB more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+64*KiB, Rest, Wished },
		"regions 44MiB, frame 2MiB, scratch 4MiB, " +
			"guards 576KiB; each rounded up to 64KiB), and regions[1], which has the rest, 64KiB or more; 576KiB more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+640*KiB, Rest, Required }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+64*KiB, Rest, Off }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[2].Size = GiB, Rest, Rest },
		`regions[2].size: "rest", as regions[1].size; one region may have it`},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[1].Slots = GiB, Rest, 1 },
		`regions[1].size: "rest", but slots is 1; slots have a size of their own`},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 1<<38+1, Rest }, "size: 274877906945; a budget has at most 256GiB"},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 1<<38, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[2].Size = 1<<38, Rest, 1<<38 }, "regions: the parts need 262154MiB ("},
	{func(p *Plan) {
		*p = Plan{Name: "max", Size: 1 << 38, Regions: append(manyRegions(63, 4*GiB), RegionPlan{Name: "r", Size: Rest})}
	}, ""},
	{func(p *Plan) {
		*p = Plan{Name: "max", Size: 1 << 38, Regions: append(manyRegions(32, 8*GiB), RegionPlan{Name: "r", Size: Rest})}
	}, "regions: the parts need 256GiB (regions 256GiB, frame 0, scratch 0; each rounded up to 64KiB), and regions[32], which has the " +
		"rest, 64KiB or more; a budget has at most 256GiB"},

	{func(p *Plan) { p.Size, p.Pages.Guards = 62*MiB+576*KiB, Wished }, ""},
	{func(p *Plan) { p.Size, p.Pages.Guards = 62*MiB+576*KiB-1, Wished },
		"size: 65601535 is less than the parts need: 64064KiB (regions 56MiB, frame 2MiB, scratch 4MiB, guards 576KiB; each"},
	{func(p *Plan) { p.Size, p.Pages.Guards, p.Regions[1].Slots = 62*MiB, Wished, 5 },
		"size: 62MiB is less than the parts need: 113472KiB (regions 104MiB, frame 2MiB, scratch 4MiB, guards 832KiB; each"},
	{func(p *Plan) { *p = Plan{Name: "max", Regions: manyRegions(64, 4*GiB), Pages: Pages{Guards: Wished}} },
		"regions: the parts need 262148MiB (regions 256GiB, frame 0, scratch 0, guards 4MiB; each rounded up to 64KiB); a budget has"},
}

// requireSound says what is true of every plan that passes.
func requireSound(t *testing.T, plan Plan) {
	t.Helper()
	require.NoError(t, plan.Check())
	before := slices.Clone(plan.Regions)
	resolved := plan.resolved()
	require.Equal(t, before, plan.Regions, "the plan itself is unchanged")
	require.NoError(t, resolved.Check())
	require.Equal(t, -1, resolved.rest())
	require.Equal(t, resolved, resolved.resolved())
	rest := plan.rest()
	if rest < 0 {
		require.Equal(t, plan.Regions, resolved.Regions)
		require.Equal(t, plan.Size, resolved.Size)
		if plan.Size != 0 {
			require.LessOrEqual(t, resolved.total(), plan.Size)
		}
	} else {
		require.Equal(t, resolved.Size, resolved.total(), "the parts are the whole")
		require.Less(t, resolved.Size-plan.Size, uint64(planEdge), "rounded up, no more")
		require.GreaterOrEqual(t, resolved.Regions[rest].Size, uint64(planEdge))
	}
	for _, page := range resolved.Pages.byKey() {
		require.NotEqual(t, Default, *page.value)
	}
	require.NotZero(t, resolved.Limits.Scopes*resolved.Limits.Pools*resolved.Limits.Owned*resolved.Limits.Labels)
	require.LessOrEqual(t, plan.arenaCount(), uint64(planArenasMax))
	requireDrawnExactly(t, plan)
}

func TestPlanResolved(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		requireSound(t, randomPlan(random))
	}
	plan := handheld()
	plan.Size = 100_000_000
	plan.Regions[1].Size = Rest
	plan.Limits.Pools = 5
	plan.Pages.Lock = Required
	want := plan
	want.Size = 1526 * 64 * KiB
	want.Regions = slices.Clone(plan.Regions)
	want.Regions[1].Size = 1526*64*KiB - 50*MiB
	want.Limits = Limits{64, 5, 256, 32}
	want.Pages = Pages{Wished, Required, Off, Off, Off}
	want.Scratch.Each = 2
	assert.Equal(t, want, plan.resolved())

	plan.Base, want.Base, want.Pages.Base = 64*KiB, 64*KiB, Wished
	assert.Equal(t, want, plan.resolved())
	plan.Pages.Base, want.Pages.Base = Off, Off
	assert.Equal(t, want, plan.resolved())
}

// The arenas that a plan is laid out as take what its parts do: the tables are all the difference.
func TestPlanSumIsTheMaps(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		plan := randomPlan(random).resolved()
		rows, sum := uint64(0), plan.sum(plan.sized()...)
		for _, a := range plan.arenas() {
			rows += max(1, a.Siblings)
		}
		require.Equal(t, rows, plan.arenaCount())
		require.Equal(t, rows*plan.guard(), sum.Guards, "one behind each arena")
		require.Equal(t, sum.Bytes+sum.Edges+sum.Guards, sum.Whole)
		require.Equal(t, sum.Whole, plan.total())
		require.Equal(t, plan.total()-sum.Guards,
			plan.ofKind(arena_c.KindRegion)+plan.ofKind(arena_c.KindFrame)+plan.ofKind(arena_c.KindScratch))
		whole := arena_c.MapSize(plan.arenas(), 1, 0, plan.guard())
		require.NotZero(t, whole)
		tables := arena_c.MapSize([]arena_c.Arena{{Kind: arena_c.KindScratch, Siblings: rows}}, 1, 0, 0)
		require.Equal(t, tables+plan.guard()+plan.total(), whole, "the tables have a guard, too")
	}
}

// What cannot be resolved is still added up without wrapping around.
func TestPlanSumSaturates(t *testing.T) {
	const huge = uint64(math.MaxUint64)
	assert.EqualValues(t, huge, planRound(huge))
	assert.EqualValues(t, huge, planRound(huge-1))
	assert.EqualValues(t, huge-65535, planRound(huge-65536))
	assert.EqualValues(t, 64*KiB, planRound(1))
	assert.Zero(t, planRound(0))
	assert.EqualValues(t, 0, planCount(math.MinInt))
	plan := Plan{Regions: manySlots(64, math.MaxInt), Frame: FramePlan{math.MaxInt, Rest - 1},
		Scratch: ScratchPlan{Workers: math.MaxInt, Size: 1}}
	assert.EqualValues(t, huge, plan.total())
	if strconv.IntSize == 64 { // else no count comes near
		assert.EqualValues(t, huge, plan.arenaCount())
	}
	assert.EqualValues(t, huge, Plan{Frame: FramePlan{1, Rest}}.total(), "a region's alone is the rest")
	assert.Zero(t, Plan{Regions: []RegionPlan{{Size: Rest}}}.total())
	assert.Zero(t, Plan{Frame: FramePlan{-1, 5}, Scratch: ScratchPlan{Workers: -1, Size: 5}}.arenaCount())
}

func TestOpenGivesTheRest(t *testing.T) {
	plan := handheld()
	plan.GoHeap, plan.Size, plan.Regions[1].Size = 0, 63*MiB-1, Rest
	b, err := Open(plan)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	assert.Equal(t, plan.resolved(), b.Plan())
	assert.Equal(t, Rest, plan.Regions[1].Size, "the caller's own is unchanged")
	assert.EqualValues(t, 13*MiB, b.Region("systems").Report().Size)
	need, err := plan.Need()
	require.NoError(t, err)
	assert.Equal(t, b.Size()+planEdge, need)
}
