// Package doomtest makes WAD files for tests: good files, and [Hostile] files, each with the error
// that it causes.
package doomtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// GoodMap returns a minimal map: a room of four walls with a player in it. The offsets below are
// those in a file of only this map.
func GoodMap() []doom.Lump {
	return []doom.Lump{
		{Name: "MAP01", Data: nil},
		{Name: "THINGS", Data: Row(64, 64, 0, 1, 7)}, // at offset 12
		{Name: "LINEDEFS", Data: join( // at 22
			Row(0, 1, 1, 0, 0, 0, 0xffff), Row(1, 2, 1, 0, 0, 1, 0xffff),
			Row(2, 3, 1, 0, 0, 2, 0xffff), Row(3, 0, 1, 0, 0, 3, 0xffff))},
		{Name: "SIDEDEFS", Data: join(side(0), side(0), side(0), side(0))},      // at 78
		{Name: "VERTEXES", Data: Row(0, 0, 0, 512, 512, 512, 512, 0)},           // at 198
		{Name: "SECTORS", Data: Row(0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0)}, // at 214
	} // the table is at 240
}

// OtherMap returns GoodMap with a higher ceiling: another map of the same name.
func OtherMap() []doom.Lump {
	return Set(GoodMap(), "SECTORS", Row(0, 256, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0))
}

// Second renames a map, to be the second in a file.
func Second(lumps []doom.Lump) []doom.Lump {
	lumps[0].Name = "MAP02"
	return lumps
}

// GoodBlockmap returns a BLOCKMAP for GoodMap: five by five cells, which share a list of all lines.
func GoodBlockmap() []byte { return blockmap(5, 5, 0, 0, 1, 2, 3, 0xffff) }

// blockmap returns a BLOCKMAP with one list for all cells.
func blockmap(columns, rows int, list ...int) []byte {
	words := []int{0, 0, columns, rows}
	for range columns * rows {
		words = append(words, 4+columns*rows)
	}
	return Row(append(words, list...)...)
}

// WrongBlockmaps returns BLOCKMAPs that don't agree with GoodMap's lines, or are malformed.
func WrongBlockmaps() map[string][]byte {
	const list = 4 + 25 // its first word
	wrapped := slices.Concat(GoodBlockmap()[:2*list], bytes.Repeat(Row(0xffff), 1<<16), GoodBlockmap()[2*list:])
	lacking := append(GoodBlockmap(), Row(0, 1, 2, 3, 0xffff)...) // line 0 in the corner's cell
	copy(lacking[8:], Row(list+6))
	return map[string][]byte{
		"no header":              Row(0, 0),
		"odd size":               make([]byte, 9),
		"more cells than words":  Row(0, 0, 65535, 65535),
		"no cells":               Row(0, 0, 0, 9),
		"a list beyond the end":  blockmap(5, 5),
		"a list among the cells": append(Row(0, 0, 5, 5, 4), GoodBlockmap()[10:]...),
		"a list without an end":  blockmap(5, 5, 0, 0, 1, 2, 3),
		"a line of a larger map": blockmap(5, 5, 0, 0, 1, 2, 3, 4, 0xffff),
		"offsets that wrap":      wrapped,
		"no line 0":              blockmap(5, 5, 0, 1, 2, 3, 0xffff),
		"no line 3":              blockmap(5, 5, 0, 0, 1, 2, 0xffff),
		"no line 0 in one cell":  lacking,
		"a column less":          blockmap(4, 5, 0, 0, 1, 2, 3, 0xffff),
		"a row less":             blockmap(5, 4, 0, 0, 1, 2, 3, 0xffff),
		"another corner":         append(Row(1, 0), GoodBlockmap()[4:]...),
	}
}

// Row returns 16-bit words as the bytes of a lump.
func Row(values ...int) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint16(out, uint16(v))
	}
	return out
}

func side(sector int) []byte { return Row(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sector) }

func join(rows ...[]byte) (out []byte) {
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// Set replaces the data of a lump, or adds the lump.
func Set(lumps []doom.Lump, name string, data []byte) []doom.Lump {
	for i := range lumps {
		if lumps[i].Name == name {
			lumps[i].Data = data
			return lumps
		}
	}
	return append(lumps, doom.Lump{Name: name, Data: data})
}

func without(lumps []doom.Lump, name string) (rest []doom.Lump) {
	for _, l := range lumps {
		if l.Name != name {
			rest = append(rest, l)
		}
	}
	return rest
}

func poke(file []byte, offset int, value uint32) []byte {
	binary.LittleEndian.PutUint32(file[offset:], value)
	return file
}

// Write writes a file into a temporary folder, which becomes the current folder of the test. Later
// calls in the test write into the same folder, because each Chdir keeps a file open until the end
// of the test.
func Write(t testing.TB, name string, data []byte) {
	t.Helper()
	folder := t.TempDir()
	if current, err := os.Getwd(); err == nil && filepath.Dir(current) == filepath.Dir(folder) {
		folder = current // a folder of this test
	} else {
		t.Chdir(folder)
	}
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
