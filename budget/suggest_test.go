package budget_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// recorded returns the report of a server with so many bytes used in each part, as read from a
// file.
func recorded(t *testing.T, name string, bots, init, level, frame, scratch int) budget.Report {
	t.Helper()
	plan := measured()
	plan.Name, plan.Limits = name, budget.Limits{}
	for _, size := range sizesOf(&plan) {
		*size = 64 * budget.KiB
	}
	plan.Regions[1].Slots = 1 + bots
	b := open(t, plan)
	use := func(s scope.Scope, size int) {
		if size > 0 {
			s.Bytes(size)
		}
	}
	_, err := load(b, "init", func(s scope.Scope) error { use(s, init); return nil })
	require.NoError(t, err)
	_, err = load(b, "level", func(s scope.Scope) error {
		use(s, level)
		for range bots {
			frogs.Pool(s, 1)
		}
		return nil
	})
	require.NoError(t, err)
	use(b.Frame(), frame)
	require.NoError(t, b.NextFrame())
	p := b.Scratch(1, 1).Open("scratch")
	use(p, scratch)
	require.NoError(t, p.Close())
	require.NoError(t, b.Region("level").Rewind(background))
	text, err := json.Marshal(b.Report())
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

func TestSuggest(t *testing.T) {
	one := recorded(t, "one", 0, 100, 5000, 0, 333)
	two := recorded(t, "two", 3, 76, 4700, 70, 11)
	two.Plan.Scratch.Workers, two.Arenas = 3, append(two.Arenas, beside(two)[2], beside(two)[3])
	// pools: 1 more than the default
	two.Arenas[5].MostOpen = budget.Limits{Scopes: 64, Pools: 65, Owned: 256, Labels: 32}

	two.Plan.Regions[3].Size = 96 * budget.KiB // and one has 64
	plan, err := budget.Suggest(one, two)
	require.NoError(t, err)
	want := measured()
	want.Name = "one"
	want.Regions = []budget.RegionPlan{
		{Name: "init", Size: 124, Note: `124 bytes in report 1, "one"`},
		{Name: "match", Size: 64 * budget.KiB, Slots: 4, Note: "never used: as planned",
			Limits: budget.Limits{Scopes: 16, Pools: 16, Owned: 32, Labels: 8}},
		{Name: "level", Size: 5024, Note: `5024 bytes in report 1, "one"`},
		{Name: "spare", Size: 96 * budget.KiB, Note: "never used: as planned"}}
	want.Frame.Size, want.Scratch = 70, budget.ScratchPlan{Workers: 3, Each: 2, Size: 333}
	want.Limits = budget.Limits{Pools: 65}
	want.Pages = one.Plan.Pages
	assert.Equal(t, want, plan)
	assert.EqualValues(t, 64*budget.KiB, one.Plan.Regions[0].Size, "the report is as it was")

	same, err := budget.Suggest(one, one)
	require.NoError(t, err)
	assert.Equal(t, `124 bytes in report 1, "one"`, same.Regions[0].Note)

	swapped, err := budget.Suggest(two, one)
	require.NoError(t, err)
	assert.Equal(t, `5024 bytes in report 2, "one"`, swapped.Regions[2].Note)
	assert.Equal(t, "two", swapped.Name)
	assert.Equal(t, want.Limits, swapped.Limits)
}

// A part that was full may need more than its peak, and gets at least its planned size; a Rest had
// a size, too.
func TestSuggestOfWhatWasFull(t *testing.T) {
	calm, full := recorded(t, "calm", 0, 100, 5000, 70, 333), recorded(t, "full", 0, 90, 4000, 0, 11)
	full.Plan.Size, full.Plan.Regions[2].Size = budget.MiB, budget.Rest
	full.Arenas[2].Fulls, full.Arenas[5].Fulls, full.Arenas[9].Fulls = 1, 1, 2
	rest := uint64(budget.MiB - 9*64*budget.KiB) // the other parts have one edge each
	for _, reports := range [][]budget.Report{{calm, full}, {full, calm}} {
		plan, err := budget.Suggest(reports...)
		require.NoError(t, err)
		assert.EqualValues(t, 124, plan.Regions[0].Size)
		assert.Equal(t, rest, plan.Regions[2].Size)
		assert.Contains(t, plan.Regions[2].Note, `"full", where it was full`)
		assert.EqualValues(t, 64*budget.KiB, plan.Frame.Size, "though its peak is 0 there")
		assert.EqualValues(t, 64*budget.KiB, plan.Scratch.Size)
		requireNoFault(t, plan)
	}
	full.Arenas[2].Peak = rest + 1 // before a Reconfigure, or so the file claims
	plan, err := budget.Suggest(full)
	require.NoError(t, err)
	assert.Equal(t, rest+1, plan.Regions[2].Size)
	full.Name, full.Plan.Name = strings.Repeat("x", 1000), ""
	_, err = budget.Suggest(full)
	assert.Less(t, len(err.Error()), 200, "a long name isn't said in full")
}

// A report may have parts that another lacks: a frame, scratch arenas, more buffers.
func TestSuggestOfOtherParts(t *testing.T) {
	whole, bare := recorded(t, "whole", 0, 1, 2, 70, 333), recorded(t, "bare", 0, 100, 5000, 0, 0)
	regions := slices.IndexFunc(bare.Arenas, func(a budget.ArenaReport) bool { return a.Kind == "frame" })
	bare.Arenas, bare.Plan.Frame, bare.Plan.Scratch = bare.Arenas[:regions], budget.FramePlan{}, budget.ScratchPlan{}
	for _, reports := range [][]budget.Report{{whole, bare}, {bare, whole}} {
		plan, err := budget.Suggest(reports...)
		require.NoError(t, err)
		assert.EqualValues(t, 124, plan.Regions[0].Size)
		assert.Equal(t, budget.FramePlan{Buffers: 2, Size: 70}, plan.Frame)
		assert.Equal(t, budget.ScratchPlan{Workers: 2, Each: 2, Size: 333}, plan.Scratch)
	}
}

func TestSuggestRefuses(t *testing.T) {
	_, err := budget.Suggest()
	assert.EqualError(t, err, "budget: Suggest: no reports")
	for _, test := range []struct {
		text   string
		change func(r *budget.Report)
	}{
		{"the number of regions is 3, but 4 in the first", func(r *budget.Report) {
			r.Plan.Regions = r.Plan.Regions[:3]
		}},
		{`regions[2].name is "map", but "level" in the first`, func(r *budget.Report) {
			r.Plan.Regions[2].Name = "map"
		}},
		{"regions[0].slots is 2, but 0 in the first", func(r *budget.Report) { r.Plan.Regions[0].Slots = 2 }},
		{"regions[1].slots is 0, but 1 in the first", func(r *budget.Report) { r.Plan.Regions[1].Slots = 0 }},
		{`plan "": name: "" has 0 bytes; a name has 1 to 31`, func(r *budget.Report) { r.Plan.Name = "" }},
		{"has figures of 9 regions, slots, buffers and scratch arenas; its plan has 10",
			func(r *budget.Report) { r.Arenas = r.Arenas[:len(r.Arenas)-1] }},
		{"has figures of 11 regions, slots, buffers and scratch arenas; its plan has 10",
			func(r *budget.Report) { r.Arenas = append(r.Arenas, r.Arenas[0]) }},
	} {
		first, second := recorded(t, "one", 0, 1, 2, 3, 4), recorded(t, "other", 0, 1, 2, 3, 4)
		test.change(&second)
		plan, err := budget.Suggest(first, second)
		assert.EqualError(t, err, `budget: Suggest: report 2, "other": `+test.text)
		assert.Zero(t, plan)
	}
	wrong := recorded(t, "one", 0, 1, 2, 3, 4)
	wrong.Arenas[0].Peak = math.MaxUint64
	_, err = budget.Suggest(wrong)
	assert.ErrorContains(t, err, `plan "one": regions[0].size: `)
}

func TestHeadroom(t *testing.T) {
	plan := measured()
	plan.Regions[2].Size, plan.Regions[3].Size, plan.GoHeap = 10*budget.KiB, 10*budget.KiB+1, 32*budget.MiB
	plan.Limits = budget.Limits{Scopes: 10, Pools: 11, Owned: 65535}
	got := plan.Headroom(10)
	want := measured()
	want.Regions[0].Size, want.Regions[1].Size, want.Regions[2].Size, want.Regions[3].Size = 2048, 2048, 11*budget.KiB,
		12*budget.KiB
	want.Frame.Size, want.Scratch.Size, want.GoHeap = 2048, 2048, plan.GoHeap
	want.Limits = budget.Limits{Scopes: 11, Pools: 13, Owned: 65535}
	assert.Equal(t, want, got)
	assert.EqualValues(t, 1000, plan.Regions[0].Size, "the plan is as it was")
	assert.EqualValues(t, 1024, plan.Headroom(0).Regions[0].Size)
	assert.EqualValues(t, 2048, plan.Headroom(3).Regions[0].Size, "1030 bytes")
	assert.PanicsWithValue(t, "budget: BUG: Headroom of -1 percent", func() { plan.Headroom(-1) })

	plan.Regions[3].Size, plan.Size = budget.Rest, budget.MiB
	got = plan.Headroom(10)
	assert.Equal(t, budget.Rest, got.Regions[3].Size)
	assert.EqualValues(t, 1127*budget.KiB, got.Size)
	requireNoFault(t, got)
	for _, size := range sizesOf(&plan) {
		*size = 64 * budget.KiB
	}
	plan.Size = 12 * 64 * budget.KiB
	requireNoFault(t, plan)
	requireNoFault(t, plan.Headroom(10)) // the size grows with its parts, and each is rounded up
}

// Sizes that grow beyond all bounds become faults of the plan, never small sizes.
func TestHeadroomDoesNotWrap(t *testing.T) {
	for _, size := range []uint64{1, 1000, 1 << 38, 1 << 63, math.MaxUint64 - 1, math.MaxUint64 - 5000,
		math.MaxUint64/100 + 1} {
		for _, percent := range []int{1, 10, 99, 100, 101, math.MaxInt32, math.MaxInt} {
			plan := measured()
			plan.Regions[0].Size, plan.Size = size, size
			got := plan.Headroom(percent)
			assert.GreaterOrEqual(t, got.Regions[0].Size, size)
			assert.NotEqual(t, budget.Rest, got.Regions[0].Size)
			assert.GreaterOrEqual(t, float64(got.Regions[0].Size),
				min(float64(size)*(1+float64(percent)/100)*0.999999, 1<<63))
			assert.GreaterOrEqual(t, got.Size, size)
			if got.Regions[0].Size > 1<<38 {
				assert.ErrorContains(t, got.Check(), "regions[0].size")
			}
		}
	}
}

func TestHeadroomOfTheRest(t *testing.T) {
	plan := budget.Plan{Name: "r", Size: 20 * 64 * budget.KiB}
	for i := range 10 {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: fmt.Sprintf("r%d", i), Size: 64 * budget.KiB})
	}
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "rest", Size: budget.Rest})
	// at 1 each of ten parts is rounded up by an edge
	for _, percent := range []int{0, 1, 10, 200} {
		more := plan.Headroom(percent)
		requireNoFault(t, more)
		assert.GreaterOrEqual(t, open(t, more).Plan().Regions[10].Size, uint64(10*64*budget.KiB*(100+percent)/100))
	}
	plan.Size = 11 * 64 * budget.KiB // the least: the rest has one edge
	requireNoFault(t, plan.Headroom(1))
}
