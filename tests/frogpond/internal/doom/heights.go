package doom

// This file has the queries for effects: the sectors of a tag, the neighbours of a sector, and the
// lines that a way crosses. They don't change the level.

// Flags of a line.
const (
	Impassable = 1 // the line stops every body
	TwoSided   = 4 // bodies and looks pass the line; sectors are neighbours only at such lines
)

// The neighbours' heights of a sector without neighbours.
const (
	noFloor   = -32000 << UnitBits
	noCeiling = 32000 << UnitBits
)

// NextTagged returns the number of the first sector with a tag after another sector, or -1. Pass -1
// to begin.
func (l *Level) NextTagged(tag uint16, after int) int {
	for i := after + 1; i < len(l.Outlines); i++ {
		if l.Outlines[i].Tag == tag {
			return i
		}
	}
	return -1
}

// Neighbour returns the sector on the other side of a sector's line, or nil.
func (l *Level) Neighbour(s *Sector, line uint16) *Sector {
	n := &l.Lines[line]
	if n.Flags&TwoSided == 0 || n.Back.IsNil() {
		return nil
	}
	front, back := n.Front.Get(l.Base), n.Back.Get(l.Base)
	switch {
	case front == back:
		return nil // a line within the sector
	case front == s:
		return back
	}
	return front
}

// Height returns the height that a target means for a sector, without the effect's amount.
func (l *Level) Height(s *Sector, target Target) int32 {
	h := s.Floor
	switch target {
	case HighestFloor:
		h = noFloor
	case NextFloor, LowestCeiling:
		h = noCeiling
	case NextLowerFloor, HighestCeiling:
		h = noFloor
	}
	for _, line := range l.LinesOf(s) {
		n := l.Neighbour(s, line)
		if n == nil {
			continue
		}
		switch {
		case target == LowestFloor:
			h = min(h, n.Floor)
		case target == HighestFloor:
			h = max(h, n.Floor)
		case target == NextFloor && n.Floor > s.Floor:
			h = min(h, n.Floor)
		case target == NextLowerFloor && n.Floor < s.Floor:
			h = max(h, n.Floor)
		case target == LowestCeiling:
			h = min(h, n.Ceiling)
		case target == HighestCeiling:
			h = max(h, n.Ceiling)
		}
	}
	if target == NextFloor && h == noCeiling || target == NextLowerFloor && h == noFloor {
		return s.Floor // no neighbour matches
	}
	return h
}

// Goal returns the height to which an effect moves a sector's floor or ceiling.
func (l *Level) Goal(s *Sector, e *Effect) int32 {
	h := l.Height(s, e.Target)
	amount := int64(e.Amount) << UnitBits
	switch {
	case e.Action == MoveFloor && e.Target == LowestCeiling:
		h = min(h, s.Ceiling)
	case e.Action == MoveFloor && e.Target == HighestFloor && h == s.Floor:
		amount = 0
	}
	return Clamp(int64(h) + amount)
}

// LightLevel returns the light that an effect gives a sector.
func (l *Level) LightLevel(s *Sector, e *Effect) int16 {
	switch e.Target {
	case DarkestLight:
		return l.Darkest(s)
	case BrightestLight:
		light := int16(0)
		for _, line := range l.LinesOf(s) {
			if n := l.Neighbour(s, line); n != nil {
				light = max(light, n.Light)
			}
		}
		return light
	}
	return int16(e.Amount)
}

// Darkest returns the lowest light of a sector and its neighbours.
func (l *Level) Darkest(s *Sector) int16 {
	light := s.Light
	for _, line := range l.LinesOf(s) {
		if n := l.Neighbour(s, line); n != nil {
			light = min(light, n.Light)
		}
	}
	return light
}

// Model returns the first neighbour with a floor at a height, or nil.
func (l *Level) Model(s *Sector, floor int32) *Sector {
	for _, line := range l.LinesOf(s) {
		if n := l.Neighbour(s, line); n != nil && n.Floor == floor {
			return n
		}
	}
	return nil
}

// NextStep returns the sector to which stairs rise after s, or nil at the last step. It has the
// flat, and is behind a line whose front is s. NextStep leaves out sectors for which skip returns
// true.
func (l *Level) NextStep(s *Sector, flat uint16, skip func(*Sector) bool) *Sector {
	for _, line := range l.LinesOf(s) {
		n := &l.Lines[line]
		if n.Flags&TwoSided == 0 || n.Back.IsNil() || n.Front.Get(l.Base) != s {
			continue
		}
		if next := n.Back.Get(l.Base); next.Flat == flat && !skip(next) {
			return next
		}
	}
	return nil
}

// Ring returns the sector around a pillar, and the sector around that ring, which sets the height.
// ring is nil if the map has none.
func (l *Level) Ring(pillar *Sector) (ring, around *Sector) {
	lines := l.LinesOf(pillar)
	if len(lines) == 0 {
		return nil, nil
	}
	if ring = l.Neighbour(pillar, lines[0]); ring == nil {
		return nil, nil
	}
	for _, line := range l.LinesOf(ring) {
		n := &l.Lines[line]
		if n.Back.IsNil() {
			continue
		}
		if around = n.Back.Get(l.Base); around != pillar && around != ring {
			return ring, around
		}
	}
	return nil, nil
}

// Crossing is a line that a way crosses.
type Crossing struct {
	Fraction int32 // of the way, 16.16
	Line     uint16
	Front    bool // crossed from the front to the back
}

