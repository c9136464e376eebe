package game

import "github.com/upfront-mem/upfront/scope"

// The chart says of each cell of the blockmap to which of the four beside it a player can walk,
// from middle to middle, once what may open is open. It is drawn once, before play: a search for a way
// looks up what would else be hundreds of traces in one tick. What moves later it doesn't know.

// beside are the four directions; that of index i is bit i of a cell's ways.
var beside = [4][2]int{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}

// maxCharted is how many cells times lines in the fullest cell there may be in a chart: three times
// what maps have. The cells of a hostile blockmap share one long list, and tracing takes minutes.
const maxCharted = 1 << 20

// drawChart fills Blocks.Ways. The traces use a scratch arena, one scratch for all of them.
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
