package view_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
)

// before and after are two plans with each kind of difference.
var before = budget.Plan{
	Name: "pond",
	Regions: []budget.RegionPlan{
		{Name: "init", Size: 348 * budget.KiB, Note: "323936 bytes in report 1"},
		{Name: "systems", Size: 1720 * budget.KiB},
		{Name: "net", Size: 400 * budget.KiB},
		{Name: "level", Size: 1693 * budget.KiB, State: true},
		{Name: "room", Size: 300 * budget.KiB, Slots: 4},
	},
	Frame:   budget.FramePlan{Buffers: 2, Size: 37 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 4, Size: 5 * budget.KiB},
	GoHeap:  32 * budget.MiB,
}

var after = budget.Plan{
	Name: "pond",
	Regions: []budget.RegionPlan{
		{Name: "init", Size: 348 * budget.KiB, Note: "323936 bytes in report 1"},
		{Name: "music", Size: 512 * budget.KiB},
		{Name: "systems", Size: 1300 * budget.KiB},
		{Name: "level", Size: 2293 * budget.KiB, State: true, Warn: 80, Note: "2148020 bytes in report 3"},
		{Name: "room", Size: 300 * budget.KiB, Slots: 6},
	},
	Frame:   budget.FramePlan{Buffers: 2, Size: 37 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 4, Each: 2, Size: 5 * budget.KiB},
	GoHeap:  48 * budget.MiB,
	Pages:   budget.Pages{Guards: budget.Wished},
}

func drawPlanDiff(t *testing.T, a, b budget.Plan) string {
	t.Helper()
	text := drawn(t, func(w io.Writer) error { return view.PlanDiff(w, a, b) })
	checkPicture(t, text)
	return text
}

func TestPlanDiffGolden(t *testing.T) {
	golden(t, "plan-diff.svg", drawPlanDiff(t, before, after))
	golden(t, "plan-same.svg", drawPlanDiff(t, before, before))
}

// TestPlanDiffRest: a part of the size of the rest, and unplanned space.
func TestPlanDiffRest(t *testing.T) {
	text := drawPlanDiff(t, plans["rest"], plans["unplanned"])
	assert.Contains(t, text, "<title>plan rest → unplanned</title>")
	assert.Contains(t, text, ">size rest → 5KiB</text>")
	assert.Contains(t, text, "unplanned added")
}

// TestPlanDiffFaulty: an error names the wrong plan, and no byte is written.
// Expectations are settings of the plan, by part and label.
func TestPlanDiffExpected(t *testing.T) {
	a := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB},
		{Name: "net", Size: budget.MiB}}}
	b := a
	a.Expected = []budget.Expected{{Part: "level", Play: 1000}, {Part: "level", Label: "frogs", Play: 7}}
	b.Expected = []budget.Expected{{Part: "level", Play: 2000}, {Part: "net", Boot: 5, Tolerance: 9}}
	var text strings.Builder
	require.NoError(t, view.PlanDiff(&text, a, b))
	assert.Contains(t, text.String(), "− expected.level frogs.play 7; expected.level.play 1000 → 2000; + "+
		"expected.net.boot 5; + expected.net.tolerance 9%")
}

func TestPlanDiffFaulty(t *testing.T) {
	var out bytes.Buffer
	none := budget.Plan{Name: "none", Frame: budget.FramePlan{Buffers: 1}}
	require.ErrorContains(t, view.PlanDiff(&out, none, before),
		`plan A, "none": plan "none": frame.size: `)
	require.ErrorContains(t, view.PlanDiff(&out, before, budget.Plan{Name: "\x00"}), `plan B, "\x00": `)
	huge := budget.Plan{Name: "huge", Regions: []budget.RegionPlan{{Name: "all", Size: 1 << 38}}}
	require.ErrorContains(t, view.PlanDiff(&out, before, huge),
		`plan B, "huge": plan "huge": regions: the parts need 256GiB`)
	require.Zero(t, out.Len())
}

