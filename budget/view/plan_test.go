package view_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
)

var update = flag.Bool("update", false, "draw testdata anew")

func drawPlan(t *testing.T, p budget.Plan) string {
	t.Helper()
	return drawn(t, func(w io.Writer) error { return view.Plan(w, p) })
}

// TestHandheld: the README's picture is the one of frogpond's plan.
func TestHandheld(t *testing.T) {
	plan, err := budget.ReadPlan(filepath.Join("..", "..", "tests", "frogpond", "plan.json"))
	require.NoError(t, err)
	golden(t, "handheld.svg", drawPlan(t, plan))
}

var plans = map[string]budget.Plan{
	"one": {Name: "one", Regions: []budget.RegionPlan{{Name: "all", Size: 1}}},
	"slots": {Name: "slots", Regions: []budget.RegionPlan{{Name: "few", Size: 100_000, Slots: 3},
		{Name: "many", Size: 1, Slots: 400}}},
	"rest": {Name: "rest", Size: 1000 * budget.KiB, Regions: []budget.RegionPlan{{Name: "level", Size: budget.Rest},
		{Name: "top", Size: 5}},
		Frame: budget.FramePlan{Buffers: 3, Size: 70_000}},
	"unplanned": {Name: "unplanned", Size: budget.MiB,
		Regions: []budget.RegionPlan{{Name: "level", Size: 5 * budget.KiB}}},
	"above": {Name: "above", Regions: []budget.RegionPlan{{Name: "room", Size: 100_000, Slots: 3},
		{Name: "net", Size: 1}}},
	"guards": {Name: "guards", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB, Slots: 2},
		{Name: "top", Size: 1}},
		Scratch: budget.ScratchPlan{Workers: 2, Size: budget.KiB}, Pages: budget.Pages{Guards: budget.Wished}},
	"each": {Name: "each", Scratch: budget.ScratchPlan{Workers: 2, Each: 3, Size: budget.MiB}},
	"siblings": {Name: "siblings", Regions: []budget.RegionPlan{{Name: "systems", Size: budget.MiB},
		{Name: "map", Size: 3 * budget.MiB}, {Name: "streets", Size: budget.MiB},
		{Name: "styles", Size: 2 * budget.MiB, On: "systems"}, {Name: "room", Size: 512 * budget.KiB, Slots: 2},
		{Name: "tiny", Size: 1, On: "styles"}, {Name: "sound", Size: budget.MiB, On: budget.Root}}},
	"noted": {Name: "noted", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, Note: `</svg> & "more"`},
		{Name: "torn", Size: 1, Note: "a\x01\u2028b"}, {Name: "long", Size: 1, Note: strings.Repeat("note ", 100)}},
		GoHeap: 5 * budget.MiB},
}

// TestEveryPicture: each picture is XML with a <title> and a <desc>. Each colour of its map has a
// line in the list.
func TestEveryPicture(t *testing.T) {
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			text := drawPlan(t, plan)
			checkPicture(t, text)
			assert.Contains(t, text, "<title>plan "+name+": ")
			for _, r := range plan.Regions {
				assert.Contains(t, text, ">"+r.Name+"</text>")
			}
			assert.Contains(t, text, "prefers-color-scheme: dark")
			// covered if no size is rounded up
			shown, listed := map[string]bool{}, map[string]bool{"free pale": true}
			for _, m := range rectTag.FindAllStringSubmatch(text, -1) {
				if m[3] == "60" {
					shown[m[1]] = true
				} else {
					listed[m[1]] = true
				}
			}
			assert.Subset(t, slices.Collect(maps.Keys(listed)), slices.Collect(maps.Keys(shown)))
		})
	}
}

// TestPlansGoHeap: the title says how large the Go heap may be.
func TestPlansGoHeap(t *testing.T) {
	plan := plans["one"]
	for _, c := range []struct {
		heap, most uint64
		want       string
	}{
		{5 * budget.MiB, 0, "Go heap 5120KiB"},
		{budget.Rest, 0, "Go heap, the rest"},
		{budget.Rest, 64 * budget.MiB, "Go heap, at most 65536KiB"},
	} {
		plan.GoHeap, plan.GoHeapMax = c.heap, c.most
		assert.Contains(t, drawPlan(t, plan), ">outside it: "+c.want+"</text>")
	}
}

