package sweep

import "math"

// This file has teleports, and floors that carry bodies.

// arrival is the place of a body after a teleport, with tolerances.
type arrival struct {
	x, y, angle int
	near, off   int   // tolerances in units and degrees; a body may have only sixteen directions
	out         *Line // the body stands in front of it
}

func (a *arrival) has(x, y int) bool {
	return max(x-a.x, a.x-x, y-a.y, a.y-y) <= a.near
}

// toThing returns the landing in a sector with the line's tag, or nil.
func toThing(m *Map, line int) *arrival {
	to := m.destination(m.Lines[line].Tag)
	if to == nil {
		return nil
	}
	return &arrival{x: to.X, y: to.Y, angle: to.Angle, off: 12}
}

// toLine returns the arrival at the first other two-sided line with the tag, or nil. A body that
// crosses a line to its back leaves the other line to its front. It keeps its distance from the
// opposite end, and turns by the angle between the lines. In a sweep the body crosses at the
// middle, looking east.
func toLine(m *Map, line int) *arrival {
	in := &m.Lines[line]
	for i := range m.Lines {
		out := &m.Lines[i]
		if i != line && out.Tag == in.Tag && out.Back >= 0 {
			return &arrival{x: (out.X1 + out.X2) / 2, y: (out.Y1 + out.Y2) / 2,
				angle: out.angle() - in.angle() + 180, near: 4, off: 24, out: out}
		}
	}
	return nil
}

func (l *Line) angle() int {
	return int(math.Round(math.Atan2(float64(l.Y2-l.Y1), float64(l.X2-l.X1)) * 180 / math.Pi))
}

// behind reports whether a place is more than a unit behind a line, whose front is on its right.
func (l *Line) behind(x, y int) bool {
	dx, dy := float64(l.X2-l.X1), float64(l.Y2-l.Y1)
	return dx*float64(y-l.Y1)-dy*float64(x-l.X1) > math.Hypot(dx, dy)
}

// carried returns how far a sector carries a body in a tick: a 32nd of each line with its tag.
func (m *Map) carried(sector int) (dx, dy int32) {
	for i := range m.Lines {
		l := &m.Lines[i]
		if rules[l.Special].carries && l.Tag != 0 && l.Tag == m.Sectors[sector].Tag {
			dx += int32((l.X2 - l.X1) * (unit / 32))
			dy += int32((l.Y2 - l.Y1) * (unit / 32))
		}
	}
	return dx, dy
}

// middle returns the middle of a sector's lines, and whether it is inside the sector.
func (m *Map) middle(sector int) (x, y int, inside bool) {
	if len(m.Sectors[sector].lines) == 0 {
		return 0, 0, false
	}
	west, east, south, north := math.MaxInt, math.MinInt, math.MaxInt, math.MinInt
	for _, line := range m.Sectors[sector].lines {
		l := &m.Lines[line]
		west, east = min(west, l.X1, l.X2), max(east, l.X1, l.X2)
		south, north = min(south, l.Y1, l.Y2), max(north, l.Y1, l.Y2)
	}
	x, y = (west+east)/2, (south+north)/2
	return x, y, m.sectorAt(x, y) == sector
}

// open reports whether a body can go far units from a place in each direction.
func (m *Map) open(x, y, far int) bool {
	const radius, height, step = 16, 56, 24
	far += radius
	for i := range m.Lines {
		l := &m.Lines[i]
		if max(l.X1, l.X2) < x-far || min(l.X1, l.X2) > x+far ||
			max(l.Y1, l.Y2) < y-far || min(l.Y1, l.Y2) > y+far {
			continue
		}
		if l.Back < 0 {
			return false
		}
		a, b := &m.Sectors[l.Front], &m.Sectors[l.Back]
		if max(a.Floor-b.Floor, b.Floor-a.Floor) > step ||
			min(a.Ceiling, b.Ceiling)-max(a.Floor, b.Floor) < height {
			return false
		}
	}
	return true
}
