package view

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Columns of the list.
const (
	columnWhat         = margin + 340
	columnBytes        = margin + 4120 // its right end
	columnScope        = margin + 4360
	columnMade         = width - margin // its right end
	scopeWidth      px = 2240
	madeWidth       px = 1700
	numberRight     px = 240
	numberSquare    px = 170
	numberSquareTop px = 130
)

func (d *insideDrawing) lines() {
	d.y += 160
	d.text("small", columnWhat, d.y, "contents")
	d.text("small size", columnBytes, d.y, "bytes")
	d.text("small", columnScope, d.y, "scope / label")
	if d.in.Known {
		d.text("small size", columnMade, d.y, "made at")
	}
	for i := range d.list.lines {
		d.y += lineHeight
		d.line(&d.list.lines[i])
	}
	d.y += lineHeight
	d.path("grid", "M%s %s H%s", columnBytes-900, d.y-165, columnBytes)
	d.text("", columnWhat, d.y+10, "used")
	d.text("size", columnBytes, d.y+10, exact(d.in.Used))
	d.y += 10
}

func (d *insideDrawing) line(line *insideLine) {
	if line.class != "" {
		d.rect(line.class, margin, d.y-numberSquareTop, numberRight, numberSquare)
	}
	if line.number != 0 && line.class != "c3 pale" {
		d.text("in", margin+numberRight/2, d.y, exact(line.number))
	}
	bytes := exact(line.bytes)
	d.text("", columnWhat, d.y, fitting(line.what, columnBytes-columnWhat-long(bytes)-100))
	d.text("size", columnBytes, d.y, bytes)
	d.text("small", columnScope, d.y, fitting(line.scope, scopeWidth))
	if made := fitting(line.made, madeWidth); made != "" {
		d.text("small size", columnMade, d.y, made)
	}
}

// within draws the contents of a few pools, heaps, buddies and rings.
func (d *insideDrawing) within() {
	pools, others := 0, 0
	for i := range d.in.Spans {
		switch t := &d.in.Spans[i]; {
		case t.Pool != nil:
			if pools++; pools <= withinMost {
				d.pool(i)
			}
		case t.Parts != nil:
			if others++; others <= withinMost {
				d.parts(i)
			}
		}
	}
	if left := max(0, pools-withinMost) + max(0, others-withinMost); left != 0 {
		d.y += 320
		d.text("small", margin, d.y, "and the contents of "+exact(uint64(left))+" more pools, heaps, buddies and rings")
	}
}

func (d *insideDrawing) heading(i int, text string) {
	d.y += 440
	if line := d.list.of[i]; line >= 0 {
		text = exact(d.list.lines[line].number) + "  " + text
	}
	d.text("head", margin, d.y, fitting(text, width-2*margin))
}

// pool draws a square for each chunk, or for several if they are many. The next free chunks have
// numbers.
func (d *insideDrawing) pool(i int) {
	t := &d.in.Spans[i]
	p, each := t.Pool, 1
	for (len(p.States)+each-1)/each > cellsMost {
		each++
	}
	text := fmt.Sprintf("%s live, %s at most; %s bytes each", spanText(t), exact(p.Peak), exact(p.Stride))
	if each > 1 {
		text += fmt.Sprintf("; a square is %d", each)
	}
	d.heading(i, text)
	turns := turnsOf(p.States, p.Next)
	across := int((width - 2*margin + cellStep - cell) / cellStep)
	top, n := d.y+110, 0
	for from := 0; from < len(p.States); from += each {
		x, y := margin+px(n%across)*cellStep, top+px(n/across)*cellStep
		d.cell(x, y, p.States[from:min(from+each, len(p.States))])
		if turn := turns[from]; turn != 0 && each == 1 {
			d.text("small middle", x+cell/2, y+120, exact(turn))
		}
		n++
	}
	if n != 0 {
		d.y = top + px((n-1)/across)*cellStep + cell
	}
}