var bar = regexp.MustCompile(`<rect class="(\w+) pale" x="([\d.]+)" y="60" width="([\d.]+)"`)

// TestToScale opens each plan, and compares the parts' positions in the picture and in the budget.
func TestToScale(t *testing.T) {
	const left, width = 20, 840
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			b, err := budget.Open(plan)
			require.NoError(t, err)
			defer b.Close()
			ranges, err := b.Walk()
			require.NoError(t, err)
			scale := width / float64(b.Size())
			assert.Contains(t, drawPlan(t, plan), "<title>plan "+name+": "+budget.SizeText(b.Size())+"</title>")
			bars := bar.FindAllStringSubmatch(drawPlan(t, plan), -1)
			require.NotEmpty(t, bars)
			begins := map[float64]bool{}
			last := float64(left)
			for _, m := range bars {
				x, err := strconv.ParseFloat(m[2], 64)
				require.NoError(t, err)
				wide, err := strconv.ParseFloat(m[3], 64)
				require.NoError(t, err)
				assert.InDelta(t, last+.5, x, .2, "bars stand side by side")
				begins[x], last = true, x+wide+.5
			}
			assert.InDelta(t, left+width, last, .2, "and fill the whole")
			arena := ""
			for _, r := range ranges {
				if r.Arena == arena || r.Arena == "" {
					continue
				}
				arena = r.Arena
				if strings.HasPrefix(arena, "many") && arena != "many 0" {
					continue // too narrow for separate bars
				}
				at, near := left+float64(r.Offset)*scale+.5, math.Inf(1)
				for x := range begins {
					near = min(near, math.Abs(x-at))
				}
				assert.Less(t, near, .2, "%s begins at %.1f", arena, at)
			}
		})
	}
}

var arrow = regexp.MustCompile(`<path class="line" d="M([\d.]+) ([\d.]+) H([\d.]+)"/>`)

// TestArrows: regions that stand on one region have arrows of their own, in the row below that
// region's, and the list says on which regions they stand.
func TestArrows(t *testing.T) {
	text := drawPlan(t, plans["siblings"])
	golden(t, "siblings.svg", text)
	bars := bar.FindAllStringSubmatch(text, -1)
	begin := func(i int) float64 {
		x, err := strconv.ParseFloat(bars[i][2], 64)
		require.NoError(t, err)
		return x - .5
	}
	// of the bars: tables, systems, map, streets, styles, two slots of room, tiny, sound, end
	want := [][3]int{{1, 8, 0}, {2, 4, 1}, {4, 8, 1}, {5, 7, 2}, {7, 8, 2}, {8, 9, 0}}
	found := arrow.FindAllStringSubmatch(text, -1)
	require.Len(t, found, len(want))
	for i, w := range want {
		from, end := begin(w[0]), 860.
		if w[1] < 9 {
			end = begin(w[1])
		}
		if assert.Equal(t, fmt.Sprint(134+11*w[2]), found[i][2], i); end-from > 20 {
			end -= 6
		}
		assert.Equal(t, fmt.Sprint(from), found[i][1], i)
		to, err := strconv.ParseFloat(found[i][3], 64)
		require.NoError(t, err)
		assert.InDelta(t, end-1, to, .2, i)
	}
	assert.Contains(t, text, "on systems</text>")
	assert.Contains(t, text, "on styles</text>")
	assert.Contains(t, text, "on /</text>")
	assert.Empty(t, arrow.FindAllString(drawPlan(t, plans["each"]), -1), "no regions")
}

// TestFaultyPlan: a wrong plan writes no byte.
func TestFaultyPlan(t *testing.T) {
	var b bytes.Buffer
	require.Error(t, view.Plan(&b, budget.Plan{}))
	assert.Zero(t, b.Len())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
