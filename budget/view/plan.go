package view

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/upfront-mem/upfront/budget"
)

// Plan draws the plan as a memory map, to scale: regions from bottom to top, then the frame's buffers and the scratch
// arenas. Bytes that only round an arena up to 64 KiB are pale. Below the map each part has a line with the sizes that
// the plan gives. The tables, which a plan has no sizes for, aren't shown. A faulty plan is its Check's error, and
// nothing is written.
func Plan(w io.Writer, p budget.Plan) error {
	if err := p.Check(); err != nil && !errors.Is(err, budget.ErrWarning) {
		return err
	}
	m := layOut(p)
	var b bytes.Buffer
	m.open(&b)
	for i, part := range m.parts {
		m.arenas(&b, part)
		m.line(&b, i, part)
	}
	m.edges(&b)
	m.arrows(&b)
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Pixels, and bytes an edge: every arena begins at a multiple of it.
const (
	width, margin     = 880, 20
	barTop, barHeight = 60, 56
	listTop, listStep = 180, 24
	sizeRight         = margin + 340 // of the column of sizes: a name has 31 characters at most
	textWidth         = 7.2          // of a character at 13 pixels, about
	textMax           = 70           // of characters at 12 pixels, right of the sizes
	edge              = 64 * budget.KiB
)

// part is a line of the plan: arenas of one size, one after the other.
type part struct {
	class, name, text string
	size              uint64 // of each arena, as planned
	each              uint64 // as laid out, with its guard
	count             uint64
	offset            uint64
}

func (p part) end() uint64 { return p.offset + p.each*p.count }

// memoryMap is a plan as Open lays it out, without the tables.
type memoryMap struct {
	plan  budget.Plan
	parts []part
	total uint64
}

// layOut lays out a plan that is checked: sums and factors are far from 64 bits.
func layOut(p budget.Plan) memoryMap {
	m := memoryMap{plan: p}
	rest := -1
	for i, r := range p.Regions {
		text := r.Note
		if r.Size == budget.Rest {
			rest, r.Size, text = i, 0, strings.TrimSuffix("the rest, "+text, ", ")
		} else if r.Slots != 0 {
			text = strings.TrimSuffix(many(r.Slots, "slot")+" of "+budget.SizeText(r.Size)+", "+text, ", ")
		}
		m.parts = append(m.parts, part{class: "region", name: r.Name, size: r.Size, count: uint64(max(1, r.Slots)), text: text})
	}
	if f := p.Frame; f.Buffers != 0 {
		m.parts = append(m.parts, part{class: "frame", name: "frame", size: f.Size, count: uint64(f.Buffers),
			text: many(f.Buffers, "buffer") + " of " + budget.SizeText(f.Size) + ", in turn"})
	}
	if s := p.Scratch; s.Workers != 0 {
		each := cmp.Or(s.Each, 2)
		m.parts = append(m.parts, part{class: "scratch", name: "scratch", size: s.Size, count: uint64(s.Workers * each),
			text: many(s.Workers, "worker") + " × " + many(each, "arena") + " of " + budget.SizeText(s.Size)})
	}
	m.lay()
	if free := round(p.Size) - min(round(p.Size), m.total); rest >= 0 {
		m.parts[rest].size = free
	} else if free != 0 {
		m.parts = append(m.parts, part{class: "free", name: "unplanned", size: free, count: 1})
	}
	m.lay()
	return m
}

// lay says where each part begins.
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

// x is where an offset lies in the picture.
func (m memoryMap) x(offset uint64) float64 {
	return margin + (width-2*margin)*float64(offset)/float64(m.total)
}

// style has a colour for each class in both modes; the text of a bar stands on its colour.
const style = `<style>
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .small { font-size: 12px; fill: #59636e }
  .size { text-anchor: end; font-variant-numeric: tabular-nums }
  .in { text-anchor: middle; fill: #ffffff }
  .region { fill: #0969da } .frame { fill: #8250df } .scratch { fill: #1a7f37 } .free { fill: #818b98 }
  .slack { opacity: .35 }
  .arrow { stroke: #59636e; fill: none }
  .head { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .small { fill: #9198a1 } .in { fill: #0d1117 }
    .region { fill: #58a6ff } .frame { fill: #bc8cff } .scratch { fill: #56d364 } .free { fill: #6e7681 }
    .arrow { stroke: #9198a1 } .head { fill: #9198a1 }
  }
</style>
`

// open writes the head: what the picture is, also for who can't see it.
func (m memoryMap) open(b *bytes.Buffer) {
	height := listTop + listStep*(len(m.parts)+1)
	title := fmt.Sprintf("plan %s: %s", m.plan.Name, budget.SizeText(m.total))
	var list []string
	for _, p := range m.parts {
		list = append(list, p.name+" "+budget.SizeText(p.size*p.count))
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(title),
		html.EscapeString("A memory map, bottom first: "+strings.Join(list, ", ")))
	b.WriteString(style)
	fmt.Fprintf(b, `<text class="title" x="%d" y="32">%s</text>`+"\n", margin, html.EscapeString(title))
	if m.plan.GoHeap != 0 {
		fmt.Fprintf(b, `<text class="small size" x="%d" y="32">beside it: Go heap %s</text>`+"\n", width-margin, budget.SizeText(m.plan.GoHeap))
	}
}

// arenas draws the part in the map, arena by arena where these are wide enough to tell apart.
func (m memoryMap) arenas(b *bytes.Buffer, p part) {
	count, size, each := p.count, p.size, p.each
	if m.x(p.offset+p.each)-m.x(p.offset) < 3 { // a fence of slots is one bar, with all slack at its end
		count, size, each = 1, p.size*p.count, p.each*p.count
	}
	for i := range count {
		from := p.offset + i*each
		left, middle, right := m.x(from)+.5, m.x(from+size), m.x(from+each)-.5
		rect(b, p.class+" slack", left, max(left, right), barTop)
		rect(b, p.class, left, min(max(left+.5, middle), max(left, right)), barTop)
	}
	from, to := m.x(p.offset), m.x(p.end())
	if used := m.x(p.offset+size) - from; count == 1 && used > textWidth*float64(len(p.name))+8 {
		fmt.Fprintf(b, `<text class="in" x="%.1f" y="%d">%s</text>`+"\n", from+used/2, barTop+barHeight/2+5, html.EscapeString(p.name))
	} else if to-from > textWidth*float64(len(p.name)) {
		fmt.Fprintf(b, `<text class="small" text-anchor="middle" x="%.1f" y="%d">%s</text>`+"\n", (from+to)/2, barTop-8,
			html.EscapeString(p.name))
	}
}

func rect(b *bytes.Buffer, class string, from, to float64, y int) {
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", class, from, y, to-from, barHeight)
}

// line is the part's line below the map.
func (m memoryMap) line(b *bytes.Buffer, i int, p part) {
	y := listTop + listStep*i
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="12" height="12"/>`+"\n", p.class, margin, y-11)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", margin+22, y, html.EscapeString(p.name))
	fmt.Fprintf(b, `<text class="size" x="%d" y="%d">%s</text>`+"\n", sizeRight, y, budget.SizeText(p.size*p.count))
	fmt.Fprintf(b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", sizeRight+24, y, html.EscapeString(oneLine(p.text)))
}

// edges is the line for what is pale, so that the sizes of all lines sum up to the plan's.
func (m memoryMap) edges(b *bytes.Buffer) {
	slack := m.total
	for _, p := range m.parts {
		slack -= p.size * p.count
	}
	if slack == 0 {
		return
	}
	text := "pale: every arena begins at a multiple of " + budget.SizeText(edge)
	if m.guarded() {
		text += ", and has a guard behind it"
	}
	m.line(b, len(m.parts), part{class: "free slack", name: "edges", size: slack, count: 1, text: text})
}

// arrows say in which order regions are rewound, and what isn't among them.
func (m memoryMap) arrows(b *bytes.Buffer) {
	top, y := uint64(0), barTop+barHeight+18
	for _, p := range m.parts {
		if p.class == "region" {
			top = p.end()
		}
	}
	fmt.Fprintf(b, `<path class="arrow" d="M%d %d H%.1f"/>`+"\n", margin, y, m.x(top)-7)
	fmt.Fprintf(b, `<path class="head" d="M%.1f %d l-8 -4 v8 z"/>`+"\n", m.x(top)-1, y)
	fmt.Fprintf(b, `<text class="small" x="%d" y="%d">bottom to top: rewinding a region rewinds those right of it</text>`+"\n",
		margin, y+18)
}

// oneLine is what fits into a line of a text that people wrote, without what XML may not hold.
func oneLine(text string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text))
	if len(runes) > textMax {
		runes = append(runes[:textMax-1], '…')
	}
	return string(runes)
}

func many(count int, thing string) string {
	if count != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", count, thing)
}

// round rounds a size up to the next edge.
func round(size uint64) uint64 { return (size + edge - 1) / edge * edge }
