package doom

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Blocks is the blockmap: a grid of squares of 128 units, each with the list of the lines in it. It
// finds the lines near a point, for walking and seeing.
type Blocks struct {
	X, Y          int32 // the lower left corner, map units
	Columns, Rows int
	Cells         []Cell
	// The chart: for each cell, the directions in which a player can walk. Nil if there is no
	// chart.
	Ways []uint16
}

// CellBits is the number of low bits of a 24.8 coordinate that are the place within a cell.
const CellBits = 7 + 8

const (
	cellUnits = 128
	countSize = 4 // size in bytes of an element of countMaker
)

// readBlocks takes the map's BLOCKMAP. If the BLOCKMAP is missing, malformed, or lacks a line in a
// cell that the line passes, it builds one from the lines.
func (l *Level) readBlocks(s scope.Scope, raw *rawMap) {
	if !l.takeBlocks(s, raw) {
		l.buildBlocks(s)
	}
}

// takeBlocks reports whether the BLOCKMAP agrees with the lines. If so, it copies the BLOCKMAP to
// s; otherwise s is unchanged.
func (l *Level) takeBlocks(s scope.Scope, raw *rawMap) bool {
	size := raw.count(blockmap)
	if size < 4 {
		return false
	}
	b := Blocks{X: int32(raw.int16(blockmap, 0, 0)), Y: int32(raw.int16(blockmap, 1, 0)),
		Columns: int(raw.word(blockmap, 2, 0)), Rows: int(raw.word(blockmap, 3, 0))}
	if cells := int64(b.Columns) * int64(b.Rows); cells == 0 || cells > int64(size-4) {
		return false
	}
	cells := b.Columns * b.Rows
	temp := s.Temp(size * countSize)
	defer temp.Close()
	lists, ok := l.readLists(temp, raw, cells)
	if !ok || !l.agrees(&b, &lists) {
		return false
	}
	b.Cells = cellMaker.Slice(s, cells)
	words := wordMaker.Slice(s, size)
	for i := range words {
		words[i] = raw.word(blockmap, i, 0)
	}
	for i := range b.Cells {
		start, end := lists.of(i)
		b.Cells[i].Lines = arena.SliceOf(l.Base, words[start:end])
	}
	b.Ways = words[4 : 4+cells] // the cells have the lists now, so these words are free
	l.Blocks = b
	return true
}

// lists holds the lists of a BLOCKMAP's cells, as ranges of its words.
type lists struct {
	raw  *rawMap
	ends []uint32 // by the first word of a list
	skip int      // meaningless words at the start of each list
}

// readLists finds the end of each cell's list. ok is false if a list starts outside of the words
// for lists, has no end, or has an unknown line. Some large maps have such lists, because their
// offsets exceed 16 bits and wrap.
//
// By custom each list starts with a meaningless 0. A BLOCKMAP has it in all lists or in none: if a
// list starts with another word, each 0 is line 0.
func (l *Level) readLists(t scope.Scope, raw *rawMap, cells int) (r lists, ok bool) {
	r = lists{raw: raw, ends: l.listEnds(t, raw), skip: 1}
	for i := range cells {
		start := int(raw.word(blockmap, 4+i, 0))
		if start < 4+cells || start >= len(r.ends) || r.ends[start] == 0 {
			return r, false
		}
		if raw.word(blockmap, start, 0) != 0 {
			r.skip = 0
		}
	}
	return r, true
}

// of returns the range of a cell's list: its first word, and the one after its last.
func (r *lists) of(cell int) (start, end int) {
	start = int(r.raw.word(blockmap, 4+cell, 0))
	return start + r.skip, int(r.ends[start])
}

// have reports whether a cell's list has a line, and how many words it read.
func (r *lists) have(cell, line int) (found bool, read int) {
	start, end := r.of(cell)
	for i := start; i < end; i++ {
		if int(r.raw.word(blockmap, i, 0)) == line {
			return true, i - start + 1
		}
	}
	return false, end - start
}

