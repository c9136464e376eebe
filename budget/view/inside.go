package view

import (
	"fmt"
	"io"
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// Inside draws what lies in an arena: above all of it to scale; then what is used, in rows of equal length, with the chain
// from the newest node to the oldest, padding, and where the next thing goes; temporaries at the far end. A list says what
// it is, who made it and how much it takes: its lines sum up to what is used. Then come pools, chunk by chunk, with the
// numbers of the free ones in the order in which they are given, and what lies in heaps, buddies and rings.
//
// Thousands of things are drawn as runs. A faulty Inside is its Check's error, and nothing is written. Cost: a copy of the
// things.
func Inside(w io.Writer, in budget.Inside) error {
	if err := in.Check(); err != nil {
		return err
	}
	d := insideDrawing{in: &in, list: listInside(&in), y: 500, tops: map[uint64]px{}}
	d.overview()
	d.rows()
	d.lines()
	d.within()
	d.legend()
	title := fmt.Sprintf("inside of %s: %s of %s bytes used", in.Arena, exact(in.Used), exact(in.Size))
	d.text("title", margin, 320, fitting(title, width-2*margin))
	return d.writeTo(w, title, d.description(), d.y+margin)
}

// insideDrawing is the picture of an Inside; y is where the next part of it goes.
type insideDrawing struct {
	picture
	in   *budget.Inside
	list insideLines
	y    px

	tops  map[uint64]px // of the rows that were drawn, by number
	chain string        // what the legend says of it
}

// Where what lies.
const (
	rowLeft     px = 1120 // left of it stand offsets
	rowRight       = width - margin
	rowHeight   px = 260
	rowStep     px = 560 // with room for the chain above, and for names below
	gapHeight   px = 300 // of what isn't drawn between two rows
	rowsMost       = 10
	rowLeast       = 64  // bytes
	drawnMost      = 600 // rectangles in the rows
	chainMost      = 60  // arrows
	withinMost     = 6   // pools, and heaps and their like
	cell        px = 160
	cellStep    px = 190
	cellsMost      = 220
	numberWidth px = 170
)

func (d *insideDrawing) description() string {
	text := fmt.Sprintf("What lies in %s of budget %s, from its first byte to its last: ", d.in.Arena, d.in.Budget)
	for i, line := range d.list.lines {
		if i > 0 {
			text += "; "
		}
		text += line.what + " " + exact(line.bytes)
	}
	return text
}

// overview is all of the arena, to scale.
func (d *insideDrawing) overview() {
	in, s := d.in, scale{margin, width - margin, d.in.Size}
	d.rect("ground", s.left, d.y, s.right-s.left, 140)
	used, temp := s.x(in.Cursor), s.x(in.Limit)
	if in.Cursor != 0 {
		d.rect("c0", s.left, d.y, max(used-s.left, 10), 140)
	}
	if in.Temp() != 0 {
		d.rect("c3", min(temp, s.right-10), d.y, max(s.right-temp, 10), 140)
	}
	text := exact(in.Cursor) + " used, " + exact(in.Limit-in.Cursor) + " free"
	if in.Temp() != 0 {
		text += ", " + exact(in.Temp()) + " of temporaries at the far end"
	}
	d.text("small", margin, d.y+320, text)
	d.y += 620
}

// run is what is drawn as one: a thing, or several that follow each other.
type run struct {
	from, to uint64
	class    string
	line     int // of the list, -1: none
	thing    int // the only one, -1: several
}

// rows draws what is used.
func (d *insideDrawing) rows() {
	size, runs := d.rowSize(), d.runs()
	last, drawn := uint64(0), false
	for _, row := range d.rowNumbers(size) {
		if drawn && row != last+1 {
			d.text("small middle", (rowLeft+rowRight)/2, d.y+60, exact(d.in.Limit-d.in.Cursor)+" bytes free")
			d.y += gapHeight
		}
		d.tops[row] = d.y
		d.row(row*size, size, runs)
		d.y += rowStep
		last, drawn = row, true
	}
	if drawn {
		d.arrows(size)
	}
}

// rowSize is how many bytes a row has: a power of two, so that offsets are easy to read.
func (d *insideDrawing) rowSize() uint64 {
	size := uint64(rowLeast)
	for size < d.in.Size && len(d.rowNumbers(size)) > rowsMost {
		size *= 2
	}
	return size
}

// rowNumbers are the rows in which something lies: of both ends. More than there may be are not counted out.
func (d *insideDrawing) rowNumbers(size uint64) (list []uint64) {
	add := func(from, to uint64) {
		for at := from / size; at*size < to && len(list) <= rowsMost; at++ {
			if len(list) == 0 || list[len(list)-1] < at {
				list = append(list, at)
			}
		}
	}
	add(0, max(d.in.Cursor, 1))
	if d.in.Temp() != 0 {
		add(d.in.Limit, d.in.Size)
	}
	return list
}

// runs is what to draw: things one by one, when they are few, or what is alike as one, or what is small as one.
func (d *insideDrawing) runs() []run {
	var list []run
	for i := range d.in.Things {
		t := &d.in.Things[i]
		if t.Padding != 0 {
			list = append(list, run{t.Offset - t.Padding, t.Offset, "hatch", -1, -1})
		}
		if t.Size != 0 {
			list = append(list, run{t.Offset, t.Offset + t.Size, thingClass(d.in, t), d.list.of[i], i})
		}
	}
	if len(list) > drawnMost {
		list = merged(list, d.in.Limit, func(a, b run) bool { return a.line >= 0 && (a.line == b.line || b.class == "hatch") })
	}
	for least := d.rowSize() / 4096; len(list) > drawnMost; least = 2*least + 1 {
		list = merged(list, d.in.Limit, func(a, b run) bool { return a.to-a.from <= least && b.to-b.from <= least })
	}
	return list
}

// merged makes one of what follows each other and is alike; what begins at `apart` follows nothing.
func merged(list []run, apart uint64, alike func(a, b run) bool) (fewer []run) {
	for _, r := range list {
		n := len(fewer) - 1
		if n < 0 || fewer[n].to != r.from || r.from == apart || !alike(fewer[n], r) {
			fewer = append(fewer, r)
			continue
		}
		m := &fewer[n]
		m.to, m.thing = r.to, -1
		if r.line != m.line && r.class != "hatch" {
			m.line = -1
		}
		if r.class != m.class && r.class != "hatch" {
			m.class = "c7"
		}
	}
	return fewer
}

// row draws so many bytes from an offset on.
func (d *insideDrawing) row(from, size uint64, runs []run) {
	s := scale{rowLeft, rowRight, size}
	d.text("small size", rowLeft-100, d.y+180, exact(from))
	d.rect("ground", rowLeft, d.y, s.x(min(size, d.in.Size-from))-rowLeft, rowHeight)
	for _, r := range runs {
		if r.to > from && r.from < from+size {
			d.run(s, from, r)
		}
	}
	d.marks(s, from)
}

// run draws what of a run lies in a row, with the number of its line where there is room. Neighbours are told apart by a
// gap, where they are wide enough.
func (d *insideDrawing) run(s scale, row uint64, r run) {
	left, right := s.x(max(r.from, row)-row), s.x(min(r.to, row+s.total)-row)
	if right-left > 30 && r.class != "hatch" {
		right -= 5
	}
	text := ""
	if r.thing >= 0 {
		text = d.tip(r.thing)
	}
	d.told(r.class, left, d.y, max(right-left, 2), rowHeight, text)
	if r.line >= 0 && right-left >= numberWidth && r.class != "c3 pale" {
		d.text("in", (left+right)/2, d.y+rowHeight/2+45, exact(d.list.lines[r.line].number))
	}
}

// tip is what a browser shows of a thing.
func (d *insideDrawing) tip(i int) string {
	if len(d.in.Things) > linesMost*4 {
		return ""
	}
	t := &d.in.Things[i]
	text := fmt.Sprintf("%s: %s bytes at %s", thingText(t), exact(t.Size), exact(t.Offset))
	if made := madeOf(t); made != "" {
		text += ", " + made
	}
	return text
}

// marks says below a row where scopes began, and where the next thing goes.
func (d *insideDrawing) marks(s scale, row uint64) {
	free := rowLeft // where there is room for a text
	if end := row + s.total; d.in.Cursor >= row && (d.in.Cursor < end || d.in.Cursor == end && d.in.Cursor == d.in.Limit) ||
		d.in.Cursor == end && !slices.Contains(d.rowNumbers(s.total), end/s.total) {
		x := s.x(d.in.Cursor - row)
		d.path("point", "M%s %s l4.5 8 h-9 z", x, d.y+rowHeight+15)
		defer func() { d.mark(x, free, "allocation point") }()
	}
	for _, o := range d.in.Scopes {
		if o.Mark < row || o.Mark >= row+s.total || len(d.in.Scopes) > 8 {
			continue
		}
		x, name := s.x(o.Mark-row), fitting(o.Name, 1500)
		d.path("line", "M%s %s v5", x, d.y+rowHeight)
		if x >= free {
			d.text("small", x+20, d.y+rowHeight+135, name)
			free = x + long(name) + 200
		}
	}
}

// mark writes a text right of a place below the row, or left of it where the row ends; nothing where there is no room.
func (d *insideDrawing) mark(x, free px, text string) {
	if x+70+long(text) <= rowRight && x+70 >= free {
		d.text("small", x+70, d.y+rowHeight+135, text)
	} else if x-70-long(text) >= free {
		d.text("small size", x-70, d.y+rowHeight+135, text)
	}
}
