package main

import "github.com/upfront-mem/upfront/scope"

// Body is the shape of whoever moves.
type Body struct {
	radius, height int32 // map units
	eye            int32 // above the floor
	opensDoors     bool  // a line with a special lets it through
}

var (
	playerBody = Body{radius: 16, height: 56, eye: 41, opensDoors: true}
	frogBody   = Body{radius: 8, height: 16, eye: 8}
)

const (
	impassable = 1  // the flag of a line that stops everyone
	stepHeight = 24 // the highest step that can be climbed
	maxHits    = 128
)

// Hit is a line that a segment crosses. It lives in a scope of a scratch arena.
type Hit struct {
	Fraction int32 // of the way, 16.16
	Line     uint16
	Front    bool // crossed from the front to the back
}

var (
	hitMaker  = scope.Plain[Hit]()
	seenMaker = scope.Plain[uint64]()
)

// ends are the two points of a line.
func (n *Line) ends() (from, to Point) {
	return Point{n.X << unitBits, n.Y << unitBits}, Point{(n.X + n.DX) << unitBits, (n.Y + n.DY) << unitBits}
}

// side is how far p lies to the left of the line (its back), times the line's length.
func (n *Line) side(p Point) int64 {
	return int64(n.DX)*(int64(p.Y)-int64(n.Y)<<unitBits) - int64(n.DY)*(int64(p.X)-int64(n.X)<<unitBits)
}

// touches says whether a square around p overlaps the line.
func (n *Line) touches(p Point, radius int32) bool {
	from, to := n.ends()
	r := int64(radius) << unitBits
	x, y := int64(p.X), int64(p.Y)
	if int64(max(from.X, to.X)) <= x-r || int64(min(from.X, to.X)) >= x+r ||
		int64(max(from.Y, to.Y)) <= y-r || int64(min(from.Y, to.Y)) >= y+r {
		return false
	}
	return abs(n.side(p)) < r*(abs(int64(n.DX))+abs(int64(n.DY)))
}

func abs(v int64) int64 { return max(v, -v) }

// passable says whether a body can cross the line from one of its sides.
func (l *Level) passable(n *Line, front bool, body *Body) bool {
	if n.Back.IsNil() || n.Flags&impassable != 0 {
		return false
	}
	if n.Special != 0 && body.opensDoors {
		return true
	}
	here, there := n.Front.Get(l.base), n.Back.Get(l.base)
	if !front {
		here, there = there, here
	}
	floor := int32(max(here.Floor, there.Floor))
	ceiling := int32(min(here.Ceiling, there.Ceiling))
	return ceiling-floor >= body.height && int32(there.Floor)-int32(here.Floor) <= stepHeight
}

// blocked says whether lines stop a body on a step between two points. A line
// that the body touches already stops it only on the way further in, so that
// nobody who came down a ledge is caught in it.
func (l *Level) blocked(from, to Point, body *Body) bool {
	if to != l.inside(to) {
		return true
	}
	b := &l.Blocks
	x, y := b.relative(to)
	r := int64(body.radius) << 8
	left, right := max((x-r)>>cellBits, 0), min((x+r)>>cellBits, int64(b.Columns)-1)
	low, high := max((y-r)>>cellBits, 0), min((y+r)>>cellBits, int64(b.Rows)-1)
	for row := low; row <= high; row++ {
		for column := left; column <= right; column++ {
			for _, i := range l.near(int(row)*b.Columns + int(column)) {
				if l.stops(&l.Lines[i], from, to, body) {
					return true
				}
			}
		}
	}
	return false
}

func (l *Level) stops(n *Line, from, to Point, body *Body) bool {
	if !n.touches(to, body.radius) {
		return false
	}
	before, after := n.side(from), n.side(to)
	if l.passable(n, before <= 0, body) {
		return false
	}
	sameSide := (before > 0) == (after > 0)
	return !n.touches(from, body.radius) || !sameSide || abs(after) < abs(before)
}

// trace lists the lines between two points, nearest first, in the scope t. It
// fails when the scratch arena is full, and for a way that crosses more than maxHits lines.
// The points must lie within 1024 units, which bounds the products below.
func (l *Level) trace(t scope.Scope, from, to Point) (hits []Hit, ok bool) {
	list := hitMaker.TrySlice(t, maxHits)
	seen := seenMaker.TrySlice(t, l.seenWords())
	if list == nil || seen == nil {
		return nil, false
	}
	return l.crossed(list, seen, from, to)
}