// listEnds returns, for each word, the end of a list that starts there, or 0 if the list has a bad
// line or no end. One pass does this for all lists, since in a hostile lump all cells may share one
// long list.
func (l *Level) listEnds(t scope.Scope, raw *rawMap) []uint32 {
	ends := countMaker.Slice(t, raw.count(blockmap))
	for i := len(ends) - 1; i >= 0; i-- {
		switch word := raw.word(blockmap, i, 0); {
		case word == 0xffff:
			ends[i] = uint32(i)
		case int(word) < len(l.Lines) && i+1 < len(ends):
			ends[i] = ends[i+1]
		}
	}
	return ends
}

// mostRead is the most words that agrees reads. Freedoom's largest map needs 150,000; a hostile
// BLOCKMAP whose cells share one long list would take minutes.
const mostRead = 1 << 23

// agrees reports whether each line is in the lists of all cells that it passes. An idle line may be
// in no list, since some node builders omit idle lines.
func (l *Level) agrees(b *Blocks, r *lists) bool {
	reads := 0
	for i := range l.Lines {
		n := &l.Lines[i]
		listed, missing := false, !b.holds(n)
		walk := b.Along(n.Ends())
		for cell, ok := walk.Next(); ok; cell, ok = walk.Next() {
			if !b.passes(n, cell) {
				continue
			}
			found, read := r.have(cell, i)
			listed, missing = listed || found, missing || !found
			reads += read
		}
		if reads > mostRead || missing && (listed || !l.idle(n)) {
			return false
		}
	}
	return true
}

// holds reports whether a line is within the grid.
func (b *Blocks) holds(n *Line) bool {
	x, y := int64(n.X)-int64(b.X), int64(n.Y)-int64(b.Y)
	width, height := int64(b.Columns)*cellUnits, int64(b.Rows)*cellUnits
	return min(x, x+int64(n.DX)) >= 0 && max(x, x+int64(n.DX)) < width &&
		min(y, y+int64(n.DY)) >= 0 && max(y, y+int64(n.DY)) < height
}

// passes reports whether a line is in a cell with more than one point. A cell has its left and
// lower edges; the other two belong to its neighbours.
func (b *Blocks) passes(n *Line, cell int) bool {
	// The cell's corner, relative to the line's start.
	x := int64(b.X) + int64(cell%b.Columns)*cellUnits - int64(n.X)
	y := int64(b.Y) + int64(cell/b.Columns)*cellUnits - int64(n.Y)
	dx, dy := int64(n.DX), int64(n.DY)
	if !overlaps(dx, x) || !overlaps(dy, y) {
		return false
	}
	if dx == 0 || dy == 0 {
		return dx != dy
	}
	// The corner's side of the line, and its change to the corners on the right and above.
	side, right, up := dx*y-dy*x, -dy*cellUnits, dx*cellUnits
	return side+min(right, 0)+min(up, 0) < 0 && side+max(right, 0)+max(up, 0) > 0
}

// overlaps reports whether the range from 0 to d shares more than an end with the cell that begins
// at x.
func overlaps(d, x int64) bool {
	if d == 0 {
		return x <= 0 && 0 < x+cellUnits
	}
	return min(d, 0) < x+cellUnits && max(d, 0) > x
}

// idle reports whether a line can't stop a body. Both sides have the same floor and ceiling, or its
// only side is closed. It has no special, and the sectors next to it have no tag.
func (l *Level) idle(n *Line) bool {
	front := n.Front.Get(l.Base)
	if n.Special != 0 || l.Outline(front).Tag != 0 {
		return false
	}
	if n.Back.IsNil() {
		return front.Floor >= front.Ceiling
	}
	back := n.Back.Get(l.Base)
	return n.Flags&Impassable == 0 && l.Outline(back).Tag == 0 && front.Floor == back.Floor &&
		front.Ceiling == back.Ceiling
}

