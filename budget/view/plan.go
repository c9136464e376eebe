package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// Plan draws the plan as a memory map, to scale except for tiny parts: the tables, regions from
// bottom to top, then the frame's buffers and the scratch arenas. Guards, and bytes that only round
// an arena up to 64 KiB, are pale. Arrows below the map show which regions a rewind empties; the
// regions that stand on one region have arrows of their own. Below them each part has a line with
// its sizes. The total is Cost.Addresses of the plan, its address space. For an invalid plan, Plan
// returns the error of [budget.Plan.Cost] and writes nothing.
func Plan(w io.Writer, p budget.Plan) error {
	cost, err := p.Cost()
	if err != nil {
		return err
	}
	return layOut(p, cost).draw(w)
}

// edge is the alignment of arenas in bytes; the other constants are positions in the picture.
const (
	edge           = 64 * budget.KiB
	barTop      px = 600
	barHeight   px = 560
	listTop     px = 1800
	sizeRight      = margin + 3400 // of the column of sizes; a name has at most 31 characters
	noteLetters    = 70            // right of the sizes
	arrowHeight px = 110
	slackClass     = "free pale" // the rounding of all arenas: one line of the list
)

// part is a line of the list: consecutive arenas of one size.
type part struct {
	class, name, text string
	size              uint64 // of each arena
	each              uint64 // as laid out, with its guard
	count             uint64
	offset            uint64
}

func (p part) end() uint64 { return p.offset + p.each*p.count }

// memoryMap is a plan as Open lays it out.
type memoryMap struct {
	plan     budget.Plan
	parts    []part // first the tables, then the regions
	branches []branch
	total    uint64
}

// layOut lays out a plan that has a cost, so sums and products are far from 64 bits. The first part
// is the tables, with their guard.
func layOut(p budget.Plan, cost budget.Cost) memoryMap {
	m := memoryMap{plan: p, branches: branches(p.Regions)}
	rest := -1
	for i, r := range p.Regions {
		text := r.Note
		if r.Size == budget.Rest {
			rest, r.Size, text = i, 0, strings.TrimSuffix("the rest, "+text, ", ")
		} else if r.Slots != 0 {
			text = strings.TrimSuffix(many(r.Slots, "slot")+" of "+sizeText(r.Size)+", "+text, ", ")
		}
		if r.On != "" {
			text = strings.TrimSuffix("on "+r.On+", "+text, ", ")
		}
		m.parts = append(m.parts, part{class: "region", name: r.Name, size: r.Size, count: uint64(max(1, r.Slots)),
			text: text})
	}
	if f := p.Frame; f.Buffers != 0 {
		m.parts = append(m.parts, part{class: "frame", name: "frame", size: f.Size, count: uint64(f.Buffers),
			text: many(f.Buffers, "buffer") + " of " + sizeText(f.Size) + ", in turn"})
	}
	if s := p.Scratch; s.Workers != 0 {
		each := cmp.Or(s.Each, 2)
		m.parts = append(m.parts, part{class: "scratch", name: "scratch", size: s.Size, count: uint64(s.Workers * each),
			text: many(s.Workers, "worker") + " × " + many(each, "arena") + " of " + sizeText(s.Size)})
	}
	m.lay()
	if free := round(p.Size) - min(round(p.Size), m.total); rest >= 0 {
		m.parts[rest].size = free
	} else if free != 0 {
		m.parts = append(m.parts, part{class: "free", name: "unplanned", size: free, count: 1})
	}
	m.lay()
	tables := part{class: "other", name: "tables", size: cost.Addresses - m.total, count: 1}
	if m.guarded() {
		tables.size -= edge
	}
	m.parts = slices.Insert(m.parts, 0, tables)
	m.lay()
	return m
}

func (m *memoryMap) lay() {
	m.total = 0
	for i := range m.parts {
		p := &m.parts[i]
		p.offset, p.each = m.total, round(p.size)
		if p.class != "free" && m.guarded() {
			p.each += edge
		}
		m.total = p.end()
	}
}

func (m *memoryMap) guarded() bool {
	return m.plan.Pages.Guards == budget.Wished || m.plan.Pages.Guards == budget.Required
}

