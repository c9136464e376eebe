package doom

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// A map is a mark named ExMy or MAPxx and the lumps that follow it. The server reads five of them
// and, if present, the BLOCKMAP. It skips SEGS, SSECTORS, NODES and REJECT, which are for drawing
// and a faster sight check.
const (
	things = iota
	linedefs
	sidedefs
	vertexes
	sectors
	blockmap
	lumpKinds // the number of kinds
)

var lumpNames = []string{"THINGS", "LINEDEFS", "SIDEDEFS", "VERTEXES", "SECTORS", "BLOCKMAP",
	"SEGS", "SSECTORS", "NODES", "REJECT", "BEHAVIOR", "SCRIPTS", "TEXTMAP", "ZNODES", "DIALOGUE",
	"ENDMAP"}

// rowSizes are the sizes of one element, in bytes. BLOCKMAP is counted in words.
var rowSizes = [lumpKinds]int{10, 14, 30, 4, 26, 2}

var mapName = regexp.MustCompile(`^(E[0-9]M[0-9]|MAP[0-9][0-9])$`)

// Map is a map in a WAD: the lumps after a mark in the WAD's table.
type Map struct {
	Name     string
	WAD      *WAD
	Replaces *Map // the map of the same name in an earlier WAD, or nil
	mark     int
}

// Replaced returns lines for people: for each WAD, the maps that it replaces in each earlier WAD.
func Replaced(maps []Map) (lines []string) {
	type pair struct{ later, earlier *WAD }
	var pairs []pair
	names := map[pair][]string{}
	for i := range maps {
		for old := maps[i].Replaces; old != nil; old = old.Replaces {
			p := pair{maps[i].WAD, old.WAD}
			if names[p] == nil {
				pairs = append(pairs, p)
			}
			names[p] = append(names[p], maps[i].Name)
		}
	}
	for _, p := range pairs {
		lines = append(lines, fmt.Sprintf("%s replaces %s of %s", p.later.Name, strings.Join(names[p], ", "),
			p.earlier.Name))
	}
	return lines
}

func (e *Entry) isMap() bool { return mapName.MatchString(e.name()) }

func (e *Entry) isMapLump() bool { return slices.Contains(lumpNames, e.name()) }

// maps returns the maps of a WAD in the order of the file. Of two maps with one name the later
// counts, as in the game.
func (w *WAD) maps() []Map {
	var list []Map
	for i := range w.Entries {
		if !w.Entries[i].isMap() {
			continue
		}
		m := Map{Name: w.Entries[i].name(), WAD: w, mark: i}
		list = slices.DeleteFunc(list, func(old Map) bool { return old.Name == m.Name })
		list = append(list, m)
	}
	return list
}

// bad makes the error for a byte of one of the map's lumps.
func (m Map) bad(lump string, offset int64, format string, args ...any) error {
	return &BadWAD{File: m.WAD.Name, Map: m.Name, Lump: lump, Offset: offset,
		Reason: fmt.Sprintf(format, args...)}
}

// lumps finds the map's lumps. An absent kind stays nil.
func (m Map) lumps() (found [lumpKinds]*Entry, err error) {
	mark := &m.WAD.Entries[m.mark]
	for i := m.mark + 1; i < len(m.WAD.Entries); i++ {
		e := &m.WAD.Entries[i]
		kind := slices.Index(lumpNames, e.name())
		switch {
		case kind < 0:
			i = len(m.WAD.Entries) // the map ends here
		case e.name() == "BEHAVIOR" || e.name() == "TEXTMAP":
			return found, m.bad(e.name(), int64(e.Offset),
				"the map is in the Hexen or UDMF format; only Doom's is read")
		case kind < lumpKinds && found[kind] != nil:
			return found, m.bad(e.name(), int64(e.Offset), "the map has this lump twice")
		case kind < lumpKinds:
			found[kind] = e
		}
	}
	for kind, e := range found[:blockmap] {
		if e == nil {
			return found, m.bad(lumpNames[kind], int64(mark.Offset), "the map has no such lump")
		}
	}
	return found, nil
}

// Lump returns one of the map's lumps by its name, except BLOCKMAP. It allocates on the Go heap, so
// it is for tools. It checks the size as Load does: at most 65535 elements.
func (m Map) Lump(name string) ([]byte, error) {
	found, err := m.lumps()
	if err != nil {
		return nil, err
	}
	raw := rawMap{Map: m, entry: found}
	for kind, e := range found[:blockmap] {
		if e != nil && e.name() == name {
			if err := raw.checkSize(kind); err != nil {
				return nil, err
			}
			lump := make([]byte, e.Size)
			_, err := m.WAD.file.ReadAt(lump, int64(e.Offset))
			return lump, err
		}
	}
	return nil, m.bad(name, 0, "the map has no such lump")
}

// rawMap holds the bytes of a map's lumps during the load.
type rawMap struct {
	Map
	entry [lumpKinds]*Entry
	bytes [lumpKinds][]byte
	temp  scope.Scope // owns the bytes
}

// read reads the lumps into temporary memory of s, as large as the lumps.
func (m Map) read(s scope.Scope) (raw rawMap, err error) {
	raw.Map = m
	if raw.entry, err = m.lumps(); err != nil {
		return raw, err
	}
	size := 0
	for kind, e := range raw.entry {
		if e == nil {
			continue
		}
		if err := raw.checkSize(kind); err != nil {
			return raw, err
		}
		size += int(e.Size)
	}
	raw.temp = s.Temp(size)
	for kind, e := range raw.entry {
		if e == nil {
			continue
		}
		raw.bytes[kind], err = scope.ReadAt(raw.temp, m.WAD.file, int64(e.Offset), int(e.Size))
		if err != nil {
			return raw, raw.badRow(kind, 0, "%v", err)
		}
	}
	return raw, nil
}

// checkSize checks a lump's size before memory is allocated for it.
func (r *rawMap) checkSize(kind int) error {
	size := int(r.entry[kind].Size)
	count := size / rowSizes[kind]
	switch {
	case kind == blockmap: // a malformed one is replaced by a built one
		return nil
	case size%rowSizes[kind] != 0:
		return r.badRow(kind, 0, "%d bytes don't divide by %d", size, rowSizes[kind])
	case count > 65535:
		return r.badRow(kind, 0, "%d elements; the format counts to 65535", count)
	case count == 0 && (kind == vertexes || kind == linedefs || kind == sectors):
		return r.badRow(kind, 0, "is empty")
	}
	return nil
}

// sum returns a hash of all lumps that are read. A game on the map depends on no other data of the
// file.
func (r *rawMap) sum() uint64 {
	h := HashStart
	for _, lump := range r.bytes {
		h.Add(uint64(len(lump)))
		h.AddBytes(lump)
	}
	return uint64(h)
}

func (r *rawMap) count(kind int) int { return len(r.bytes[kind]) / rowSizes[kind] }

func (r *rawMap) word(kind, row, i int) uint16 {
	return binary.LittleEndian.Uint16(r.bytes[kind][row*rowSizes[kind]+2*i:])
}

func (r *rawMap) int16(kind, row, i int) int16 { return int16(r.word(kind, row, i)) }

func (r *rawMap) badRow(kind, offset int, format string, args ...any) error {
	return r.bad(lumpNames[kind], int64(r.entry[kind].Offset)+int64(offset), format, args...)
}