// Crossings fills list with the lines that a way crosses, nearest first, as many as fit. It is
// exact: a body that passes a corner crosses one of the corner's lines, or both, or neither, and
// always gets to the right side. The points must be within 1024 units of each other, which bounds
// the products.
func (l *Level) Crossings(list []Crossing, from, to Point) []Crossing {
	n := 0
	walk := l.Blocks.Along(from, to)
	for cell, more := walk.Next(); more; cell, more = walk.Next() {
		for _, i := range l.Near(cell) {
			c, crosses := l.Lines[i].crossing(from, to)
			if !crosses || listed(list[:n], i) {
				continue
			}
			c.Line = i
			k := n
			if n < len(list) {
				n++
			} else if k--; !c.Before(&list[k]) {
				continue
			}
			for ; k > 0 && c.Before(&list[k-1]); k-- {
				list[k] = list[k-1]
			}
			list[k] = c
		}
	}
	return list[:n]
}

// Before reports whether c comes before d; at the same place the line with the lower number is
// first.
func (c *Crossing) Before(d *Crossing) bool {
	return c.Fraction < d.Fraction || c.Fraction == d.Fraction && c.Line < d.Line
}

// listed reports whether a line is in the list. A line may come again, because each cell that it
// passes has it.
func listed(list []Crossing, line uint16) bool {
	for i := range list {
		if list[i].Line == line {
			return true
		}
	}
	return false
}

// Side returns the distance of p to the left of the line (its back), times the line's length.
func (n *Line) Side(p Point) int64 {
	x, y := int64(p.X)-int64(n.X)<<UnitBits, int64(p.Y)-int64(n.Y)<<UnitBits
	return int64(n.DX)*y - int64(n.DY)*x
}

// crossing reports whether and where a way crosses the line. It is exact at the line's ends, unlike
// package game's traces, which drop 8 bits. Its fraction drops 12 bits of the distances, and that
// of the traces drops none.
func (n *Line) crossing(from, to Point) (Crossing, bool) {
	before, after := n.Side(from), n.Side(to)
	if (before > 0) == (after > 0) {
		return Crossing{}, false
	}
	dx, dy := int64(to.X)-int64(from.X), int64(to.Y)-int64(from.Y)
	a, b := n.Ends()
	left := dx*(int64(a.Y)-int64(from.Y))-dy*(int64(a.X)-int64(from.X)) > 0
	right := dx*(int64(b.Y)-int64(from.Y))-dy*(int64(b.X)-int64(from.X)) > 0
	if left == right {
		return Crossing{}, false
	}
	// A line is at most 2^17 long and a point 2^33 away. Dropping 12 bits leaves enough
	// bits for the fraction.
	before, after = before>>12, after>>12
	if before == after {
		return Crossing{Front: before <= 0}, true
	}
	fraction := (before << UnitBits) / (before - after)
	return Crossing{Fraction: int32(fraction), Front: n.Side(from) <= 0}, true
}

// SectorAt returns the sector at a point: the sector on the near side of the first line to the
// east. It may be nil outside of the map, and where the blockmap omits lines.
func (l *Level) SectorAt(p Point) *Sector {
	b := &l.Blocks
	x, y := b.Relative(p)
	column, row := max(x>>CellBits, 0), y>>CellBits
	if row < 0 || row >= int64(b.Rows) {
		return nil
	}
	best, nearest := (*Line)(nil), int64(1<<62)
	for ; column < int64(b.Columns); column++ {
		for _, i := range l.Near(int(row)*b.Columns + int(column)) {
			n := &l.Lines[i]
			from, to := n.Ends()
			if (from.Y > p.Y) == (to.Y > p.Y) {
				continue
			}
			at := int64(from.X) + int64(n.DX)*(int64(p.Y)-int64(from.Y))/int64(n.DY)
			side := n.Side(p)
			east := (side > 0) == (n.DY > 0) && side != 0
			if east && (at < nearest || at == nearest && n.leansWest(best)) {
				best, nearest = n, at
			}
		}
		if best != nil && (nearest>>8-int64(b.X)<<8)>>CellBits <= column {
			break
		}
	}
	switch {
	case best == nil:
		return nil
	case best.DY < 0: // p is on the line's right
		return best.Front.Get(l.Base)
	case best.Back.IsNil():
		return nil
	}
	return best.Back.Get(l.Base)
}

// leansWest reports which of two lines that touch at the point's height, or south of it, is nearer
// above.
func (n *Line) leansWest(m *Line) bool {
	a, b := int64(n.DX)*int64(m.DY), int64(m.DX)*int64(n.DY)
	if (n.DY < 0) != (m.DY < 0) {
		return a > b
	}
	return a < b
}

// Along returns the place of a point along the line, from 0 to 1 in 16.16.
func (n *Line) Along(p Point) int32 {
	dx, dy := int64(n.DX), int64(n.DY)
	length := dx*dx + dy*dy
	if length == 0 {
		return 0
	}
	at := dx*(int64(p.X)-int64(n.X)<<UnitBits) + dy*(int64(p.Y)-int64(n.Y)<<UnitBits)
	return int32(min(max(at/length, 0), 1<<UnitBits))
}

// At returns the point at a fraction of the line, in 16.16.
func (n *Line) At(fraction int32) Point {
	from, _ := n.Ends()
	return Point{Clamp(int64(from.X) + int64(n.DX)*int64(fraction)),
		Clamp(int64(from.Y) + int64(n.DY)*int64(fraction))}
}

// Heading returns the direction of the line, one of 16.
func (n *Line) Heading() uint32 {
	from, to := n.Ends()
	return from.Toward(to)
}