// seenWords is how many words have a bit for each line: one is listed in every cell it passes.
func (l *Level) seenWords() int { return (len(l.Lines) + 63) / 64 }

// crossed is trace in memory of the caller's; all bits of seen are 0.
func (l *Level) crossed(list []Hit, seen []uint64, from, to Point) (hits []Hit, ok bool) {
	n := 0
	walk := l.Blocks.along(from, to)
	for cell, more := walk.next(); more; cell, more = walk.next() {
		for _, i := range l.near(cell) {
			if seen[i/64]>>(i%64)&1 != 0 {
				continue
			}
			seen[i/64] |= 1 << (i % 64)
			hit, crosses := l.Lines[i].cross(from, to)
			if !crosses {
				continue
			}
			if n == len(list) {
				return nil, false
			}
			hit.Line = i
			insert(list[:n+1], hit)
			n++
		}
	}
	return list[:n], true
}

// insert puts a hit into a list that is in order but for its free last place.
func insert(list []Hit, hit Hit) {
	i := len(list) - 1
	for i > 0 && (list[i-1].Fraction > hit.Fraction ||
		list[i-1].Fraction == hit.Fraction && list[i-1].Line > hit.Line) {
		list[i] = list[i-1]
		i--
	}
	list[i] = hit
}

// cross says whether and where the way between two points crosses the line.
func (n *Line) cross(from, to Point) (Hit, bool) {
	before, after := n.side(from), n.side(to)
	if (before > 0) == (after > 0) {
		return Hit{}, false
	}
	dx, dy := (int64(to.X)-int64(from.X))>>8, (int64(to.Y)-int64(from.Y))>>8
	a, b := n.ends()
	left := dx*((int64(a.Y)-int64(from.Y))>>8)-dy*((int64(a.X)-int64(from.X))>>8) > 0
	right := dx*((int64(b.Y)-int64(from.Y))>>8)-dy*((int64(b.X)-int64(from.X))>>8) > 0
	if left == right {
		return Hit{}, false
	}
	return Hit{Fraction: int32((before << unitBits) / (before - after)), Front: before <= 0}, true
}

// walkable says whether a body's centre can go straight from one point to the
// other. It is asked by whoever looks for a way, in a scope nested in theirs.
func (w *Worker) walkable(l *Level, t scope.Scope, from, to Point, body *Body) bool {
	query := t.Open("walkable")
	defer w.close(query)
	hits, ok := l.trace(query, from, to)
	return ok && l.allPassable(hits, body)
}

// allPassable says whether a body can cross each line of a list.
func (l *Level) allPassable(hits []Hit, body *Body) bool {
	for _, h := range hits {
		if !l.passable(&l.Lines[h.Line], h.Front, body) {
			return false
		}
	}
	return true
}

// sees says whether somebody at one point sees the body of another: the view
// narrows at each opening on the way, as the game does it.
func (w *Worker) sees(l *Level, t scope.Scope, from, to Point, viewer, target *Body) bool {
	query := t.Open("sees")
	defer w.close(query)
	hits, ok := l.trace(query, from, to)
	if !ok || len(hits) == 0 {
		return ok
	}
	first, last := &hits[0], &hits[len(hits)-1]
	eye := l.floor(first, first.Front) + int64(viewer.eye)
	bottom := l.floor(last, !last.Front) - eye
	top := bottom + int64(target.height)
	bottom, top = bottom<<unitBits, top<<unitBits
	for _, h := range hits {
		n := &l.Lines[h.Line]
		if n.Back.IsNil() {
			return false
		}
		front, back := n.Front.Get(l.base), n.Back.Get(l.base)
		low := int64(max(front.Floor, back.Floor)) - eye
		high := int64(min(front.Ceiling, back.Ceiling)) - eye
		fraction := int64(max(h.Fraction, 1))
		bottom = max(bottom, (low<<(2*unitBits))/fraction)
		top = min(top, (high<<(2*unitBits))/fraction)
		if bottom >= top {
			return false
		}
	}
	return true
}

// floor is the height of the floor on one side of a crossed line; a wall has
// only its front.
func (l *Level) floor(h *Hit, front bool) int64 {
	n := &l.Lines[h.Line]
	if front || n.Back.IsNil() {
		return int64(n.Front.Get(l.base).Floor)
	}
	return int64(n.Back.Get(l.base).Floor)
}