// buildBlocks makes the blockmap from the lines, in two passes: the first counts, the second fills.
func (l *Level) buildBlocks(s scope.Scope) {
	b := &l.Blocks
	b.X, b.Y = l.Min.X>>UnitBits, l.Min.Y>>UnitBits
	b.Columns = int(l.Max.X>>UnitBits-b.X)/cellUnits + 1
	b.Rows = int(l.Max.Y>>UnitBits-b.Y)/cellUnits + 1
	b.Cells = cellMaker.Slice(s, b.Columns*b.Rows)
	temp := s.Temp(len(b.Cells) * countSize)
	defer temp.Close()
	counts := countMaker.Slice(temp, len(b.Cells))
	total := 0
	for i := range l.Lines {
		walk := b.Along(l.Lines[i].Ends())
		for cell, ok := walk.Next(); ok; cell, ok = walk.Next() {
			counts[cell]++
			total++
		}
	}
	words := wordMaker.Slice(s, total)
	for i := range b.Cells {
		list := words[:counts[i]]
		b.Cells[i].Lines = arena.SliceOf(l.Base, list)
		words, counts[i] = words[counts[i]:], 0
	}
	for i := range l.Lines {
		walk := b.Along(l.Lines[i].Ends())
		for cell, ok := walk.Next(); ok; cell, ok = walk.Next() {
			b.Cells[cell].Lines.Get(l.Base)[counts[cell]] = uint16(i)
			counts[cell]++
		}
	}
	b.Ways = wordMaker.Slice(s, len(b.Cells))
}

// Near returns the lines in a cell.
func (l *Level) Near(cell int) []uint16 { return l.Blocks.Cells[cell].Lines.Get(l.Base) }

// Middle returns the middle of a cell; for a cell outside of the map, the nearest point inside.
func (l *Level) Middle(column, row int) Point {
	b := &l.Blocks
	x, y := int64(column)<<CellBits+1<<(CellBits-1), int64(row)<<CellBits+1<<(CellBits-1)
	return l.Inside(Point{Clamp((x + int64(b.X)<<8) << 8), Clamp((y + int64(b.Y)<<8) << 8)})
}

// Walk steps through the cells that a segment passes, column by column.
type Walk struct {
	b                *Blocks
	x1, y1, x2, y2   int64 // 24.8 from the corner, x1 <= x2
	column, toColumn int64
	row, toRow       int64
}

// Along returns a walk between two points, without the cells outside of the blockmap.
func (b *Blocks) Along(from, to Point) Walk {
	if from.X > to.X {
		from, to = to, from
	}
	w := Walk{b: b, row: 0, toRow: -1}
	w.x1, w.y1 = b.Relative(from)
	w.x2, w.y2 = b.Relative(to)
	// A 256th of a unit more on each side, so that a point on an edge is in both cells.
	w.column = max((w.x1-1)>>CellBits, 0) - 1
	w.toColumn = min((w.x2+1)>>CellBits, int64(b.Columns)-1)
	return w
}

// Relative returns a point in 24.8, relative to the corner of the blockmap.
func (b *Blocks) Relative(p Point) (x, y int64) {
	return int64(p.X)>>8 - int64(b.X)<<8, int64(p.Y)>>8 - int64(b.Y)<<8
}

// Next returns the next cell, or false after the last.
func (w *Walk) Next() (cell int, ok bool) {
	for w.row > w.toRow {
		w.column++
		if w.column > w.toColumn {
			return 0, false
		}
		w.rows()
	}
	cell = int(w.row)*w.b.Columns + int(w.column)
	w.row++
	return cell, true
}

// rows sets the rows that the segment passes in the current column.
func (w *Walk) rows() {
	low, high := w.y1, w.y2
	if w.x1 != w.x2 {
		left := max(w.column<<CellBits, w.x1)
		right := min((w.column+1)<<CellBits, w.x2)
		low = w.y1 + (w.y2-w.y1)*(left-w.x1)/(w.x2-w.x1)
		high = w.y1 + (w.y2-w.y1)*(right-w.x1)/(w.x2-w.x1)
	}
	low, high = min(low, high), max(low, high)
	w.row = max((low-1)>>CellBits, 0)
	w.toRow = min((high+1)>>CellBits, int64(w.b.Rows)-1)
}
