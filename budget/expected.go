package budget

import (
	"math/bits"
	"slices"
)

// Expected is the memory that a part of a plan, or a label in it, is expected to use over time.
// Pictures draw it next to a [Timeline], and `upfront check` compares. Nothing else reads it: Open
// checks it with the plan, and no later call costs more.
type Expected struct {
	// Part is a region, "frame", "scratch" or "c_heap". Each slot of a region may use that much.
	Part  string `json:"part"`
	Label string `json:"label,omitempty"` // a [scope.Label] in the part; "": all of the part
	// Boot is the most bytes before the first load of the part, Load the most of a load with its
	// temporaries, and Play the most between loads. A part that is never loaded, such as the frame,
	// follows the loads of all regions. 0: nothing is expected, and any use is fine.
	Boot uint64 `json:"boot,omitempty"`
	Load uint64 `json:"load,omitempty"`
	Play uint64 `json:"play,omitempty"`
	// Tolerance is the share of each size by which the use may differ; 0: to the byte.
	Tolerance Percent `json:"tolerance,omitempty"`
}

// points returns the sizes by their keys in the plan's JSON, which are the values of Moment.At.
func (e *Expected) points() []keyed[*uint64] {
	return []keyed[*uint64]{{"boot", &e.Boot}, {"load", &e.Load}, {"play", &e.Play}}
}

// Most returns the largest of the three sizes.
func (e Expected) Most() uint64 { return max(e.Boot, e.Load, e.Play) }

// Band returns the least and the most bytes that the tolerance allows for an expected size.
func (e Expected) Band(size uint64) (least, most uint64) {
	share := uint64(min(max(e.Tolerance, 0), 100))
	high, low := bits.Mul64(size, share)
	tolerated, _ := bits.Div64(high, low, 100)
	return size - tolerated, plus(size, tolerated)
}

// Moment is a sample of a part, with the expectation for it.
type Moment struct {
	At       string // "boot", "load" or "play"
	Used     uint64 // peak bytes of the part's fullest arena in the sample
	Expected uint64 // 0: nothing
}

// Moments returns the samples of the expectation's part. A sample in which a load ended is a load.
// If it has several ticks, it may also show the use before and after, so it expects the largest of
// the three sizes. A timeline has no labels: the result is then empty.
func (d TimelineData) Moments(e Expected) []Moment {
	var list []Moment
	if e.Label != "" {
		return nil
	}
	loaded := false
	for _, line := range d.Arenas {
		if line.Part == e.Part {
			list = append(list, make([]Moment, max(0, len(line.Most)-len(list)))...)
			for i, most := range line.Most {
				list[i].Used = max(list[i].Used, most)
			}
			loaded = loaded || slices.ContainsFunc(line.Marks, func(m Mark) bool { return m&MarkLoad != 0 })
		}
	}
	for _, line := range d.Arenas {
		for i, m := range line.Marks[:min(len(line.Marks), len(list))] {
			if m&MarkLoad != 0 && (line.Part == e.Part || !loaded) {
				list[i].At = "load"
			}
		}
	}
	at, expected := "boot", e.Boot
	for i := range list {
		if m := &list[i]; m.At == "" {
			m.At, m.Expected = at, expected
		} else if at, expected = "play", e.Play; e.Load != 0 && d.Step > 1 {
			m.Expected = e.Most()
		} else {
			m.Expected = e.Load
		}
	}
	return list
}

// Expect returns the use in timelines of a plan as expectations: for each part that was used, its
// most at boot, in loads and in play.
func Expect(tolerance Percent, timelines ...TimelineData) (list []Expected) {
	for _, d := range timelines {
		for i, line := range d.Arenas {
			if i > 0 && d.Arenas[i-1].Part == line.Part {
				continue
			}
			k := slices.IndexFunc(list, func(e Expected) bool { return e.Part == line.Part })
			if k < 0 {
				k = len(list)
				list = append(list, Expected{Part: line.Part, Tolerance: tolerance})
			}
			for _, m := range d.Moments(list[k]) {
				for _, point := range list[k].points() {
					if point.key == m.At {
						*point.value = max(*point.value, m.Used)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(e Expected) bool { return e.Most() == 0 })
}
