package view

import (
	"fmt"
	"io"
	"slices"

	"github.com/upfront-mem/upfront/budget/inside"
)

// Inside draws the contents of an arena. At the top is the whole arena, to scale. Below are the
// used bytes in rows of equal length, with padding, the allocation point, and the chain of
// finalizers from the newest to the oldest. Temporaries ([scope.Scope.Temp]) are at the far end. A
// list shows the kind, scope, label, source line and bytes of the objects. The bytes of its lines
// add up to the used bytes. At the end are the chunks of up to six pools, and the blocks of up to
// six heaps, buddies and rings. If each chunk has its own square, numbers show the order in which
// Get will return the first nine free chunks.
//
// If there are many objects, adjacent objects are drawn as runs. If in is invalid, Inside returns
// the error of in.Check and writes nothing. Inside makes Go allocations for each object.
func Inside(w io.Writer, in inside.Contents) error {
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

// insideDrawing is the picture of the contents; y is the position of its next part.
type insideDrawing struct {
	picture
	in   *inside.Contents
	list insideLines
	y    px

	tops  map[uint64]px // of the drawn rows, by number
	chain string        // its text in the legend
}

// Positions and limits.
const (
	rowLeft     px = 1120 // offsets are left of it
	rowRight       = width - margin
	rowHeight   px = 260
	rowStep     px = 560 // with space for the chain above and for names below
	gapHeight   px = 300 // for undrawn bytes between two rows
	rowsMost       = 10
	rowLeast       = 64  // bytes
	drawnMost      = 600 // rectangles in the rows
	chainMost      = 60  // arrows
	withinMost     = 6   // pools; also heaps, buddies and rings
	cell        px = 160
	cellStep    px = 190
	cellsMost      = 220
	numberWidth px = 170
)

func (d *insideDrawing) description() string {
	text := fmt.Sprintf("The contents of %s of budget %s, from its first byte to its last: ", d.in.Arena, d.in.Budget)
	for i, line := range d.list.lines {
		if i > 0 {
			text += "; "
		}
		text += line.what + " " + exact(line.bytes)
	}
	return text
}

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

// run is drawn as one rectangle: an object, or several adjacent ones.
type run struct {
	from, to uint64
	class    string
	line     int // of the list, or -1
	span     int // the only object, or -1
}

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

// rowSize returns the bytes of a row: a power of two, so that offsets are easy to read.
func (d *insideDrawing) rowSize() uint64 {
	size := uint64(rowLeast)
	for size < d.in.Size && len(d.rowNumbers(size)) > rowsMost {
		size *= 2
	}
	return size
}

// rowNumbers returns the rows with used bytes of both ends, and stops after too many.
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

// runs returns the rectangles: single objects if they are few, else runs of alike or of small ones.
func (d *insideDrawing) runs() []run {
	var list []run
	for i := range d.in.Spans {
		t := &d.in.Spans[i]
		if t.Padding != 0 {
			list = append(list, run{t.Offset - t.Padding, t.Offset, "hatch", -1, -1})
		}
		if t.Size != 0 {
			list = append(list, run{t.Offset, t.Offset + t.Size, spanClass(d.in, t), d.list.of[i], i})
		}
	}
	if len(list) > drawnMost {
		list = merged(list, d.in.Limit, func(a, b run) bool {
			return a.line >= 0 && (a.line == b.line || b.class == "hatch")
		})
	}
	for least := d.rowSize() / 4096; len(list) > drawnMost; least = 2*least + 1 {
		list = merged(list, d.in.Limit, func(a, b run) bool { return a.to-a.from <= least && b.to-b.from <= least })
	}
	return list
}

// merged joins adjacent runs that are alike. A run that starts at `apart` is never joined to the
// one before.
func merged(list []run, apart uint64, alike func(a, b run) bool) (fewer []run) {
	for _, r := range list {
		n := len(fewer) - 1
		if n < 0 || fewer[n].to != r.from || r.from == apart || !alike(fewer[n], r) {
			fewer = append(fewer, r)
			continue
		}
		m := &fewer[n]
		m.to, m.span = r.to, -1
		if r.line != m.line && r.class != "hatch" {
			m.line = -1
		}
		if r.class != m.class && r.class != "hatch" {
			m.class = "c7"
		}
	}
	return fewer
}

// row draws size bytes from an offset on.
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

// run draws the part of a run that is in a row, with the number of its line if it fits. A gap
// separates neighbours that are wide enough.
func (d *insideDrawing) run(s scale, row uint64, r run) {
	left, right := s.x(max(r.from, row)-row), s.x(min(r.to, row+s.total)-row)
	if right-left > 30 && r.class != "hatch" {
		right -= 5
	}
	text := ""
	if r.span >= 0 {
		text = d.tip(r.span)
	}
	d.told(r.class, left, d.y, max(right-left, 2), rowHeight, text)
	if r.line >= 0 && right-left >= numberWidth && r.class != "c3 pale" {
		d.text("in", (left+right)/2, d.y+rowHeight/2+45, exact(d.list.lines[r.line].number))
	}
}

// tip returns the text that a browser shows at the pointer, or "" if the objects are many.
func (d *insideDrawing) tip(i int) string {
	if len(d.in.Spans) > linesMost*4 {
		return ""
	}
	t := &d.in.Spans[i]
	text := fmt.Sprintf("%s: %s bytes at %s", spanText(t), exact(t.Size), exact(t.Offset))
	if made := madeOf(t); made != "" {
		text += ", " + made
	}
	return text
}

// marks shows below a row where scopes start, and the allocation point.
func (d *insideDrawing) marks(s scale, row uint64) {
	free := rowLeft // the first place without a text
	if end := row + s.total; d.in.Cursor >= row && (d.in.Cursor < end || d.in.Cursor == end &&
		d.in.Cursor == d.in.Limit) || d.in.Cursor == end && !slices.Contains(d.rowNumbers(s.total), end/s.total) {
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

// mark writes a text right of a place below the row, else left of it, or not at all if it doesn't
// fit.
func (d *insideDrawing) mark(x, free px, text string) {
	if x+70+long(text) <= rowRight && x+70 >= free {
		d.text("small", x+70, d.y+rowHeight+135, text)
	} else if x-70-long(text) >= free {
		d.text("small size", x-70, d.y+rowHeight+135, text)
	}
}
