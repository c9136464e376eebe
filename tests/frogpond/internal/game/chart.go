package game

import "github.com/upfront-mem/upfront/scope"

// The chart has four bits for each cell of the blockmap: whether a player can walk from its middle
// to the middle of each neighbour, with every door open. drawChart fills it once, before play, so
// that a search for a way looks up bits instead of tracing hundreds of lines in a tick. It doesn't
// follow floors that move later.

// The four directions to neighbours. Bit i of a cell's ways is direction i.
var beside = [4][2]int{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}

// maxCharted is the limit of a chart: the number of cells times the lines of the fullest cell. It
// is three times the largest known map's. In a hostile blockmap all cells share one long list, and
// tracing would take minutes.
const maxCharted = 1 << 20

// drawChart fills Blocks.Ways, or sets it to nil beyond maxCharted. All traces share one scope of
// the scratch arena.
func (l *Level) drawChart(scratch scope.Scratch) error {
	b := &l.Blocks
	fullest := 0
	for cell := range b.Cells {
		fullest = max(fullest, len(l.Near(cell)))
	}
	if int64(len(b.Cells))*int64(fullest) > maxCharted {
		b.Ways = nil
		return nil
	}
	return scratch.Do("chart", func(scratch scope.Scope) error {
		list, seen := hitMaker.Slice(scratch, maxHits), seenMaker.Slice(scratch, l.seenWords())
		for cell := range b.Ways {
			column, row := cell%b.Columns, cell/b.Columns
			b.Ways[cell] = 0
			for direction, d := range beside {
				clear(seen)
				hits, ok := l.crossed(list, seen, l.Middle(column, row), l.Middle(column+d[0], row+d[1]))
				if ok && l.allPassable(hits, &playerBody) {
					b.Ways[cell] |= 1 << direction
				}
			}
		}
		return nil
	})
}
