package view

import (
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

// band is a part of a plan over time: a region, or the fullest of several arenas in each sample.
type band struct {
	class, name string
	note        string // of the region, in the plan
	count       int    // of arenas
	size        uint64
	most        []uint64
	marks       []timeline.Mark
	peak        uint64
	peakAt      int    // the sample
	fullest     string // the arena that had the peak
	ever        timeline.Mark

	expected *budget.Expected // nil: nothing
	curve    []uint64         // the expected size of each sample; 0: nothing
}

// folded is the data of a picture. All its bands are as long as the longest line.
type folded struct {
	name    string
	bands   []*band // the shown ones
	parts   int     // shown or not
	samples int
	step    uint64 // ticks a sample
	ticks   uint64
}

// fold returns the data of at most that many samples. Each is the highest of several adjacent
// samples of d. Parts beyond bandsMost are only counted, because a hostile file names a
// part in a few bytes and a band takes kilobytes.
func fold(d timeline.Data, samples int) folded {
	t := folded{name: d.Budget, step: max(d.Step, 1)}
	longest := 0
	for _, line := range d.Arenas {
		longest = max(longest, len(line.Most))
	}
	each := max(1, (longest+samples-1)/samples)
	t.samples = (longest + each - 1) / each
	t.step = times(t.step, uint64(each))
	t.ticks = min(d.Ticks, times(uint64(t.samples), t.step))
	if t.samples > 0 && t.ticks <= times(uint64(t.samples-1), t.step) {
		t.ticks = times(uint64(t.samples), t.step)
	}
	last := ""
	for i := range d.Arenas {
		line := &d.Arenas[i]
		if i == 0 || line.Part != last {
			if t.parts++; t.parts <= bandsMost {
				t.bands = append(t.bands, &band{class: classOf(line.Kind), name: line.Part, note: line.Note,
					most: make([]uint64, t.samples), marks: make([]timeline.Mark, t.samples)})
			}
		}
		last = line.Part
		if t.parts == len(t.bands) {
			t.bands[t.parts-1].add(line, each)
		}
	}
	for _, b := range t.bands {
		b.peakAt = max(0, slices.Index(b.most, b.peak))
		b.expect(d, each)
	}
	return t
}

func (b *band) add(line *timeline.Arena, each int) {
	b.count++
	b.size = max(b.size, line.Size)
	for i, most := range line.Most {
		b.most[i/each] = max(b.most[i/each], most)
		if most > b.peak {
			b.peak, b.fullest = most, line.Name
		}
	}
	for i, mark := range line.Marks[:min(len(line.Marks), len(line.Most))] {
		b.marks[i/each] |= mark
		b.ever |= mark
	}
}

// expect takes the curve of the band's expectation, if the timeline has one.
func (b *band) expect(d timeline.Data, each int) {
	i := slices.IndexFunc(d.Expected, func(e budget.Expected) bool { return e.Part == b.name && e.Label == "" })
	if i < 0 || b.count == 0 {
		return
	}
	b.expected = &d.Expected[i]
	b.curve = make([]uint64, len(b.most))
	for i, m := range d.Moments(*b.expected) {
		b.curve[i/each] = max(b.curve[i/each], m.Expected)
	}
}

func (b *band) title() string {
	if b.count == 1 {
		return b.name
	}
	return b.name + " ×" + exact(uint64(b.count))
}

// runs returns the samples with a mark, as ranges.
func (b *band) runs(mark timeline.Mark) (list [][2]int) {
	for i, m := range b.marks {
		switch n := len(list); {
		case m&mark == 0:
		case n != 0 && list[n-1][1] == i:
			list[n-1][1]++
		default:
			list = append(list, [2]int{i, i + 1})
		}
	}
	return list
}

// times returns a*b, or the largest number if that is too large.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return 1<<64 - 1
	}
	return low
}