func (m memoryMap) draw(w io.Writer) error {
	p := &picture{}
	title := fmt.Sprintf("plan %s: %s", m.plan.Name, sizeText(m.total))
	p.text("title", margin, 320, title)
	var outside []string
	switch m.plan.GoHeap {
	case 0:
	case budget.Rest:
		text := "Go heap, the rest"
		if most := m.plan.GoHeapMax; most != 0 {
			text = "Go heap, at most " + sizeText(most)
		}
		outside = append(outside, text)
	default:
		outside = append(outside, "Go heap "+sizeText(m.plan.GoHeap))
	}
	if m.plan.CHeap.Size != 0 {
		outside = append(outside, "C heap "+sizeText(m.plan.CHeap.Size))
	}
	for _, q := range m.plan.Quotas {
		outside = append(outside, "quota "+q.Name+" "+sizeText(q.Size))
	}
	if outside != nil {
		p.text("small size", width-margin, 320, "outside it: "+strings.Join(outside, ", "))
	}
	var list []string
	edges := m.total // the pale bytes, so that all lines sum up to the plan's size
	for i, part := range m.parts {
		edges -= part.size * part.count
		m.arenas(p, part)
		m.line(p, i, part)
		list = append(list, part.name+" "+sizeText(part.size*part.count))
	}
	if edges != 0 {
		text := "pale: only addresses; every arena begins at a multiple of " + sizeText(edge)
		if m.guarded() {
			text += ", and ends with a guard"
		}
		m.line(p, len(m.parts), part{class: slackClass, name: "edges", size: edges, count: 1, text: text})
	}
	m.arrows(p)
	return p.writeTo(w, title, "A memory map, bottom first: "+strings.Join(list, ", "),
		m.lineTop(len(m.parts)+1))
}

func (m memoryMap) x(offset uint64) px { return scale{margin, width - margin, m.total}.x(offset) }

// arenas draws the part in the map, with separate bars if these are wide enough.
func (m memoryMap) arenas(p *picture, part part) {
	count, size, each := part.count, part.size, part.each
	// too narrow: one bar, with all slack at its end
	if m.x(part.offset+part.each)-m.x(part.offset) < 30 {
		count, size, each = 1, part.size*part.count, part.each*part.count
	}
	for i := range count {
		from := part.offset + i*each
		left, middle, right := m.x(from)+5, m.x(from+size), m.x(from+each)-5
		p.rect(slackClass, left, barTop, right-left, barHeight)
		p.rect(part.class, left, barTop, min(max(left+10, middle), max(left, right))-left, barHeight)
	}
	from, to := m.x(part.offset), m.x(part.end())
	if used := m.x(part.offset+part.size) - from; count == 1 && used > long(part.name)+80 {
		p.text("in", from+used/2, barTop+barHeight/2+50, part.name)
	} else if to-from > long(part.name) {
		p.text("small middle", (from+to)/2, barTop-80, part.name)
	}
}

// lineTop returns the position of the i-th line of the list.
func (m memoryMap) lineTop(i int) px {
	return listTop + arrowHeight*rows(m.branches) + lineHeight*px(i)
}

func (m memoryMap) line(p *picture, i int, part part) {
	y := m.lineTop(i)
	p.swatch(part.class, margin, y)
	p.text("", margin+220, y, part.name)
	p.text("size", sizeRight, y, sizeText(part.size*part.count))
	p.text("small", sizeRight+240, y, clip(part.text, noteLetters))
}

// branch is a run of regions in the plan: each but the first is the only one that stands on the one
// before it.
type branch struct{ first, end, row int }

// branches returns the branches of a plan's tree. Branches that stand on one region have one row,
// below that region's. A plan without siblings has one branch.
func branches(regions []budget.RegionPlan) (list []branch) {
	below, standing := make([]int, len(regions)), make([]int, len(regions)+1)
	for i, r := range regions {
		below[i] = i - 1
		if r.On != "" { // no region has the name Root
			below[i] = slices.IndexFunc(regions[:i], func(b budget.RegionPlan) bool { return b.Name == r.On })
		}
		standing[below[i]+1]++ // standing[0] counts those on none
	}
	of := make([]int, len(regions)) // the branch of each region
	for i, on := range below {
		switch {
		case on >= 0 && standing[on+1] == 1:
			of[i] = of[on]
		case on >= 0:
			of[i] = len(list)
			list = append(list, branch{first: i, row: list[of[on]].row + 1})
		default:
			of[i] = len(list)
			list = append(list, branch{first: i})
		}
		for at := i; at >= 0; at = below[at] {
			list[of[at]].end = i + 1
		}
	}
	return list
}

// rows returns the number of rows of arrows below the first.
func rows(list []branch) (n px) {
	for _, b := range list {
		n = max(n, px(b.row))
	}
	return n
}

// arrows shows which regions are rewound together: an arrow for each branch, from its first region
// to the end of the last one that stands on it.
func (m memoryMap) arrows(p *picture) {
	if len(m.plan.Regions) == 0 {
		return
	}
	const y = barTop + barHeight + 180
	for _, b := range m.branches {
		at, from, to := y+arrowHeight*px(b.row), m.x(m.parts[1+b.first].offset), m.x(m.parts[b.end].end())
		if to-from < 200 { // no room for a point
			p.path("line", "M%s %s H%s", from, at, max(from+10, to-10))
			continue
		}
		p.path("line", "M%s %s H%s", from, at, to-70)
		p.path("point", "M%s %s l-8 -4 v8 z", to-10, at)
	}
	text := "bottom to top: rewinding a region also rewinds all regions right of it"
	if len(m.branches) > 1 {
		text += ", as far as the lowest arrow under it goes"
	}
	p.text("small", margin, y+180+arrowHeight*rows(m.branches), text)
}

// round rounds a size up to a multiple of edge.
func round(size uint64) uint64 { return (size + edge - 1) / edge * edge }
