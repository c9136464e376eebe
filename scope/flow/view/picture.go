package view

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

type kind int

const (
	event kind = iota
	logic
	action
	variableBox
)

var kinds = [...]string{"event", "logic", "action", "variable"}

type picture struct {
	name  string
	boxes []*box
	wires []*wire
}

// box is a node, a variable, or a bend of a wire.
type box struct {
	index      int
	kind       kind
	name       string
	lines      []string
	bend       bool
	layer      int
	rank, want int
	x, y, w, h int
}

// wire is a control link, or a link from or to a variable.
type wire struct {
	from, to *box
	label    string
	variable bool
	back     bool   // drawn from right to left
	via      []*box // from the left end to the right one
	start    point  // at its left end
	end      point
}

func (p *picture) box(k kind, name string, lines ...string) *box {
	b := &box{index: len(p.boxes), kind: k, name: oneLine(name)}
	wide := len([]rune(b.name))
	for _, line := range lines {
		line = oneLine(line)
		b.lines = append(b.lines, line)
		wide = max(wide, len([]rune(line)))
	}
	b.w, b.h = 7*wide+28, textHeight(len(lines))
	p.boxes = append(p.boxes, b)
	return b
}

// textHeight returns the height of a name and the lines below it.
func textHeight(lines int) int { return 26 + 15*lines }

func (p *picture) wire(from, to *box, label string, variable bool) {
	p.wires = append(p.wires, &wire{from: from, to: to, label: oneLine(label), variable: variable})
}

// textMax is the most characters of a line.
const textMax = 36

// oneLine returns the part of a user's text that fits in a line.
func oneLine(text string) string {
	runes := []rune(jsonfile.Printable(text))
	if len(runes) > textMax {
		runes = append(runes[:textMax-1], '…')
	}
	return string(runes)
}

func (p *picture) dot() []byte {
	shapes := [...]string{"shape=cds", "shape=box, style=rounded", "shape=box, peripheries=2", "shape=ellipse, style=dashed"}
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n  node [fontname=\"sans-serif\", fontsize=11]\n", dotText(p.name))
	b.WriteString("  edge [fontname=\"sans-serif\", fontsize=10]\n")
	for _, box := range p.boxes {
		text := strings.Join(append([]string{box.name}, box.lines...), "\n")
		fmt.Fprintf(&b, "  n%d [%s, label=%s]\n", box.index, shapes[box.kind], dotText(text))
	}
	for _, w := range p.wires {
		style := ""
		if w.variable {
			style = ", style=dashed, arrowhead=empty"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s]\n", w.from.index, w.to.index, dotText(w.label), style)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// style has colours for both modes; shapes don't depend on them.
const style = `<style>
  text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px } .name { font-weight: 600 }
  .label { font-size: 10px; fill: #59636e }
  .shape { fill: #f6f8fa; stroke: #59636e; stroke-width: 1.3 }
  .event { fill: #ddf4ff; stroke: #0969da } .action { fill: #dafbe1; stroke: #1a7f37 }
  .variable { fill: none; stroke-dasharray: 5 3 } .inner { fill: none }
  .wire { fill: none; stroke: #59636e; stroke-width: 1.3 } .dashed { stroke-dasharray: 5 3 }
  .tip { fill: #59636e; stroke: #59636e } .open { fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .label { fill: #9198a1 } .shape { fill: #161b22; stroke: #9198a1 }
    .event { fill: #0c2d6b; stroke: #58a6ff } .action { fill: #04260f; stroke: #56d364 }
    .variable, .inner { fill: none } .wire { stroke: #9198a1 } .tip { fill: #9198a1; stroke: #9198a1 } .open { fill: none }
  }
</style>
`

func (p *picture) svg() []byte {
	width, height := p.layOut()
	width = max(width, 720)
	var b bytes.Buffer
	count := map[kind]int{}
	for _, box := range p.boxes {
		count[box.kind]++
	}
	title := fmt.Sprintf("flow %s", oneLine(p.name))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>Events: %d, nodes of logic: %d, actions: %d.</desc>\n",
		html.EscapeString(title), count[event], count[logic], count[action])
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="32">%s</text>`+"\n", margin, html.EscapeString(title))
	legend(&b)
	p.ports()
	for _, w := range p.wires {
		w.draw(&b)
	}
	for _, box := range p.boxes {
		box.draw(&b)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func legend(b *bytes.Buffer) {
	x := margin
	for k, name := range kinds {
		sample := box{kind: kind(k), x: x, y: 46, w: 7*len(name) + 28, h: textHeight(0), name: name}
		sample.draw(b)
		x += sample.w + 16
	}
	for _, w := range []wire{{label: "control"}, {label: "variable", variable: true}} {
		w.line(b, []point{{x, 62}, {x + 90, 62}})
		fmt.Fprintf(b, `<text class="label" x="%d" y="56">%s</text>`+"\n", x+8, w.label)
		x += 106
	}
}

func (box *box) draw(b *bytes.Buffer) {
	x, y, w, h := box.x, box.y, box.w, box.h
	shape := func(class string, inset, round int) {
		fmt.Fprintf(b, `<rect class="shape %s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`+"\n", class, x+inset, y+inset,
			w-2*inset, h-2*inset, round)
	}
	switch box.kind {
	case event:
		fmt.Fprintf(b, `<path class="shape event" d="M%d %d h%d l9 %d l-9 %d h-%d z"/>`+"\n", x, y, w-9, h/2, h-h/2, w-9)
	case logic:
		shape("logic", 0, 8)
	case action:
		shape("action", 0, 0)
		shape("action inner", 3, 0)
	case variableBox:
		shape("variable", 0, h/2)
	}
	top := y + (h-textHeight(len(box.lines)))/2
	text := func(class string, line int, text string) {
		fmt.Fprintf(b, `<text class="%s" text-anchor="middle" x="%d" y="%d">%s</text>`+"\n", class, x+w/2, top+17+15*line,
			html.EscapeString(text))
	}
	text("name", 0, box.name)
	for i, line := range box.lines {
		text("", i+1, line)
	}
}

