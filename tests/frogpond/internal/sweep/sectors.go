package sweep

import "fmt"

// A sector's special has its light in the low five bits, and its harm in the next two bits. The
// first game's numbers mean a light, a harm, or both.

// lightOf returns the light of a special, as the first game's number, or 0.
func lightOf(special uint16) uint16 {
	switch light := special & 31; light {
	case 1, 2, 3, 4, 8, 12, 13, 17:
		return light
	}
	return 0
}

func flickers(special uint16) bool { return lightOf(special) != 0 }

// harmOf returns the health that a special takes in 32 ticks.
func harmOf(special uint16) int {
	if special >= 32 {
		return []int{0, 5, 10, 20}[special>>5&3]
	}
	return map[uint16]int{4: 20, 5: 10, 7: 5, 11: 20, 16: 20}[special]
}

const watched = 256 // ticks of watching lights

// Sectors checks the specials of sectors: it watches the lights of a map at rest, and the health of
// a body in each sector. It returns load's error, if any.
func Sectors(m *Map, load func() (World, error)) (Result, error) {
	result := Result{Lines: map[string]int{}, Unknown: map[int]int{}}
	w, err := load()
	if err != nil {
		return result, err
	}
	seen := make([][]int, len(m.Sectors))
	for range watched {
		w.Tick()
		for i := range seen {
			seen[i] = append(seen[i], w.Light(i))
		}
	}
	n := m.now()
	for i := range m.Sectors {
		special := m.Sectors[i].Special
		if lightOf(special) == 0 && harmOf(special) == 0 {
			continue
		}
		said := ""
		if lightOf(special) != 0 {
			said = n.light(i, lightOf(special), seen[i])
		}
		if got, want := w.Hurt(i, 64), 2*harmOf(special); said == "" && got != want {
			said = fmt.Sprintf("takes %d health in 64 ticks, expected %d", got, want)
		}
		if said == "" {
			result.Sectors++
		} else {
			result.Wrong = append(result.Wrong, fmt.Sprintf("sector %d, special %d: %s", i, special, said))
		}
	}
	return result, nil
}

type run struct{ light, ticks int }

func runs(seen []int) (list []run) {
	for _, light := range seen {
		if len(list) == 0 || list[len(list)-1].light != light {
			list = append(list, run{light: light})
		}
		list[len(list)-1].ticks++
	}
	return list
}

// light returns the error in a sector's light, or "".
func (n *now) light(sector int, special uint16, seen []int) string {
	bright, dark := n.lights[sector], n.darkest(sector)
	switch list := runs(seen); special {
	case 8:
		return glows(seen, bright, dark)
	case 17:
		return flames(list, bright, dark+16)
	case 1:
		if bright == dark {
			return blinks(list, bright, dark, 1, watched, watched)
		}
		return blinks(list, bright, dark, 1, 65, 8)
	default:
		if bright == dark {
			dark = 0
		}
		long := 15
		if special == 3 || special == 12 {
			long = 35
		}
		said := blinks(list, bright, dark, 5, 5, long)
		first := list[0]
		inStep := special == 12 || special == 13
		if said == "" && inStep && first.light == bright && first.ticks > slack {
			return fmt.Sprintf("bright for %d ticks, expected to start at once", first.ticks)
		}
		return said
	}
}

// blinks returns the error of a light with two levels, or "". It expects bright for least to most
// ticks, and dark for darkTime ticks, or at most darkTime if least and most differ.
func blinks(list []run, bright, dark, least, most, darkTime int) string {
	for i, r := range list {
		first, last := i == 0, i == len(list)-1
		short, long := least, most
		switch r.light {
		case bright:
			if first {
				long = max(long, 8+slack) // it starts at random
			}
		case dark:
			short, long = 1, darkTime
			if least == most {
				short = darkTime
			}
		default:
			return fmt.Sprintf("light %d, expected %d or %d", r.light, bright, dark)
		}
		if r.ticks > long || r.ticks < short && !first && !last {
			return fmt.Sprintf("light %d for %d ticks, expected %d to %d", r.light, r.ticks, short, long)
		}
	}
	return ""
}

// glows returns the error of a light that changes in steps of eight, or "". It expects a tick
// without a step before each turn.
func glows(seen []int, bright, dark int) string {
	light, step := bright, -8
	for i, got := range seen {
		if next := light + step; next <= dark && step < 0 || next >= bright && step > 0 {
			step = -step
		} else {
			light = next
		}
		if got != light {
			return fmt.Sprintf("tick %d: light %d, expected %d", i+1, got, light)
		}
	}
	return ""
}

// flames returns the error of a fire, or "". It expects bright less 0, 16, 32 or 48, or dark, each
// for a multiple of four ticks.
func flames(list []run, bright, dark int) string {
	for i, r := range list {
		if r.light < min(bright, dark) {
			return fmt.Sprintf("light %d, expected %d at least", r.light, min(bright, dark))
		}
		if below := bright - r.light; r.light != dark && (below < 0 || below > 48 || below%16 != 0) {
			return fmt.Sprintf("light %d, expected %d less 0, 16, 32 or 48, or %d", r.light, bright, dark)
		}
		if r.ticks%4 != 0 && i != 0 && i != len(list)-1 {
			return fmt.Sprintf("light %d for %d ticks, expected a multiple of 4", r.light, r.ticks)
		}
	}
	if len(list) < 4 && bright != dark {
		return fmt.Sprintf("light %d hardly changes", list[0].light)
	}
	return ""
}
