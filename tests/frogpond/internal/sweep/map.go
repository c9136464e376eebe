package sweep

import (
	"encoding/binary"
	"fmt"
)

// Map is a map as in its file, for the table of expectations.
type Map struct {
	Lines   []Line
	Sectors []Sector
	Things  []Thing
}

// Line is a row of LINEDEFS. Front and Back are sectors; -1 is none.
type Line struct {
	X1, Y1, X2, Y2      int
	Flags, Special, Tag uint16
	Front, Back         int
}

// Sector is a row of SECTORS. Heights are in map units.
type Sector struct {
	Floor, Ceiling int
	Flat           string // of the floor
	Light          int
	Special, Tag   uint16
	lines          []int // the lines that border it, in the file's order
}

// Thing is a row of THINGS. The angle is in degrees, counter-clockwise from east.
type Thing struct {
	X, Y  int
	Angle int
	Kind  uint16
}

// landing is the kind of the thing that marks the place after a teleport.
const landing = 14

const twoSided = 4 // a flag of lines

// Parse reads a map. lump returns the bytes of a lump of the map, by its name.
func Parse(lump func(name string) []byte) (*Map, error) {
	m := &Map{}
	for _, row := range rows(lump("SECTORS"), 26) {
		m.Sectors = append(m.Sectors, Sector{Floor: row.int(0), Ceiling: row.int(2),
			Flat: string(row[4:12]), Light: row.int(20), Special: row.word(22), Tag: row.word(24)})
	}
	for _, row := range rows(lump("THINGS"), 10) {
		m.Things = append(m.Things, Thing{row.int(0), row.int(2), row.int(4), row.word(6)})
	}
	vertexes, sides := rows(lump("VERTEXES"), 4), rows(lump("SIDEDEFS"), 30)
	for i, row := range rows(lump("LINEDEFS"), 14) {
		a, b := int(row.word(0)), int(row.word(2))
		if a >= len(vertexes) || b >= len(vertexes) {
			return nil, fmt.Errorf("line %d: vertexes %d and %d of %d", i, a, b, len(vertexes))
		}
		l := Line{X1: vertexes[a].int(0), Y1: vertexes[a].int(2),
			X2: vertexes[b].int(0), Y2: vertexes[b].int(2),
			Flags: row.word(4), Special: row.word(6), Tag: row.word(8)}
		for at, sector := range map[int]*int{10: &l.Front, 12: &l.Back} {
			if *sector = -1; row.word(at) == 0xffff {
				continue
			}
			if int(row.word(at)) >= len(sides) {
				return nil, fmt.Errorf("line %d: side %d of %d", i, row.word(at), len(sides))
			}
			*sector = int(sides[row.word(at)].word(28))
			if *sector >= len(m.Sectors) {
				return nil, fmt.Errorf("line %d: sector %d of %d", i, *sector, len(m.Sectors))
			}
		}
		m.Lines = append(m.Lines, l)
		if l.Front >= 0 {
			m.Sectors[l.Front].lines = append(m.Sectors[l.Front].lines, i)
		}
		if l.Back >= 0 && l.Back != l.Front {
			m.Sectors[l.Back].lines = append(m.Sectors[l.Back].lines, i)
		}
	}
	return m, nil
}

type row []byte

func (r row) word(at int) uint16 { return binary.LittleEndian.Uint16(r[at:]) }
func (r row) int(at int) int     { return int(int16(r.word(at))) }

func rows(lump []byte, size int) (all []row) {
	for ; len(lump) >= size; lump = lump[size:] {
		all = append(all, lump[:size])
	}
	return all
}

// tagged returns the sectors with a tag. For tag 0 it returns none, because 0 means no tag.
func (m *Map) tagged(tag uint16) (list []int) {
	for i := range m.Sectors {
		if tag != 0 && m.Sectors[i].Tag == tag {
			list = append(list, i)
		}
	}
	return list
}

// beyond returns the sector on the other side of a line, or -1 if the line is a wall or inside the
// sector.
func (m *Map) beyond(line, sector int) int {
	l := &m.Lines[line]
	switch {
	case l.Flags&twoSided == 0 || l.Front == l.Back:
		return -1
	case l.Front == sector:
		return l.Back
	}
	return l.Front
}

// around returns the neighbours of a sector, once for each line between them.
func (m *Map) around(sector int) (list []int) {
	for _, line := range m.Sectors[sector].lines {
		if other := m.beyond(line, sector); other >= 0 {
			list = append(list, other)
		}
	}
	return list
}

// sectorAt returns the sector at a place: the sector on the near side of the nearest line to the
// east. It looks along a ray a quarter of a unit above the place, which can't hit a vertex.
func (m *Map) sectorAt(x, y int) int {
	found, nearest := -1, 0.0
	for i := range m.Lines {
		l := &m.Lines[i]
		if (l.Y1 > y) == (l.Y2 > y) {
			continue // the ray misses the line
		}
		at := float64(l.X1) + (float64(y)+0.25-float64(l.Y1))*float64(l.X2-l.X1)/float64(l.Y2-l.Y1)
		if at < float64(x) || found >= 0 && at >= nearest {
			continue
		}
		nearest = at
		if found = l.Front; l.Y2 > l.Y1 { // the front is on the right of its direction
			found = l.Back
		}
	}
	return found
}

// destination returns the landing in a sector with the tag, or nil.
func (m *Map) destination(tag uint16) *Thing {
	for _, sector := range m.tagged(tag) {
		for i := range m.Things {
			if t := &m.Things[i]; t.Kind == landing && m.sectorAt(t.X, t.Y) == sector {
				return t
			}
		}
	}
	return nil
}
