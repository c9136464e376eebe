package game

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// The search for a way is breadth first over squares of the blockmap's size around the player. The
// squares and the queue are in nested scopes of one scratch arena; the way is in a scope of the
// other arena, which lives longer.
const (
	wayLength  = 16
	waySpan    = 16 // squares in each direction
	wayWidth   = 2*waySpan + 1
	wayStart   = waySpan*wayWidth + waySpan
	maxSquares = 160 // visited at most
)

var byteMaker = scope.Plain[uint8]()

// waySearch is the state of one search. Its slices are in the scope scratch.
type waySearch struct {
	g           *Game
	w           *worker
	scratch     scope.Scope
	from        doom.Point
	column, row int      // the cell of the first square in the first row
	came        []uint8  // by square: the direction of arrival plus 1
	queue       []uint16 // squares in the order of visits
	count       int
}

// findWay sets a bot's way to a square picked by r, or to the nearest one that it can reach.
func (g *Game) findWay(w *worker, p *Player, b *brain, r uint64) {
	result := w.scratches[0].Open("way")
	defer w.close(result)
	way := g.searchWay(w, result, p.At, int(r>>8%wayWidth), int(r>>16%wayWidth))
	b.WayCount = uint32(copy(b.Way[:], way))
}

// searchWay returns the way, in the scope result, to the reachable square nearest to a goal.
func (g *Game) searchWay(w *worker, result scope.Scope, from doom.Point, goalX, goalY int) []doom.Point {
	scratch := w.scratches[1].Open("squares")
	defer w.close(scratch)
	s := waySearch{g: g, w: w, scratch: scratch, from: from}
	x, y := g.Level.Blocks.Relative(from)
	s.column, s.row = int(x>>doom.CellBits)-waySpan, int(y>>doom.CellBits)-waySpan
	s.came = byteMaker.TrySlice(scratch, wayWidth*wayWidth)
	s.queue = wordMaker.TrySlice(scratch, maxSquares)
	way := pointMaker.TrySlice(result, maxSquares)
	if s.came == nil || s.queue == nil || way == nil {
		return nil
	}
	s.visit(wayStart, 5)
	best, least := 0, int(1<<30)
	for head := 0; head < s.count; head++ {
		square := int(s.queue[head])
		x, y := square%wayWidth, square/wayWidth
		if d := (x-goalX)*(x-goalX) + (y-goalY)*(y-goalY); d < least {
			best, least = square, d
		}
		if s.count < maxSquares {
			s.spread(square)
		}
	}
	return s.backFrom(best, way)
}

func (s *waySearch) visit(square int, direction uint8) {
	if s.count < len(s.queue) {
		s.came[square] = direction
		s.queue[s.count] = uint16(square)
		s.count++
	}
}

// spread visits the neighbours of a square that can be walked to.
func (s *waySearch) spread(square int) {
	x, y := square%wayWidth, square/wayWidth
	for direction, d := range beside {
		nx, ny := x+d[0], y+d[1]
		if nx < 0 || ny < 0 || nx >= wayWidth || ny >= wayWidth || s.came[ny*wayWidth+nx] != 0 {
			continue
		}
		if next := ny*wayWidth + nx; s.opens(square, next, direction) {
			s.visit(next, uint8(direction+1))
		}
	}
}

// opens reports whether a player can walk to the next square in a direction. The chart has the
// answer, except for the player's own position and outside of the blockmap.
func (s *waySearch) opens(square, next, direction int) bool {
	l := s.g.Level
	b := &l.Blocks
	column, row := s.column+square%wayWidth, s.row+square/wayWidth
	if b.Ways != nil && square != wayStart && column >= 0 && row >= 0 && column < b.Columns && row < b.Rows {
		return b.Ways[row*b.Columns+column]>>direction&1 != 0
	}
	from, to := s.point(square), s.point(next)
	return from == to || s.w.walkable(l, s.scratch, from, to, &playerBody)
}

// point returns the middle of a square; for the first square, the player's position.
func (s *waySearch) point(square int) doom.Point {
	if square == wayStart {
		return s.from
	}
	return s.g.Level.Middle(s.column+square%wayWidth, s.row+square/wayWidth)
}

// backFrom follows the directions back to the start, and returns the way forward.
func (s *waySearch) backFrom(square int, way []doom.Point) []doom.Point {
	n := len(way)
	for s.came[square] != 5 {
		n--
		way[n] = s.point(square)
		back := [4]int{-1, -wayWidth, 1, wayWidth}
		square += back[s.came[square]-1]
	}
	return way[n:]
}