type point struct{ x, y int }

// ports spreads the ends of wires along the sides of their boxes. The ends are in the order of the
// boxes that the wires reach next, so that wires don't cross at a box.
func (p *picture) ports() {
	type end struct {
		w     *wire
		right bool // it is the wire's right end
	}
	sides := map[*box]*[2][]end{}
	for _, w := range p.wires {
		l, r := w.ends()
		for side, b := range []*box{l, r} {
			if sides[b] == nil {
				sides[b] = &[2][]end{}
			}
			sides[b][side] = append(sides[b][side], end{w, side == 1})
		}
	}
	for _, b := range p.boxes {
		if sides[b] == nil {
			continue
		}
		for side, ends := range sides[b] {
			slices.SortStableFunc(ends, func(a, c end) int { return cmp.Compare(a.w.beside(side).middle(), c.w.beside(side).middle()) })
			for i, e := range ends {
				y := b.y + b.h*(i+1)/(len(ends)+1)
				if side == 0 {
					e.w.start = point{b.x + b.w, y}
				} else {
					e.w.end = point{b.x, y}
				}
			}
		}
	}
}

// Returns the next box of the wire, from its left end (side 0) or its right end.
func (w *wire) beside(side int) *box {
	if side == 0 {
		return w.via[1]
	}
	return w.via[len(w.via)-2]
}

func (box *box) middle() int { return box.y + box.h/2 }

// draw draws the wire from left to right, with its tip at its target.
func (w *wire) draw(b *bytes.Buffer) {
	if w.from == w.to {
		w.loop(b)
		return
	}
	points := []point{w.start}
	for _, bend := range w.via[1 : len(w.via)-1] {
		points = append(points, point{bend.x, bend.y}, point{bend.x + bend.w, bend.y})
	}
	points = append(points, w.end)
	w.line(b, points)
	if w.label == "" {
		return
	}
	at, anchor := point{w.start.x + 8, w.start.y - 4}, "start"
	if w.variable == !w.back {
		at, anchor = point{w.end.x - 12, w.end.y - 4}, "end"
	}
	fmt.Fprintf(b, `<text class="label" text-anchor="%s" x="%d" y="%d">%s</text>`+"\n", anchor, at.x, at.y, html.EscapeString(w.label))
}

// line draws curves through points, horizontal at each.
func (w *wire) line(b *bytes.Buffer, points []point) {
	class, tip := "wire", "tip"
	if w.variable {
		class, tip = "wire dashed", "tip open"
	}
	last := len(points) - 1
	first, end := points[0], points[last]
	if w.back {
		first.x += 8
	} else {
		end.x -= 8
	}
	points[0], points[last] = first, end
	fmt.Fprintf(b, `<path class="%s" d="M%d %d`, class, first.x, first.y)
	for i, to := range points[1:] {
		from := points[i]
		half := (to.x - from.x) / 2
		fmt.Fprintf(b, " C%d %d %d %d %d %d", from.x+half, from.y, to.x-half, to.y, to.x, to.y)
	}
	b.WriteString("\"/>\n")
	if w.back {
		fmt.Fprintf(b, `<path class="%s" d="M%d %d l8 -4 v8 z"/>`+"\n", tip, first.x-8, first.y)
	} else {
		fmt.Fprintf(b, `<path class="%s" d="M%d %d l-8 -4 v8 z"/>`+"\n", tip, end.x+8, end.y)
	}
}

// loop draws a wire from a box to itself, above the box.
func (w *wire) loop(b *bytes.Buffer) {
	x, y := w.from.x+w.from.w/2, w.from.y
	fmt.Fprintf(b, `<path class="wire" d="M%d %d c0 -14 -28 -14 -28 -6"/>`+"\n", x+14, y)
	fmt.Fprintf(b, `<path class="tip" d="M%d %d l-4 -8 h8 z"/>`+"\n", x-14, y)
	fmt.Fprintf(b, `<text class="label" x="%d" y="%d">%s</text>`+"\n", x+16, y-6, html.EscapeString(w.label))
}
