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
	if e.Label != "" {
		return nil
	}
	return d.moments(e, d.parts()[e.Part], d.loads())
}

// parts returns the arenas of each part.
func (d Data) parts() map[string][]Arena {
	parts := map[string][]Arena{}
	for _, line := range d.Arenas {
		parts[line.Part] = append(parts[line.Part], line)
	}
	return parts
}

// loads returns, for each sample, whether a load of any part ended in it.
func (d Data) loads() (list []bool) {
	for _, line := range d.Arenas {
		list = addLoads(list, line.Marks)
	}
	return list
}

func addLoads(list []bool, marks []Mark) []bool {
	list = append(list, make([]bool, max(0, len(marks)-len(list)))...)
	for i, m := range marks {
		list[i] = list[i] || m&MarkLoad != 0
	}
	return list
}

// moments is Moments for the arenas of e's part. A part without loads has those of all parts.
func (d Data) moments(e budget.Expected, part []Arena, all []bool) []Moment {
	var list []Moment
	var loads []bool
	for _, line := range part {
		list = append(list, make([]Moment, max(0, len(line.Most)-len(list)))...)
		for i, most := range line.Most {
			list[i].Used = max(list[i].Used, most)
		}
		loads = addLoads(loads, line.Marks)
	}
	if !slices.Contains(loads, true) {
		loads = all
	}
	for i, load := range loads[:min(len(loads), len(list))] {
		if load {
			list[i].At = "load"
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
	places := map[string]int{}
	for _, d := range timelines {
		parts, loads := d.parts(), d.loads()
		for _, line := range d.Arenas {
			lines, left := parts[line.Part]
			if !left {
				continue
			}
			delete(parts, line.Part)
			place, found := places[line.Part]
			if !found {
				place = len(list)
				places[line.Part] = place
				list = append(list, budget.Expected{Part: line.Part, Tolerance: tolerance})
			}
			e := &list[place]
			for _, m := range d.moments(*e, lines, loads) {
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
