package doom

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Blocks is the blockmap: a grid of squares of 128 units, each with the list of
// the lines in it. It answers "which lines are near?" for walking and seeing.
type Blocks struct {
	X, Y          int32 // the lower left corner, map units
	Columns, Rows int
	Cells         []Cell
	Ways          []uint16 // by cell: where a player can walk to, the chart; nil where there is none
}

// CellBits are those of a place in 24.8 that lie in one cell.
const CellBits = 7 + 8

const (
	cellUnits = 128
	countSize = 4 // bytes of what countMaker makes
)

// readBlocks reads the BLOCKMAP or, where there is none, builds it.
func (l *Level) readBlocks(s scope.Scope, raw *rawMap) error {
	if len(raw.bytes[blockmap]) == 0 {
		l.buildBlocks(s)
		return nil
	}
	size := raw.count(blockmap)
	if size < 4 {
		return raw.badRow(blockmap, 0, "%d words; the header alone has 4", size)
	}
	b := Blocks{X: int32(raw.int16(blockmap, 0, 0)), Y: int32(raw.int16(blockmap, 1, 0)),
		Columns: int(raw.word(blockmap, 2, 0)), Rows: int(raw.word(blockmap, 3, 0))}
	if cells := int64(b.Columns) * int64(b.Rows); cells == 0 || cells > int64(size-4) {
		return raw.badRow(blockmap, 4, "%d columns and %d rows don't fit into %d words", b.Columns,
			b.Rows, size)
	}
	b.Cells = cellMaker.Slice(s, b.Columns*b.Rows)
	words := wordMaker.Slice(s, size)
	for i := range words {
		words[i] = raw.word(blockmap, i, 0)
	}
	temp := s.Temp(size * countSize)
	defer temp.Close()
	ends := l.listEnds(temp, words)
	for i := range b.Cells {
		start := int(words[4+i])
		switch {
		case start < 4+len(b.Cells):
			return raw.badRow(blockmap, 8+2*i, "cell %d: its list starts at word %d, before the lists", i,
				start)
		case start >= size:
			return raw.badRow(blockmap, 8+2*i, "cell %d: its list starts at word %d of %d", i, start, size)
		case ends[start] == 0:
			return l.badList(raw, words, i, start)
		}
		list := words[start:ends[start]]
		if len(list) > 0 && list[0] == 0 {
			list = list[1:] // by custom each list starts with a 0 that means nothing
		}
		b.Cells[i].Lines = arena.SliceOf(l.Base, list)
	}
	b.Ways = words[4 : 4+len(b.Cells)] // where the lists start is in the cells now
	l.Blocks = b
	return nil
}

// listEnds gives, for each word, the end of a list that starts there, or 0 if
// the list holds a bad line or doesn't end: one pass for all lists, since a
// hostile lump can make every cell share one long list.
func (l *Level) listEnds(t scope.Scope, words []uint16) []uint32 {
	ends := countMaker.Slice(t, len(words))
	for i := len(words) - 1; i >= 0; i-- {
		switch {
		case words[i] == 0xffff:
			ends[i] = uint32(i)
		case int(words[i]) < len(l.Lines) && i+1 < len(words):
			ends[i] = ends[i+1]
		}
	}
	return ends
}

// badList names the first bad word of a cell's list.
func (l *Level) badList(raw *rawMap, words []uint16, cell, start int) error {
	for i := start; i < len(words); i++ {
		if int(words[i]) >= len(l.Lines) {
			return raw.badRow(blockmap, 2*i, "cell %d: line %d of %d", cell, words[i], len(l.Lines))
		}
	}
	return raw.badRow(blockmap, 2*start, "cell %d: its list has no end", cell)
}

// buildBlocks makes the blockmap from the lines: once to count, once to fill.
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

// Near lists the lines in a cell.
func (l *Level) Near(cell int) []uint16 { return l.Blocks.Cells[cell].Lines.Get(l.Base) }

// Middle is the middle of a cell; of one beyond the map, the nearest point within.
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

// Along walks from one point to another; what lies beyond the blockmap is left out.
func (b *Blocks) Along(from, to Point) Walk {
	if from.X > to.X {
		from, to = to, from
	}
	w := Walk{b: b, row: 0, toRow: -1}
	w.x1, w.y1 = b.Relative(from)
	w.x2, w.y2 = b.Relative(to)
	// One 256th of a unit more on each side: what lies on an edge is in both cells.
	w.column = max((w.x1-1)>>CellBits, 0) - 1
	w.toColumn = min((w.x2+1)>>CellBits, int64(b.Columns)-1)
	return w
}

// Relative is a point in 24.8 from the corner of the blockmap.
func (b *Blocks) Relative(p Point) (x, y int64) {
	return int64(p.X)>>8 - int64(b.X)<<8, int64(p.Y)>>8 - int64(b.Y)<<8
}

// Next is the next cell, if there is one.
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