// cell draws a square of chunks: filled as far as they are live, pale if none was ever used.
func (d *insideDrawing) cell(x, y px, states string) {
	d.rect("ground", x, y, cell, cell)
	if strings.Count(states, "-") != len(states) {
		d.rect("c2 pale", x, y, cell, cell)
	}
	live := px(strings.Count(states, "#")) * cell / px(len(states))
	d.rect("c2", x, y+cell-live, cell, live)
	known := strings.Count(states, "#") + strings.Count(states, ".") + strings.Count(states, "-")
	other := px(len(states)-known) * cell / px(len(states))
	d.rect("bad", x, y, cell, other)
}

// turnsOf returns the turns, from 1, of the first nine chunks that Get will return: freed chunks,
// then chunks never used.
func turnsOf(states string, next []uint32) map[int]uint64 {
	turns := map[int]uint64{}
	for _, index := range next[:min(len(next), 9)] {
		turns[int(index)] = uint64(len(turns)) + 1
	}
	for index := 0; index < len(states) && len(turns) < 9; index++ {
		if states[index] == '-' {
			turns[index] = uint64(len(turns)) + 1
		}
	}
	return turns
}

var innerClasses = map[string]string{"live": "c5", "free": "ground", "parked": "c5 pale", "skipped": "hatch",
	"header": "c6"}

// parts draws the blocks of a heap, a buddy or a ring, to scale.
func (d *insideDrawing) parts(i int) {
	t := &d.in.Spans[i]
	live, free, count := uint64(0), uint64(0), uint64(0)
	var list []run
	for _, p := range t.Parts {
		switch p.Kind {
		case "live":
			live += p.Size
			count++
		case "free", "parked":
			free += p.Size
		}
		class := cmp.Or(innerClasses[p.Kind], "other")
		list = append(list, run{p.Offset, p.Offset + p.Size, class, -1, -1})
	}
	d.heading(i, fmt.Sprintf("%s of %s bytes: %s live with %s bytes, %s free", t.Kind, exact(t.Size), exact(count),
		exact(live), exact(free)))
	for least := t.Size / 4096; len(list) > drawnMost/2; least = 2*least + 1 {
		list = merged(list, math.MaxUint64, func(a, b run) bool { return a.to-a.from <= least && b.to-b.from <= least })
	}
	d.y += 110
	s := scale{margin, width - margin, t.Size}
	d.rect("ground", margin, d.y, width-2*margin, 160)
	for _, r := range list {
		left, right := s.x(r.from), s.x(r.to)
		if right-left > 30 {
			right -= 5
		}
		d.rect(r.class, left, d.y, max(right-left, 2), 160)
	}
	d.y += 160
}

func (d *insideDrawing) legend() {
	d.y += 420
	x := margin
	for _, m := range meanings {
		if m.class != "ground" && !bytes.Contains(d.body.Bytes(), []byte(`<rect class="`+m.class+`"`)) {
			continue
		}
		if x+160+long(m.text) > width-margin {
			x, d.y = margin, d.y+lineHeight
		}
		d.swatch(m.class, x, d.y)
		d.text("small", x+190, d.y, m.text)
		x += 190 + long(m.text) + 200
	}
	text := d.chain
	if x+long(text) > width-margin {
		x, d.y = margin, d.y+lineHeight
	}
	if text != "" {
		d.text("small", x, d.y, text)
	}
}

var meanings = []struct{ class, text string }{
	{"c0", "plain objects"}, {"c1", "with a finalizer"}, {"c4", "Go values"}, {"c2", "pools: live chunks"},
	{"c5", "heaps, buddies, rings"}, {"c6", "arena headers"},
	{"other", "the scope's nodes"}, {"c3", "temporaries"}, {"c3 pale", "reserved for them"}, {"c7", "several kinds"},
	{"hatch", "padding"}, {"ground", "free"},
}
