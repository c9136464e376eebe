package doom

import (
	"encoding/binary"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// The types in the region level have no Go pointers: they refer to each other by arena.Ptr and
// arena.Slice, offsets from the region's base. They have no int either, so that their sizes are the
// same everywhere.
type (
	// Vertex is a corner, in map units.
	Vertex struct{ X, Y int16 }

	// Sector is the part of a sector that play changes. Heights are in 16.16, since they move.
	Sector struct {
		Floor, Ceiling int32
		Light          int16
		Special        uint16
		Flat           uint16 // the floor's texture: the first sector of the file with the same one
		Number         uint16 // the index in the level's list
	}

	// Outline is the constant part of a sector: its tag, the lines with the sector on a side, and
	// the bounds of these lines.
	Outline struct {
		Lines    arena.Slice[uint16]
		Min, Max Vertex
		Tag      uint16
		_        [6]byte
	}

	// Line is a wall or a step between two sectors. Its front is on the right, looking along the
	// line; Back is nil for a wall.
	Line struct {
		X, Y, DX, DY        int32 // map units
		Front, Back         arena.Ptr[Sector]
		Flags, Special, Tag uint16
		_                   uint16 // makes 40 bytes also on 32-bit targets
	}

	// Thing is an entry of THINGS: a place and a kind.
	Thing struct {
		X, Y        int16
		Angle, Kind uint16
	}

	// Cell is a square of the blockmap with the lines that pass through it.
	Cell struct{ Lines arena.Slice[uint16] }
)

var (
	vertexMaker  = scope.Plain[Vertex]()
	sectorMaker  = scope.Plain[Sector]()
	outlineMaker = scope.Plain[Outline]()
	lineMaker    = scope.Plain[Line]()
	thingMaker   = scope.Plain[Thing]()
	cellMaker    = scope.Plain[Cell]()
	pointMaker   = scope.Plain[Point]()
	wordMaker    = scope.Plain[uint16]()
	countMaker   = scope.Plain[uint32]()
)

// Level is a loaded map. The struct is a Go value with slices into the budget, which are valid
// until the region is rewound.
type Level struct {
	Map
	Vertexes []Vertex
	Sectors  []Sector
	Outlines []Outline // by the sectors' numbers
	Lines    []Line
	Things   []Thing
	Starts   []Point // where players enter
	Blocks   Blocks

	Sum uint64 // of the lumps' data, to tell maps of one name apart

	Min, Max Point      // the vertexes' bounds; no body leaves them
	Base     arena.Base // the region's, for offsets
}

// Load makes the level of m in s, a scope of the region at base. It reads the map's lumps from
// their file into temporary memory, which is free again when Load returns. It returns a [BadWAD]
// for the first malformed byte. If the region is full, it unwinds to the caller's load.
func (m Map) Load(s scope.Scope, base arena.Base) (Level, error) {
	l := Level{Map: m, Base: base}
	raw, err := m.read(s)
	if err != nil {
		return l, err
	}
	defer raw.temp.Close() // later parts of the caller's load need the room
	l.Sum = raw.sum()
	l.readVertexes(s, &raw)
	l.readSectors(s, &raw)
	if err := l.readLines(s, &raw); err != nil {
		return l, err
	}
	l.readThings(s, &raw)
	l.readBlocks(s, &raw)
	return l, nil
}

// IsOf returns an error if sum, from a save or a record, is not the sum of this level.
func (l *Level) IsOf(sum uint64) error {
	if sum == l.Sum {
		return nil
	}
	return fmt.Errorf("it is of a map %s of sum %#016x, and that in %s has sum %#016x", l.Name, sum,
		l.WAD.Name, l.Sum)
}

func (l *Level) readVertexes(s scope.Scope, raw *rawMap) {
	l.Vertexes = vertexMaker.Slice(s, raw.count(vertexes))
	l.Min, l.Max = Point{1<<31 - 1, 1<<31 - 1}, Point{-1 << 31, -1 << 31}
	for i := range l.Vertexes {
		v := Vertex{raw.int16(vertexes, i, 0), raw.int16(vertexes, i, 1)}
		l.Vertexes[i] = v
		p := v.point()
		l.Min = Point{min(l.Min.X, p.X), min(l.Min.Y, p.Y)}
		l.Max = Point{max(l.Max.X, p.X), max(l.Max.Y, p.Y)}
	}
}

func (v Vertex) point() Point { return Point{int32(v.X) << UnitBits, int32(v.Y) << UnitBits} }

func (l *Level) readSectors(s scope.Scope, raw *rawMap) {
	l.Sectors = sectorMaker.Slice(s, raw.count(sectors))
	l.Outlines = outlineMaker.Slice(s, len(l.Sectors))
	flats := map[uint64]uint16{} // the first sector with each flat
	for i := range l.Sectors {
		name := binary.LittleEndian.Uint64(raw.bytes[sectors][i*rowSizes[sectors]+4:])
		flat, known := flats[name]
		if !known {
			flat = uint16(i)
			flats[name] = flat
		}
		l.Outlines[i].Tag = raw.word(sectors, i, 12)
		l.Sectors[i] = Sector{
			Floor:   int32(raw.int16(sectors, i, 0)) << UnitBits,
			Ceiling: int32(raw.int16(sectors, i, 1)) << UnitBits,
			Light:   raw.int16(sectors, i, 10),
			Special: raw.word(sectors, i, 11),
			Flat:    flat,
			Number:  uint16(i),
		}
	}
}

// PlaceSectors copies the sectors to s and makes the lines point there, so that the caller can put
// all changing data next to each other. The sectors that Load made stay as in the file.
func (l *Level) PlaceSectors(s scope.Scope) {
	placed := sectorMaker.Slice(s, len(l.Sectors))
	copy(placed, l.Sectors)
	l.Sectors = placed
	for i := range l.Lines {
		n := &l.Lines[i]
		n.Front = arena.PtrTo(l.Base, &placed[n.Front.Get(l.Base).Number])
		if !n.Back.IsNil() {
			n.Back = arena.PtrTo(l.Base, &placed[n.Back.Get(l.Base).Number])
		}
	}
}

// Outline returns the constant part of a sector.
func (l *Level) Outline(s *Sector) *Outline { return &l.Outlines[s.Number] }

// LinesOf returns the numbers of a sector's lines.
func (l *Level) LinesOf(s *Sector) []uint16 { return l.Outlines[s.Number].Lines.Get(l.Base) }

// readLines reads LINEDEFS. From SIDEDEFS it takes only the sectors of the lines.
func (l *Level) readLines(s scope.Scope, raw *rawMap) error {
	for i := range raw.count(sidedefs) {
		if sector := raw.word(sidedefs, i, 14); int(sector) >= len(l.Sectors) {
			return raw.badRow(sidedefs, i*30+28, "side %d: sector %d of %d", i, sector, len(l.Sectors))
		}
	}
	l.Lines = lineMaker.Slice(s, raw.count(linedefs))
	for i := range l.Lines {
		for end := range 2 {
			if v := raw.word(linedefs, i, end); int(v) >= len(l.Vertexes) {
				return raw.badRow(linedefs, i*14+2*end, "line %d: vertex %d of %d", i, v, len(l.Vertexes))
			}
		}
		v1, v2 := l.Vertexes[raw.word(linedefs, i, 0)], l.Vertexes[raw.word(linedefs, i, 1)]
		line := Line{X: int32(v1.X), Y: int32(v1.Y), Flags: raw.word(linedefs, i, 2),
			Special: raw.word(linedefs, i, 3), Tag: raw.word(linedefs, i, 4)}
		line.DX, line.DY = int32(v2.X)-line.X, int32(v2.Y)-line.Y
		var err error
		if line.Front, err = l.sectorOf(raw, i, 5); err != nil {
			return err
		}
		if line.Back, err = l.sectorOf(raw, i, 6); err != nil {
			return err
		}
		l.Lines[i] = line
	}
	l.listLines(s)
	return nil
}

// listLines lists each sector's lines, in two passes: the first counts, the second fills.
func (l *Level) listLines(s scope.Scope) {
	temp := s.Temp(len(l.Sectors) * countSize)
	defer temp.Close()
	counts := countMaker.Slice(temp, len(l.Sectors))
	total := 0
	for i := range l.Lines {
		for _, sector := range l.sidesOf(&l.Lines[i]) {
			if sector != nil {
				counts[sector.Number]++
				total++
			}
		}
	}
	words := wordMaker.Slice(s, total)
	for i := range l.Sectors {
		o := &l.Outlines[i]
		o.Lines = arena.SliceOf(l.Base, words[:counts[i]])
		o.Min, o.Max = Vertex{1<<15 - 1, 1<<15 - 1}, Vertex{-1 << 15, -1 << 15}
		words, counts[i] = words[counts[i]:], 0
	}
	for i := range l.Lines {
		n := &l.Lines[i]
		for _, sector := range l.sidesOf(n) {
			if sector == nil {
				continue
			}
			o := l.Outline(sector)
			o.Lines.Get(l.Base)[counts[sector.Number]] = uint16(i)
			counts[sector.Number]++
			o.Min.X = min(o.Min.X, int16(n.X), int16(n.X+n.DX))
			o.Min.Y = min(o.Min.Y, int16(n.Y), int16(n.Y+n.DY))
			o.Max.X = max(o.Max.X, int16(n.X), int16(n.X+n.DX))
			o.Max.Y = max(o.Max.Y, int16(n.Y), int16(n.Y+n.DY))
		}
	}
}

// sidesOf returns the sectors on the sides of a line, each once.
func (l *Level) sidesOf(n *Line) (sides [2]*Sector) {
	sides[0] = n.Front.Get(l.Base)
	if !n.Back.IsNil() && n.Back != n.Front {
		sides[1] = n.Back.Get(l.Base)
	}
	return sides
}

// sectorOf returns the sector on a side of a line. Only the left side may be missing.
func (l *Level) sectorOf(raw *rawMap, line, word int) (arena.Ptr[Sector], error) {
	side := raw.word(linedefs, line, word)
	if side == 0xffff && word == 6 {
		return arena.Ptr[Sector]{}, nil
	}
	if int(side) >= raw.count(sidedefs) {
		return arena.Ptr[Sector]{}, raw.badRow(linedefs, line*14+2*word, "line %d: side %d of %d",
			line, side, raw.count(sidedefs))
	}
	sector := raw.word(sidedefs, int(side), 14)
	return arena.PtrTo(l.Base, &l.Sectors[sector]), nil
}

// readThings reads the things and lists the starts: the players' and deathmatch starts. Without
// starts, each thing is one; without things, the first vertex is.
func (l *Level) readThings(s scope.Scope, raw *rawMap) {
	l.Things = thingMaker.Slice(s, raw.count(things))
	starts := 0
	for i := range l.Things {
		t := Thing{raw.int16(things, i, 0), raw.int16(things, i, 1), raw.word(things, i, 2),
			raw.word(things, i, 3)}
		l.Things[i] = t
		if t.isStart() {
			starts++
		}
	}
	all := starts == 0
	if all {
		starts = len(l.Things)
	}
	l.Starts = pointMaker.Slice(s, max(starts, 1))
	l.Starts[0] = l.Vertexes[0].point()
	n := 0
	for i := range l.Things {
		if t := &l.Things[i]; all || t.isStart() {
			l.Starts[n] = l.Inside(t.Point())
			n++
		}
	}
}

// Point returns the thing's place.
func (t *Thing) Point() Point { return Vertex{t.X, t.Y}.point() }

func (t *Thing) isStart() bool { return 1 <= t.Kind && t.Kind <= 4 || t.Kind == 11 }

// Inside returns the point nearest to p within the level's bounds.
func (l *Level) Inside(p Point) Point {
	return Point{min(max(p.X, l.Min.X), l.Max.X), min(max(p.Y, l.Min.Y), l.Max.Y)}
}

// Ends returns the two end points of a line.
func (n *Line) Ends() (from, to Point) {
	return Point{n.X << UnitBits, n.Y << UnitBits},
		Point{(n.X + n.DX) << UnitBits, (n.Y + n.DY) << UnitBits}
}
