package view_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view"
)

// played returns a computed timeline of a game with 68 levels.
func played(samples int) timeline.Data {
	const levels = 68
	d := timeline.Data{Budget: "pond", Step: 46, Ticks: uint64(samples)*46 - 11}
	add := func(name string, size uint64, fn func(i int) (uint64, timeline.Mark)) {
		part, _, _ := strings.Cut(name, " ")
		line := timeline.Arena{Name: name, Part: part, Size: size, Most: make([]uint64, samples)}
		var all timeline.Mark
		marks := make([]timeline.Mark, samples)
		for i := range samples {
			line.Most[i], marks[i] = fn(i)
			all |= marks[i]
		}
		if all != 0 {
			line.Marks = marks
		}
		d.Arenas = append(d.Arenas, line)
	}
	level := func(i int) (n, since int) { n = i * levels / samples; return n, i - (n*samples+levels-1)/levels }
	add("init", 300*budget.KiB, func(i int) (uint64, timeline.Mark) {
		if i == 0 {
			return 271_113, timeline.MarkLoad
		}
		return 253_981, 0
	})
	add("systems", 220*budget.KiB, func(i int) (uint64, timeline.Mark) {
		n, since := level(i)
		used := uint64(90_000 + n*31*977%70_000 + 800*since)
		if since == 0 {
			return used, timeline.MarkLoad
		}
		return used, 0
	})
	add("level", 1600*budget.KiB, func(i int) (uint64, timeline.Mark) {
		n, since := level(i)
		used := uint64(350_000 + n*n*7919%1_200_000)
		switch {
		case n == 41:
			return 0, timeline.MarkRewind
		case since == 0 && n == 40:
			return 1600 * budget.KiB, timeline.MarkLoad | timeline.MarkFull
		case since == 0:
			return min(used+used/6, 1600*budget.KiB), timeline.MarkLoad
		}
		return used, 0
	})
	for slot := range 3 {
		add(fmt.Sprint("room ", slot), 128*budget.KiB, func(i int) (uint64, timeline.Mark) {
			if i%(60+slot) < 20*slot {
				return uint64(60_000 + slot*20_000), 0
			}
			return 0, 0
		})
	}
	for buffer := range 2 {
		add(fmt.Sprint("frame ", buffer), 64*budget.KiB, func(i int) (uint64, timeline.Mark) {
			return uint64(9_000 + i*i*31%17_000), 0
		})
	}
	add("scratch 0.0", 64*budget.KiB, func(int) (uint64, timeline.Mark) { return 0, 0 })
	return d
}

// TestTimelineOfNotes: a region's note stands in the line of its peak, which it doesn't cover
// wherever the peak is, and in the description. The part's size may be for another run.
func TestTimelineOfNotes(t *testing.T) {
	note := `1600464 bytes in report 2, "one map, 400000 ticks"`
	for _, used := range [][]uint64{{0, 0, 0, 0, 0, 0}, {9, 1, 1, 1, 1, 1}, {1, 1, 9, 1, 1, 1}, {1, 1, 1, 9, 1, 1},
		{1, 1, 1, 1, 1, 9}} {
		d := timeline.Data{Budget: "pond", Step: 1, Ticks: 6,
			Arenas: []timeline.Arena{{Name: "systems", Part: "systems", Kind: "region", Size: 1 << 20, Most: used,
				Note: note}}}
		picture := drawn(t, func(w io.Writer) error { return view.Timeline(w, d) })
		checkPicture(t, picture)
		assert.Contains(t, unescaped(picture), ">1600464 bytes in report 2, ")
		assert.Contains(t, unescaped(picture), "noted "+note)
	}
}

func TestTimelineGolden(t *testing.T) {
	d := played(512)
	picture := drawn(t, func(w io.Writer) error { return view.Timeline(w, d) })
	golden(t, "timeline.svg", picture)
	checkPicture(t, picture)
}

// A warning is a triangle. The legend has it only if the timeline does.
func TestTimelineOfWarnings(t *testing.T) {
	d := played(64)
	level := &d.Arenas[2]
	level.Marks[3] |= timeline.MarkWarn
	for i, m := range level.Marks {
		if m&timeline.MarkFull != 0 {
			level.Marks[i] |= timeline.MarkWarn
		}
	}
	picture := drawn(t, func(w io.Writer) error { return view.Timeline(w, d) })
	checkPicture(t, picture)
	assert.Contains(t, picture, ">warning</text>")
	assert.Contains(t, picture, "level: at most 1600KiB of 1600KiB, marked load, rewind, full, warning")
	assert.Equal(t, 1+2, strings.Count(picture, "l5 8h-10z"), "in the legend and on the band")
	without := drawn(t, func(w io.Writer) error { return view.Timeline(w, played(64)) })
	assert.NotContains(t, without, "warning")
}

