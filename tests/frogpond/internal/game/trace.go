package game

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// body is the shape of a player or frog.
type body struct {
	radius, height int32 // map units
	eye            int32 // height above the floor
}

var (
	playerBody = body{radius: 16, height: 56, eye: 41}
	frogBody   = body{radius: 8, height: 16, eye: 8}
)

const (
	stepHeight = 24 // the highest step that a body climbs
	maxHits    = 128
)

// hit is a line that a segment crosses.
type hit = doom.Crossing

var (
	hitMaker  = scope.Plain[hit]()
	seenMaker = scope.Plain[uint64]()
)

// touches reports whether the square of a body at p overlaps the line.
func touches(n *doom.Line, p doom.Point, radius int32) bool {
	from, to := n.Ends()
	r := int64(radius) << doom.UnitBits
	x, y := int64(p.X), int64(p.Y)
	if int64(max(from.X, to.X)) <= x-r || int64(min(from.X, to.X)) >= x+r ||
		int64(max(from.Y, to.Y)) <= y-r || int64(min(from.Y, to.Y)) >= y+r {
		return false
	}
	return abs(n.Side(p)) < r*(abs(int64(n.DX))+abs(int64(n.DY)))
}

func abs(v int64) int64 { return max(v, -v) }

// passable reports whether a body can cross the line from one of its sides.
func (l *Level) passable(n *doom.Line, front bool, who *body) bool {
	if n.Back.IsNil() || n.Flags&doom.Impassable != 0 {
		return false
	}
	here, there := n.Front.Get(l.Base), n.Back.Get(l.Base)
	if !front {
		here, there = there, here
	}
	floor := int64(max(here.Floor, there.Floor))
	ceiling := int64(min(here.Ceiling, there.Ceiling))
	return ceiling-floor >= int64(who.height)<<doom.UnitBits &&
		int64(there.Floor)-int64(here.Floor) <= stepHeight<<doom.UnitBits
}

// mayOpen reports whether a line that a player can't cross now may become passable, because it has
// a special or a sector next to it has a tag.
func (l *Level) mayOpen(n *doom.Line) bool {
	if n.Back.IsNil() || n.Flags&doom.Impassable != 0 {
		return false
	}
	return n.Special != 0 || l.Outline(n.Front.Get(l.Base)).Tag != 0 ||
		l.Outline(n.Back.Get(l.Base)).Tag != 0
}

// stopped reports whether lines stop a body between two points. It checks steps shorter than the
// body's radius, since a longer step could miss a line.
func (l *Level) stopped(from, to doom.Point, who *body) bool {
	dx, dy := int64(to.X)-int64(from.X), int64(to.Y)-int64(from.Y)
	steps := max(abs(dx), abs(dy))>>doom.UnitBits/int64(who.radius) + 1
	at := from
	for i := int64(1); i <= steps; i++ {
		next := doom.Point{X: from.X + int32(dx*i/steps), Y: from.Y + int32(dy*i/steps)}
		if l.blocked(at, next, who) {
			return true
		}
		at = next
	}
	return false
}

// blocked reports whether lines stop a body on a step between two points. A line that the body
// already touches stops it only on the way further in, so that a body that came down a ledge isn't
// stuck.
func (l *Level) blocked(from, to doom.Point, who *body) bool {
	if to != l.Inside(to) {
		return true
	}
	b := &l.Blocks
	x, y := b.Relative(to)
	r := int64(who.radius) << 8
	left, right := max((x-r)>>doom.CellBits, 0), min((x+r)>>doom.CellBits, int64(b.Columns)-1)
	low, high := max((y-r)>>doom.CellBits, 0), min((y+r)>>doom.CellBits, int64(b.Rows)-1)
	for row := low; row <= high; row++ {
		for column := left; column <= right; column++ {
			for _, i := range l.Near(int(row)*b.Columns + int(column)) {
				if l.stops(&l.Lines[i], from, to, who) {
					return true
				}
			}
		}
	}
	return false
}

func (l *Level) stops(n *doom.Line, from, to doom.Point, who *body) bool {
	if !touches(n, to, who.radius) {
		return false
	}
	before, after := n.Side(from), n.Side(to)
	if l.passable(n, before <= 0, who) {
		return false
	}
	sameSide := (before > 0) == (after > 0)
	return !touches(n, from, who.radius) || !sameSide || abs(after) < abs(before)
}

// trace returns the lines between two points, nearest first, in the scope t. ok is false if the
// scratch arena is full, or if the way crosses more than maxHits lines. The points must be within
// 1024 units of each other, which bounds the products below.
func (l *Level) trace(t scope.Scope, from, to doom.Point) (hits []hit, ok bool) {
	list := hitMaker.TrySlice(t, maxHits)
	seen := seenMaker.TrySlice(t, l.seenWords())
	if list == nil || seen == nil {
		return nil, false
	}
	return l.crossed(list, seen, from, to)
}

