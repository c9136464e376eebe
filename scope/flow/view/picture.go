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
	name   string
	title  string
	marked bool // of two versions
	boxes  []*box
	wires  []*wire
}

// box is a node, a variable, or a bend of a wire.
type box struct {
	index      int
	kind       kind
	mark       mark
	name       string
	lines      []string
	bend       bool
	layer      int
	rank, want int
	x, y, w, h int
	// room for labels on its left and its right, up to where wires turn
	before, after int
}

// wire is a control link, or a link from or to a variable.
type wire struct {
	from, to *box
	mark     mark
	label    string
	variable bool
	back     bool   // drawn from right to left
	via      []*box // from the left end to the right one
	start    point  // at its left end
	end      point
}

func (p *picture) box(k kind, m mark, name string, lines ...string) *box {
	b := &box{index: len(p.boxes), kind: k, mark: m, name: oneLine(name)}
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

func (p *picture) wire(from, to *box, m mark, label string, variable bool) {
	p.wires = append(p.wires, &wire{from: from, to: to, mark: m, label: oneLine(label), variable: variable})
}

// noteBadge is the width of the badge before a label.
const noteBadge = 17

// textMax is the maximum number of characters of a line.
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
	shapes := [...]string{"shape=cds", "shape=box, style=rounded", "shape=box, peripheries=2",
		"shape=ellipse, style=dashed"}
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
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+
		"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>Events: %d, nodes of logic: %d, actions: %d.%s</desc>\n",
		html.EscapeString(p.title), count[event], count[logic], count[action], p.counts())
	b.WriteString(style)
	if p.marked {
		b.WriteString(markStyle)
	}
	fmt.Fprintf(&b, `<text class="title" x="%d" y="32">%s</text>`+"\n", margin, html.EscapeString(p.title))
	p.legend(&b)
	p.ports()
	for _, w := range p.wires {
		p.group(&b, w.mark, func() { w.draw(&b) })
	}
	for _, box := range p.boxes {
		p.group(&b, box.mark, func() { box.draw(&b) })
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *picture) legend(b *bytes.Buffer) {
	p.group(b, same, func() { kindLegend(b) })
	if !p.marked {
		return
	}
	x := margin
	for _, m := range []mark{added, gone, changed, same} {
		sample := box{kind: logic, mark: m, x: x, y: 90, w: 7*len(marks[m]) + 28, h: textHeight(0), name: marks[m]}
		wire := wire{mark: m, start: point{x + sample.w, 103}, end: point{x + sample.w + 58, 103},
			via: []*box{&sample, &sample}, to: &sample}
		p.group(b, m, func() { wire.draw(b); sample.draw(b) })
		x += sample.w + 78
	}
}

func kindLegend(b *bytes.Buffer) {
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
	shape := func(class string, inset int) {
		x, y, w, h := x+inset, y+inset, w-2*inset, h-2*inset
		round := [...]int{logic: 8 - inset, action: 0, variableBox: h / 2}
		if box.kind == event {
			fmt.Fprintf(b, `<path class="%s" d="M%d %d h%d l9 %d l-9 %d h-%d z"/>`+"\n", class, x, y, w-9, h/2,
				h-h/2, w-9)
			return
		}
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`+"\n", class, x, y, w, h,
			round[box.kind])
	}
	if box.mark == changed {
		shape("around", -4)
	}
	shape("shape "+kinds[box.kind], 0)
	if box.kind == action {
		shape("shape action inner", 3)
	}
	top := y + (h-textHeight(len(box.lines)))/2
	text := func(class string, line int, text string) {
		fmt.Fprintf(b, `<text class="%s" text-anchor="middle" x="%d" y="%d">%s</text>`+"\n", class, x+w/2,
			top+17+15*line, html.EscapeString(text))
	}
	text("name", 0, box.name)
	for i, line := range box.lines {
		text("", i+1, line)
	}
	box.mark.badge(b, x, y, "")
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
			slices.SortStableFunc(ends, func(a, c end) int {
				return cmp.Compare(a.w.beside(side).middle(), c.w.beside(side).middle())
			})
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
	last := len(w.via) - 1
	points := []point{w.start, {w.start.x + w.via[0].after, w.start.y}}
	for _, bend := range w.via[1:last] {
		points = append(points, point{bend.x - bend.before, bend.y}, point{bend.x + bend.w + bend.after, bend.y})
	}
	w.line(b, append(points, point{w.end.x - w.via[last].before, w.end.y}, w.end))
	if _, atEnd := w.labelled(); atEnd {
		w.note(b, w.end.x-12, w.end.y, "end", -1)
	} else {
		w.note(b, w.start.x+8, w.start.y, "start", 1)
	}
}

// labelled returns the box at which the wire's label is, and whether it is the right end's. It is
// the end of a control link that isn't its tip, or the tip of a link of a variable.
func (w *wire) labelled() (*box, bool) {
	if w.variable == !w.back {
		return w.via[len(w.via)-1], true
	}
	return w.via[0], false
}

// noteWidth returns the width of the wire's badge and label, and of its tip.
func (w *wire) noteWidth() (width int) {
	if w.label != "" {
		width = 12 + 6*len([]rune(w.label))
	}
	if w.mark != same {
		width += noteBadge + 8
	}
	return width
}

// note writes the wire's badge and its label, away from a box.
func (w *wire) note(b *bytes.Buffer, x, y int, anchor string, away int) {
	if w.mark != same {
		w.mark.badge(b, x+8*away, y, " scale(.7)")
		x += noteBadge * away
	}
	if w.label != "" {
		fmt.Fprintf(b, `<text class="label" text-anchor="%s" x="%d" y="%d">%s</text>`+"\n", anchor, x, y-4,
			html.EscapeString(w.label))
	}
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
		if from.y == to.y {
			if from.x != to.x {
				fmt.Fprintf(b, " H%d", to.x)
			}
			continue
		}
		fmt.Fprintf(b, " C%d %d %d %d %d %d", from.x+half, from.y, to.x-half, to.y, to.x, to.y)
	}
	b.WriteString("\"/>\n")
	if w.back {
		fmt.Fprintf(b, `<path class="%s" d="M%d %d l8 -4 v8 z"/>`+"\n", tip, first.x-8, first.y)
	} else {
		fmt.Fprintf(b, `<path class="%s" d="M%d %d l-8 -4 v8 z"/>`+"\n", tip, end.x+8, end.y)
	}
}

// loop draws a wire from a box to itself: above the box, or below it if the wire is gone.
func (w *wire) loop(b *bytes.Buffer) {
	x, y, up := w.from.x+w.from.w/2, w.from.y, -1
	if w.mark == gone {
		y, up = y+w.from.h, 1
	}
	fmt.Fprintf(b, `<path class="wire" d="M%d %d c0 %d -28 %[3]d -28 %d"/>`+"\n", x+14, y, 14*up, 6*up)
	fmt.Fprintf(b, `<path class="tip" d="M%d %d l-4 %d h8 z"/>`+"\n", x-14, y, 8*up)
	w.note(b, x+16, y+9*up, "start", 1)
}
