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
// an arena up to 64 KiB, are pale. Below the map each part has a line with its sizes. The total is
// Cost.Addresses of the plan, its address space. For an invalid plan, Plan returns the error of
// [budget.Plan.Cost] and writes nothing.
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
	slackClass     = "free pale"   // the rounding of all arenas: one line of the list
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
	plan  budget.Plan
	parts []part
	total uint64
}

// layOut lays out a plan that has a cost, so sums and products are far from 64 bits. The first part
// is the tables, with their guard.
func layOut(p budget.Plan, cost budget.Cost) memoryMap {
	m := memoryMap{plan: p}
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
		outside = append(outside, "Go heap, the rest")
	default:
		outside = append(outside, "Go heap "+sizeText(m.plan.GoHeap))
	}
	if m.plan.CHeap.Size != 0 {
		outside = append(outside, "C heap "+sizeText(m.plan.CHeap.Size))
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
		listTop+lineHeight*px(len(m.parts)+1))
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

func (m memoryMap) line(p *picture, i int, part part) {
	y := listTop + lineHeight*px(i)
	p.swatch(part.class, margin, y)
	p.text("", margin+220, y, part.name)
	p.text("size", sizeRight, y, sizeText(part.size*part.count))
	p.text("small", sizeRight+240, y, clip(part.text, noteLetters))
}

// arrows shows the order in which regions are rewound.
func (m memoryMap) arrows(p *picture) {
	top, y := uint64(0), barTop+barHeight+180
	for _, part := range m.parts {
		if part.class == "region" {
			top = part.end()
		}
	}
	p.path("line", "M%s %s H%s", m.x(m.parts[0].end()), y, m.x(top)-70)
	p.path("point", "M%s %s l-8 -4 v8 z", m.x(top)-10, y)
	p.text("small", margin, y+180, "bottom to top: rewinding a region also rewinds all regions right of it")
}

// round rounds a size up to a multiple of edge.
func round(size uint64) uint64 { return (size + edge - 1) / edge * edge }
