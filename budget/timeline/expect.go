package timeline

import (
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

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
func (d Data) Moments(e budget.Expected) []Moment {
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
func Expect(tolerance budget.Percent, timelines ...Data) (list []budget.Expected) {
	for _, d := range timelines {
		for i, line := range d.Arenas {
			if i > 0 && d.Arenas[i-1].Part == line.Part {
				continue
			}
			k := slices.IndexFunc(list, func(e budget.Expected) bool { return e.Part == line.Part })
			if k < 0 {
				k = len(list)
				list = append(list, budget.Expected{Part: line.Part, Tolerance: tolerance})
			}
			e := &list[k]
			for _, m := range d.Moments(*e) {
				switch m.At {
				case "boot":
					e.Boot = max(e.Boot, m.Used)
				case "load":
					e.Load = max(e.Load, m.Used)
				case "play":
					e.Play = max(e.Play, m.Used)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(e budget.Expected) bool { return e.Most() == 0 })
}
