package budget

import (
	"math/bits"
	"slices"
)

// Expected is the memory that a part of a plan, or a label in it, is expected to use over time.
// Pictures draw the expected use next to a [Timeline], and `upfront check` compares it with the
// measured use. Apart from the plan's checks it has no effect on a budget.
type Expected struct {
	// Part is the name of a region, "frame", "scratch" or "c_heap". Each slot of a region may use
	// the sizes below.
	Part  string `json:"part"`
	Label string `json:"label,omitempty"` // a [scope.Label] in the part; "": all of the part
	// Boot is the most bytes in use before the first load of the part, Load the most in a load,
	// temporaries included, and Play the most between loads. For a part that is never loaded, such
	// as the frame, the loads of all regions count. A 0 allows any use.
	Boot uint64 `json:"boot,omitempty"`
	Load uint64 `json:"load,omitempty"`
	Play uint64 `json:"play,omitempty"`
	// Tolerance is the share of each size by which the use may differ. With 0 the use must be equal
	// to the byte.
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
	Expected uint64 // 0: nothing is expected
}

// Moments returns the samples of e's part, each with the size that e expects. For a sample in which
// a load ended, At is "load". If samples have several ticks, such a sample may also include the use
// before and after the load, so its expected size is the largest of the three, unless Load is 0. If
// e has a Label the result is empty, because a timeline has no labels.
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

// Expect returns an expectation for each part that was used in timelines of a plan: the part's most
// bytes at boot, in loads and in play.
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
