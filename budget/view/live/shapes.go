package live

import (
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// squares is how many a fence has: where there are more slots, a square stands for several.
const squares = 240

// stripe is an arena on the map, or a part: where it begins and how far it reaches, in per cent.
type stripe struct {
	Class, Title, Left, Whole, Up, Now markup
}

// stripes lays the arenas side by side. Where there are too many to tell apart, siblings are one: then there is no most that
// they held at one time.
func stripes(r budget.Report) (all []stripe) {
	total, from := uint64(0), uint64(0)
	for _, a := range r.Arenas {
		total += a.Size
	}
	add := func(kind string, title markup, used, peak, size uint64) {
		all = append(all, stripe{class(kind), title, share(from, total), share(size, total),
			share(min(max(peak, used), size), total), share(min(used, size), total)})
		from += size
	}
	for _, p := range r.Parts() {
		if used := p.Value("used"); len(r.Arenas) > squares && len(p.Arenas) > 1 {
			add(p.Kind, text(p.Name)+": "+grouped(used)+" bytes in use, "+grouped(p.Value("arena_peak"))+" at most in one, of "+
				decimal(uint64(len(p.Arenas)))+"×"+grouped(p.Value("arena_size")), used, 0, p.Value("size"))
			continue
		}
		for _, a := range p.Arenas {
			add(a.Kind, text(a.Name)+": "+grouped(a.Used)+" bytes in use, "+grouped(a.Peak)+" at most, of "+grouped(a.Size), a.Used, a.Peak, a.Size)
		}
	}
	return all
}

// class is the colour of an arena of a kind, which pictures give it, too.
func class(kind string) markup {
	if kind == "frame" || kind == "scratch" {
		return markup(kind)
	}
	return "region"
}

// drawn is the arena on the map: what is in use above what was above what is planned.
func (s stripe) drawn() markup {
	m := `<g class="` + s.Class + `"><title>` + s.Title + "</title>"
	for _, r := range [][2]markup{{"ground", s.Whole}, {"peak", s.Up}, {"used", s.Now}} {
		m += when(r[1] != "0", `<rect class="`+r[0]+`" x="`+s.Left+`%" width="`+r[1]+`%" height="100%"/>`)
	}
	return m + "</g>\n"
}

// square is a slot of the fence, or the fullest of some.
type square struct {
	budget.ArenaReport
	Others int
}

// fence has a square for each slot; where there are too many, one for the fullest of so many neighbours.
func fence(slots []budget.ArenaReport) (all []square, beyond int) {
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
