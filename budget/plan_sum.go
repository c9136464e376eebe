package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// sum is what parts of the plan take when they are laid out, tables not counted: the C core adds it
// up. A region that takes the rest is empty in it. What is beyond uint64 is its largest: a faulty
// plan is added up, too.
func (p Plan) sum(parts ...sizedPart) arena_c.MapSum {
	var lines []arena_c.Arena
	for _, part := range parts {
		line := arena_c.Arena{Kind: part.kind, Size: *part.size, Siblings: part.count}
		if part.kind == arena_c.KindRegion && line.Size == Rest {
			line.Size = 0
		}
		if line.Siblings != 0 {
			lines = append(lines, line)
		}
	}
	return arena_c.MapMeasure(lines, p.guard())
}

// total is the bytes of all parts when they are laid out: at most Size when that is given. The plan
// is a resolved one.
func (p Plan) total() uint64 { return p.sum(p.sized()...).Whole }

// arenaCount is the number of arenas: each slot, buffer and scratch is one.
func (p Plan) arenaCount() uint64 { return p.sum(p.sized()...).Rows }

// ofKind is the bytes of all parts of a kind, without their guards.
func (p Plan) ofKind(kind uint64) uint64 {
	sum := p.sum(slices.DeleteFunc(p.sized(), func(part sizedPart) bool { return part.kind != kind })...)
	return sum.Whole - sum.Guards
}

// partsText is for a message: the total and what it is made of.
func (p Plan) partsText() string {
	sum, guards := p.sum(p.sized()...), ""
	if sum.Guards != 0 {
		guards = ", guards " + sizeText(sum.Guards)
	}
	return fmt.Sprintf("%s (regions %s, frame %s, scratch %s%s; each rounded up to %s)", sizeText(sum.Whole),
		sizeText(p.ofKind(arena_c.KindRegion)), sizeText(p.ofKind(arena_c.KindFrame)),
		sizeText(p.ofKind(arena_c.KindScratch)), guards, sizeText(planEdge))
}

// goTables is what the arenas' tables on the Go side take of the Go heap, about, in whole edges.
func (p Plan) goTables() uint64 {
	tables, _ := p.tableBytes()
	return planRound(p.arenaCount() * tables)
}

// tableBytes is what those of one arena take, and what checked builds add.
func (p Plan) tableBytes() (tables, sites uint64) {
	l := p.Limits.orDefault()
	st := scope.Stack{Owned: l.Owned, Names: l.Labels}
	return st.TableBytes(uint64(l.Scopes))
}

// guard is the bytes behind each arena that nobody may touch.
func (p Plan) guard() uint64 {
	if p.Pages.Guards <= Off {
		return 0
	}
	return planEdge
}

// sums checks what the parts come to, unless one of them is faulty itself.
func (f *planFaults) sums(p Plan) {
	if slices.ContainsFunc(*f, func(fault planFault) bool { return planSummand(fault.key) }) {
		return
	}
	if count := p.arenaCount(); count > planArenasMax {
		most := 0
		for i, r := range p.Regions {
			if r.Slots > p.Regions[most].Slots {
				most = i
			}
		}
		f.add(fmt.Sprintf("regions[%d].slots", most), "%d, the most of all; with each slot, buffer and scratch there are %d arenas, "+
			"and a budget has at most %d", p.Regions[most].Slots, count, planArenasMax)
	}
	rest := p.rest()
	least, size, need := p.total(), planRound(min(p.Size, planSizeMax)), p.partsText() // far from 64 bits
	if rest >= 0 {
		least += planEdge
		need += fmt.Sprintf(", and regions[%d], which has the rest, %s or more", rest, sizeText(planEdge))
	}
	switch {
	case least > planSizeMax:
		f.add("regions", "the parts need %s; a budget has at most %s", need, sizeText(planSizeMax))
	case p.Size == 0:
	case rest >= 0 && least > size:
		f.add("size", "%s leaves no rest: the parts need %s; %s more would do", sizeText(p.Size), need, sizeText(least-p.Size))
	case rest < 0 && least > p.Size:
		f.add("size", "%s is less than the parts need: %s", sizeText(p.Size), need)
	}
	if p.Base < planBaseEnd && p.Base != 0 && max(least, size) > planBaseEnd-p.Base {
		f.add("base", "%s; the parts need %s from there, and addresses end at %s", addressText(p.Base), sizeText(max(least, size)),
			addressText(planBaseEnd))
	}
}

// planSummand tells whether the sum depends on the key.
func planSummand(key string) bool {
	switch key {
	case "regions", "frame.buffers", "scratch.workers", "scratch.each":
		return true
	}
	return strings.HasSuffix(key, ".size") || strings.HasSuffix(key, ".slots")
}

// rest is the index of the region that takes the rest, or -1.
func (p Plan) rest() int {
	return slices.IndexFunc(p.Regions, func(r RegionPlan) bool { return r.Size == Rest })
}

// resolved is a checked plan as it is laid out: a size for the region that takes the rest, and every default filled
// in. The plan's size is rounded up when something takes the rest of it: the parts are exactly that then.
func (p Plan) resolved() Plan {
	p.Regions = slices.Clone(p.Regions)
	if rest := p.rest(); rest >= 0 {
		p.Size = planRound(p.Size)
		p.Regions[rest].Size = p.Size - p.total()
	}
	if p.Scratch.Workers != 0 {
		p.Scratch.Each = cmp.Or(p.Scratch.Each, planEachUsual)
	}
	p.Limits = p.Limits.orDefault()
	p.Pages = p.Pages.orDefault(p.Base)
	return p
}

// orDefault fills in the limits that are 0.
func (l Limits) orDefault() Limits {
	return Limits{Scopes: cmp.Or(l.Scopes, 64), Pools: cmp.Or(l.Pools, 64), Owned: cmp.Or(l.Owned, 256), Labels: cmp.Or(l.Labels, 32)}
}

// planRound rounds a size up to the next edge, as an arena of that size is laid out.
func planRound(size uint64) uint64 {
	return arena_c.MapMeasure([]arena_c.Arena{{Size: size}}, 0).Whole
}
