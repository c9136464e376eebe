package doom

import (
	"encoding/binary"
	"fmt"
)

// The built-in levels have rooms in rows and columns, with doors between neighbours and a pillar in
// some rooms. They are made as a WAD file, so that the same code reads them.
const (
	builtinMaps = 12  // more than ten, so that a run rebuilds the systems once
	roomUnits   = 384 // from wall to wall
	doorUnits   = 96
)

// BuiltinWAD returns a WAD file with the built-in levels of a seed.
func BuiltinWAD(seed uint64) []byte {
	var lumps []Lump
	for i := range builtinMaps {
		r := Random(seed, uint32(i), 0x3ad)
		p := pond{seed: r, columns: 3 + int(r%4), rows: 2 + int(r>>8%4)}
		p.build()
		lumps = append(lumps, Lump{fmt.Sprintf("MAP%02d", i+1), nil}, Lump{"THINGS", p.things},
			Lump{"LINEDEFS", p.lines}, Lump{"SIDEDEFS", p.sides}, Lump{"VERTEXES", p.vertexes},
			Lump{"SECTORS", p.sectors})
	}
	return MakeWAD(lumps)
}

// pond is a level under construction. Its lumps are in the file's format.
type pond struct {
	seed                                    uint64
	columns, rows                           int
	things, lines, sides, vertexes, sectors []byte
}

func appendWords(to *[]byte, values ...int) int {
	at := len(*to)
	for _, v := range values {
		*to = binary.LittleEndian.AppendUint16(*to, uint16(v))
	}
	return at
}

func (p *pond) build() {
	for room := range p.columns * p.rows {
		r := Random(p.seed, uint32(room), 1)
		floor := int(r%4) * 8
		appendWords(&p.sectors, floor, floor+128+int(r>>8%4)*16, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0)
	}
	for row := range p.rows {
		for column := range p.columns {
			p.room(column, row)
		}
	}
}

// room draws a room's walls, clockwise so that its sector is on their right.
func (p *pond) room(column, row int) {
	x, y := column*roomUnits, row*roomUnits
	const u = roomUnits
	p.wall(column, row, column-1, row, x, y, x, y+u)
	p.wall(column, row, column, row+1, x, y+u, x+u, y+u)
	p.wall(column, row, column+1, row, x+u, y+u, x+u, y)
	p.wall(column, row, column, row-1, x+u, y, x, y)
	r := Random(p.seed, uint32(p.sector(column, row)), 2)
	kind := 3001 // an item; only its count matters
	if column == row {
		kind = 1 + column%4 // a player's start
	}
	appendWords(&p.things, x+64, y+64, 0, kind, 7)
	for i := range 4 + int(r%5) {
		appendWords(&p.things, x+96+i*16, y+64, 0, 2014, 7)
	}
	if r>>8%2 == 0 {
		s, a, b := p.sector(column, row), u/2-32, u/2+32
		p.line(s, -1, x+a, y+a, x+b, y+a)
		p.line(s, -1, x+b, y+a, x+b, y+b)
		p.line(s, -1, x+b, y+b, x+a, y+b)
		p.line(s, -1, x+a, y+b, x+a, y+a)
	}
}

func (p *pond) sector(column, row int) int { return row*p.columns + column }

// wall draws one wall of a room, with a door if it has a neighbour. The door belongs to both rooms;
// the room below or to the left draws it.
func (p *pond) wall(column, row, column2, row2, x1, y1, x2, y2 int) {
	here := p.sector(column, row)
	if column2 < 0 || row2 < 0 || column2 >= p.columns || row2 >= p.rows {
		p.line(here, -1, x1, y1, x2, y2)
		return
	}
	// The door is in the middle, so it is at the same place from both sides.
	half := (roomUnits - doorUnits) / 2
	dx, dy := (x2-x1)/roomUnits, (y2-y1)/roomUnits
	ax, ay, bx, by := x1+dx*half, y1+dy*half, x2-dx*half, y2-dy*half
	p.line(here, -1, x1, y1, ax, ay)
	p.line(here, -1, bx, by, x2, y2)
	if there := p.sector(column2, row2); there > here {
		p.line(here, there, ax, ay, bx, by)
	}
}

// line adds a line, its two vertexes and its sides; back is -1 for a wall.
func (p *pond) line(front, back, x1, y1, x2, y2 int) {
	v := appendWords(&p.vertexes, x1, y1, x2, y2) / 4
	side := appendWords(&p.sides, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, front) / 30
	flags, left := 1, 0xffff
	if back >= 0 {
		left = appendWords(&p.sides, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, back) / 30
		flags = 4
	}
	appendWords(&p.lines, v, v+1, flags, 0, 0, side, left)
}