// randomPlan returns a plan without faults, with hostile notes.
func randomPlan(r *rand.Rand) (p budget.Plan) {
	size := func() uint64 { return 1 + r.Uint64N(1<<(8+r.IntN(24))) }
	p.Name = []string{"a", longName[:31]}[r.IntN(2)]
	names := []string{"init", "systems", "level", "tables", "unplanned", "regions", longName[:31], "z"}
	for _, i := range r.Perm(len(names))[:1+r.IntN(len(names))] {
		p.Regions = append(p.Regions, budget.RegionPlan{Name: names[i], Size: size(), Slots: r.IntN(3) * r.IntN(40),
			State: r.IntN(2) == 0,
			Warn:  budget.Percent(r.IntN(2) * 80), Note: []string{"", "</svg>\x00\u2028&\"<script>",
				strings.Repeat("long note ", 40)}[r.IntN(3)],
			Limits: budget.Limits{Pools: r.IntN(3)}})
	}
	if r.IntN(2) == 0 {
		p.Frame = budget.FramePlan{Buffers: 1 + r.IntN(3), Size: size()}
		p.Scratch = budget.ScratchPlan{Workers: 1 + r.IntN(300)%256, Size: size(), Each: r.IntN(4)}
	}
	p.Pages.Guards = []budget.Demand{"", budget.Wished}[r.IntN(2)]
	p.Base = r.Uint64N(3) << 40
	p.CHeap.Size = r.Uint64N(2) * budget.MiB
	if r.IntN(2) == 0 {
		p.Size = 200 * budget.GiB
		p.Regions[0].Size, p.Regions[0].Slots = budget.Rest, 0
	} else if r.IntN(2) == 0 {
		p.Size = 250 * budget.GiB
	}
	return p
}

// blocksOf returns the bytes of the blocks of a plan's map, and their names.
func blocksOf(t *testing.T, p budget.Plan) (names []string, blocks []uint64, whole uint64) {
	cost, err := p.Cost()
	require.NoError(t, err)
	const edge = 64 * budget.KiB
	guard := uint64(0)
	if p.Pages.Guards == budget.Wished {
		guard = edge
	}
	sum, rest := uint64(0), -1
	add := func(name string, size, count uint64) {
		if size == budget.Rest {
			rest, size = len(blocks), 0
		}
		size = ((size+edge-1)/edge*edge + guard) * count
		names, blocks, sum = append(names, name), append(blocks, size), sum+size
	}
	for _, r := range p.Regions {
		add(r.Name, r.Size, uint64(max(1, r.Slots)))
	}
	if p.Frame.Buffers != 0 {
		add("frame", p.Frame.Size, uint64(p.Frame.Buffers))
	}
	if s := p.Scratch; s.Workers != 0 {
		each := s.Each
		if each == 0 {
			each = 2
		}
		add("scratch", s.Size, uint64(s.Workers*each))
	}
	planned := max(p.Size, sum)
	if rest >= 0 {
		blocks[rest] += planned - sum
	} else if planned > sum {
		names, blocks = append(names, "unplanned"), append(blocks, planned-sum)
	}
	return append([]string{"tables"}, names...), append([]uint64{cost.Addresses - planned}, blocks...), cost.Addresses
}

// TestPlanDiffRandom: any two plans without faults are drawn. Their parts are in order, and each
// has the height of its bytes, or the least height. The other way around, added parts are gone.
func TestPlanDiffRandom(t *testing.T) {
	draw := func(r *rand.Rand) budget.Plan {
		for {
			p := randomPlan(r)
			if _, err := p.Cost(); err == nil {
				return p
			}
		}
	}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		a, b := draw(r), draw(r)
		text := drawPlanDiff(t, a, b)
		_, _, wholeA := blocksOf(t, a)
		_, _, wholeB := blocksOf(t, b)
		for i, p := range []budget.Plan{a, b} {
			names, blocks, _ := blocksOf(t, p)
			x, textX := []string{"274", "500"}[i], []string{"248", "632"}[i]
			var heights []float64
			for _, m := range rectTag.FindAllStringSubmatch(text, -1) {
				if m[1] == "free pale" && m[2] == x {
					heights = append(heights, number(t, m[5]))
				}
			}
			require.Len(t, heights, len(blocks), "seed %d", seed)
			for k, bytes := range blocks {
				want := max(22, 480*float64(bytes)/float64(max(wholeA, wholeB)))
				require.InDelta(t, want-2, heights[k], .11, "seed %d: %s", seed, names[k])
			}
			var shown []string
			for _, m := range textTag.FindAllStringSubmatch(text, -1) {
				if m[2] == textX {
					shown = append(shown, m[4])
				}
			}
			require.Equal(t, names, shown, "seed %d", seed)
		}
		back := drawPlanDiff(t, b, a)
		for _, pair := range [][2]string{{"added", "gone"}, {"grown", "shrunk"}, {"moved", "moved"},
			{"settings", "settings"}} {
			count := func(text, state string) int { return strings.Count(text, fmt.Sprintf(`<g class="%s"`, state)) }
			require.Equal(t, count(text, pair[0]), count(back, pair[1]), "seed %d: %s", seed, pair[0])
		}
		same := drawPlanDiff(t, a, a)
		require.Equal(t, 6, strings.Count(same, `<g class=`), "seed %d: only the legend has signs", seed)
		require.Contains(t, same, "<desc>Two memory maps, lowest addresses first: the rest untouched</desc>")
	}
}
