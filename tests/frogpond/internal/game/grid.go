package game

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// grid finds frogs near a point. It is a hash table of squares, filled in each tick from the frogs'
// positions.
type grid struct {
	heads  []int32 // by square: a frog's place plus 1
	next   []int32 // by frog: the next one in the square
	filled bool    // the grid has the frogs' current positions
}

const (
	gridCells = 4096
	gridBits  = doom.UnitBits + 6 // squares of 64 units
	maxFrogs  = 4096              // more than the things of any known map
)

func newGrid(s scope.Scope, frogs int) grid {
	return grid{heads: indexMaker.Slice(s, gridCells), next: indexMaker.Slice(s, frogs)}
}

// fillGrid fills the grid unless it is filled for this tick.
func (l *Level) fillGrid() {
	g := &l.grid
	if g.filled {
		return
	}
	g.filled = true
	clear(g.heads)
	for i := range g.next {
		if f := l.Frogs.At(i); f != nil {
			cell := gridCell(f.At.X>>gridBits, f.At.Y>>gridBits)
			g.next[i] = g.heads[cell]
			g.heads[cell] = int32(i + 1)
		}
	}
}

func gridCell(column, row int32) uint32 {
	return (uint32(column)*0x9e3779b1 ^ uint32(row)*0x85ebca6b) >> 20
}

// crowded reports whether a step of the i-th frog brings it too near to another frog.
func (l *Level) crowded(i int, from, to doom.Point) bool {
	column, row := to.X>>gridBits, to.Y>>gridBits
	for y := row - 1; y <= row+1; y++ {
		for x := column - 1; x <= column+1; x++ {
			for k := l.grid.heads[gridCell(x, y)]; k != 0; k = l.grid.next[k-1] {
				at := l.Frogs.At(int(k - 1)).At
				if int(k-1) != i && at.Near(to, frogSpace) && !at.Near(from, frogSpace) {
					return true
				}
			}
		}
	}
	return false
}

// frogNear returns the place plus 1 of a frog within a distance, or 0. The distance is at most a
// square's side.
func (l *Level) frogNear(p doom.Point, distance int64) int32 {
	column, row := p.X>>gridBits, p.Y>>gridBits
	for y := row - 1; y <= row+1; y++ {
		for x := column - 1; x <= column+1; x++ {
			for k := l.grid.heads[gridCell(x, y)]; k != 0; k = l.grid.next[k-1] {
				if l.Frogs.At(int(k-1)).At.Near(p, distance) {
					return k
				}
			}
		}
	}
	return 0
}
