package live

import (
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// squares is how many a fence has: where there are more slots, a square stands for several.
const squares = 240

// stripe is an arena on the map, which is as wide as all of them: where it begins and how far it reaches, in per cent.
type stripe struct {
	budget.RegionReport
	Class, Left, Whole, Up, Now markup
}

// stripes lays the arenas side by side. Where there are too many to tell apart, siblings are one.
func stripes(list []budget.RegionReport) (all []stripe) {
	if len(list) > squares {
		list = folded(list)
	}
	total, from := uint64(0), uint64(0)
	for _, x := range list {
		total += x.Size
	}
	all = make([]stripe, 0, len(list))
	for _, x := range list {
		s := stripe{RegionReport: x, Class: class(x.Name), Left: share(from, total), Whole: share(x.Size, total)}
		s.Up, s.Now = share(min(max(x.Peak, x.Used), x.Size), total), share(min(x.Used, x.Size), total)
		all = append(all, s)
		from += x.Size
	}
	return all
}

// folded has one line for siblings, with their sums.
func folded(list []budget.RegionReport) (all []budget.RegionReport) {
	for _, x := range list {
		last := len(all) - 1
		if last < 0 || all[last].Name != budget.RegionOf(x.Name) {
			all = append(all, budget.RegionReport{Name: budget.RegionOf(x.Name)})
			last++
		}
		all[last].Size += x.Size
		all[last].Used += x.Used
		all[last].Peak += x.Peak
	}
	return all
}

// class is the colour of an arena, which pictures give it, too.
func class(arena string) markup {
	switch budget.RegionOf(arena) {
	case "frame":
		return "frame"
	case "scratch":
		return "scratch"
	}
	return "region"
}

// drawn is the arena on the map: what is in use above what was above what is planned.
func (s stripe) drawn() markup {
	m := `<g class="` + s.Class + `"><title>` + text(s.Name) + ": " + grouped(s.Used) + " bytes in use, " + grouped(s.Peak) +
		" at most, of " + grouped(s.Size) + "</title>"
	for _, r := range [][2]markup{{"ground", s.Whole}, {"peak", s.Up}, {"used", s.Now}} {
		m += when(r[1] != "0", `<rect class="`+r[0]+`" x="`+s.Left+`%" width="`+r[1]+`%" height="100%"/>`)
	}
	return m + "</g>\n"
}

// square is a slot of the fence, or the fullest of some.
type square struct {
	budget.RegionReport
	Others int
}

// fence has a square for each slot; where there are too many, one for the fullest of so many neighbours.
func fence(slots []budget.RegionReport) (all []square, beyond int) {
	each := (len(slots) + squares - 1) / squares
	for some := range slices.Chunk(slots, each) {
		all = append(all, square{slices.MinFunc(some, byUse), len(some) - 1})
	}
	return all, each - 1
}

// drawn is the square, filled from below.
func (s square) drawn() markup {
	return "<svg><title>" + text(s.Name) + when(s.Others != 0, " and "+decimal(uint64(s.Others))+" less full") + ": " +
		grouped(s.Used) + " bytes of " + grouped(s.Size) + ", most " + grouped(s.Peak) + "</title>" +
		filled("peak", max(s.Used, s.Peak), s.Size) + filled("used", s.Used, s.Size) + "</svg>\n"
}

func filled(class markup, part, whole uint64) markup {
	high := share(part, whole)
	return when(high != "0", `<rect class="`+class+`" y="`+share(rest(part, whole), whole)+`%" width="100%" height="`+high+`%"/>`)
}