// seenWords returns the number of words that have a bit for each line. They prevent duplicates,
// since a line is in the list of each cell that it passes.
func (l *Level) seenWords() int { return (len(l.Lines) + 63) / 64 }

// crossed is trace in the caller's memory. All bits of seen must be 0.
func (l *Level) crossed(list []hit, seen []uint64, from, to doom.Point) (hits []hit, ok bool) {
	n := 0
	walk := l.Blocks.Along(from, to)
	for cell, more := walk.Next(); more; cell, more = walk.Next() {
		for _, i := range l.Near(cell) {
			if seen[i/64]>>(i%64)&1 != 0 {
				continue
			}
			seen[i/64] |= 1 << (i % 64)
			h, crosses := cross(&l.Lines[i], from, to)
			if !crosses {
				continue
			}
			if n == len(list) {
				return nil, false
			}
			h.Line = i
			insert(list[:n+1], h)
			n++
		}
	}
	return list[:n], true
}

// insert puts a hit into a sorted list whose last element is free.
func insert(list []hit, h hit) {
	i := len(list) - 1
	for i > 0 && h.Before(&list[i-1]) {
		list[i] = list[i-1]
		i--
	}
	list[i] = h
}

// cross reports whether and where the way between two points crosses the line. It isn't doom's
// crossing: the two differ at the ends of lines and in the last bits of the fraction, and the
// recorded states depend on this one.
func cross(n *doom.Line, from, to doom.Point) (hit, bool) {
	before, after := n.Side(from), n.Side(to)
	if (before > 0) == (after > 0) {
		return hit{}, false
	}
	dx, dy := (int64(to.X)-int64(from.X))>>8, (int64(to.Y)-int64(from.Y))>>8
	a, b := n.Ends()
	left := dx*((int64(a.Y)-int64(from.Y))>>8)-dy*((int64(a.X)-int64(from.X))>>8) > 0
	right := dx*((int64(b.Y)-int64(from.Y))>>8)-dy*((int64(b.X)-int64(from.X))>>8) > 0
	if left == right {
		return hit{}, false
	}
	return hit{Fraction: int32((before << doom.UnitBits) / (before - after)), Front: before <= 0}, true
}

// walkable reports whether a body's centre can go straight from one point to the other. It opens a
// scope nested in t.
func (w *worker) walkable(l *Level, t scope.Scope, from, to doom.Point, who *body) bool {
	query := t.Open("walkable")
	defer w.close(query)
	hits, ok := l.trace(query, from, to)
	return ok && l.allPassable(hits, who)
}

// allPassable reports whether a body can cross all lines of a list. For players, lines that may
// open count as open.
func (l *Level) allPassable(hits []hit, who *body) bool {
	for _, h := range hits {
		n := &l.Lines[h.Line]
		if !l.passable(n, h.Front, who) && !(who == &playerBody && l.mayOpen(n)) {
			return false
		}
	}
	return true
}

// sees reports whether a viewer at one point sees the target's body at another. As in the original
// game, the view narrows at each opening on the way.
func (w *worker) sees(l *Level, t scope.Scope, from, to doom.Point, viewer, target *body) bool {
	query := t.Open("sees")
	defer w.close(query)
	hits, ok := l.trace(query, from, to)
	return ok && l.opens(hits, viewer, target)
}

// opens reports whether a viewer sees a target across all lines of a list.
func (l *Level) opens(hits []hit, viewer, target *body) bool {
	if len(hits) == 0 {
		return true
	}
	first, last := &hits[0], &hits[len(hits)-1]
	eye := l.floor(first, first.Front) + int64(viewer.eye)<<doom.UnitBits
	bottom := l.floor(last, !last.Front) - eye
	top := bottom + int64(target.height)<<doom.UnitBits
	for _, h := range hits {
		n := &l.Lines[h.Line]
		if n.Back.IsNil() {
			return false
		}
		front, back := n.Front.Get(l.Base), n.Back.Get(l.Base)
		low := int64(max(front.Floor, back.Floor)) - eye
		high := int64(min(front.Ceiling, back.Ceiling)) - eye
		fraction := int64(max(h.Fraction, 1))
		bottom = max(bottom, (low<<doom.UnitBits)/fraction)
		top = min(top, (high<<doom.UnitBits)/fraction)
		if bottom >= top {
			return false
		}
	}
	return true
}

// floor returns the height of the floor on one side of a crossed line. A wall has only a front.
func (l *Level) floor(h *hit, front bool) int64 {
	n := &l.Lines[h.Line]
	if front || n.Back.IsNil() {
		return int64(n.Front.Get(l.Base).Floor)
	}
	return int64(n.Back.Get(l.Base).Floor)
}