// An expectation is a dashed line in a hatched band.
func TestTimelineOfExpectations(t *testing.T) {
	d := played(512)
	d.Expected = []budget.Expected{
		{Part: "level", Boot: 100 * budget.KiB, Load: 1300 * budget.KiB, Play: 1100 * budget.KiB, Tolerance: 15},
		{Part: "level", Label: "frogs", Play: 1},
		{Part: "frame", Play: 20 * budget.KiB, Tolerance: 30},
		{Part: "none", Play: 1},
	}
	picture := drawn(t, func(w io.Writer) error { return view.Timeline(w, d) })
	golden(t, "expected.svg", picture)
	checkPicture(t, picture)
	assert.Equal(t, 1+2, strings.Count(picture, "stroke-dasharray"), "in the legend and on two bands")
}

// strange returns timelines that no budget recorded.
func strange() map[string]timeline.Data {
	long := played(5000)
	for i := range 40 {
		long.Arenas = append(long.Arenas, timeline.Arena{Name: fmt.Sprint("r", i), Part: fmt.Sprint("r", i),
			Most: []uint64{1, 2}})
	}
	return map[string]timeline.Data{
		"none":     {},
		"no ticks": {Budget: "pond", Step: 1, Arenas: []timeline.Arena{{Name: "level", Size: 100}}},
		"one": {Budget: "pond", Step: 1, Ticks: 1,
			Arenas: []timeline.Arena{{Name: "level", Size: 100, Most: []uint64{100}}}},
		"far":  {Step: 1_370_000, Arenas: []timeline.Arena{{Most: []uint64{0, 0, 0}}}},
		"long": long,
		"torn": {Budget: "</svg>\x1b[31m", Step: math.MaxUint64, Ticks: 3, Arenas: []timeline.Arena{
			{Name: strings.Repeat("x", 300) + ` "a" <b>`, Most: []uint64{math.MaxUint64, 1},
				Marks: []timeline.Mark{math.MaxUint16}},
			{Name: "room 1", Part: "room", Size: math.MaxUint64, Most: []uint64{1, 2, 3},
				Marks: make([]timeline.Mark, 9)},
			{Name: "room 2", Part: "room"},
			{},
		}},
		"expected": {Budget: "pond", Step: 1, Ticks: 2,
			Expected: []budget.Expected{{Part: "level", Load: math.MaxUint64, Play: 1, Tolerance: math.MaxInt},
				{Part: "none", Boot: 1, Tolerance: -1}, {}}, Arenas: []timeline.Arena{
				{Name: "level", Part: "level", Size: 100, Most: []uint64{100, 1, 7}, Marks: []timeline.Mark{0, 1}},
				{Name: "none", Part: "none"}, {}}},
	}
}

func TestStrangeTimelines(t *testing.T) {
	for name, d := range strange() {
		t.Run(name, func(t *testing.T) {
			picture := drawn(t, func(w io.Writer) error { return view.Timeline(w, d) })
			checkPicture(t, picture)
			assert.Less(t, len(picture), 200<<10)
		})
	}
	long := drawn(t, func(w io.Writer) error { return view.Timeline(w, strange()["long"]) })
	assert.True(t, strings.Contains(long, ">and 22 more parts<"))
}

// TestTimelineOfManyParts: hidden parts take no samples.
func TestTimelineOfManyParts(t *testing.T) {
	d := timeline.Data{Arenas: make([]timeline.Arena, 20_000)}
	d.Arenas[0].Most = make([]uint64, 700)
	for i := range d.Arenas {
		d.Arenas[i].Part = fmt.Sprint(i)
	}
	assert.Less(t, taken(func() { assert.NoError(t, view.Timeline(io.Discard, d)) }), uint64(4*budget.MiB))
	assert.Contains(t, drawn(t, func(w io.Writer) error { return view.Timeline(w, d) }), ">and 19976 more parts<")
}

// FuzzTimeline draws any data that can be read.
func FuzzTimeline(f *testing.F) {
	for _, d := range strange() {
		if len(d.Arenas) < 10 {
			text, err := json.Marshal(d)
			require.NoError(f, err)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d timeline.Data
		if json.Unmarshal(text, &d) != nil {
			return
		}
		checkPicture(t, drawn(t, func(w io.Writer) error { return view.Timeline(w, d) }))
	})
}
