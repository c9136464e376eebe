// Package doomtest makes WAD files for tests: a good one, and hostile ones with the error that each
// must give.
package doomtest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// GoodMap is the smallest map: a room of four walls with a player in it. As the
// file starts with its lumps, their offsets are easy to tell.
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

// GoodBlockmap suits GoodMap: five by five cells, which share a list of all lines.
func GoodBlockmap() []byte {
	list := 4 + 25
	words := []int{0, 0, 5, 5}
	for range 25 {
		words = append(words, list)
	}
	return Row(append(words, 0, 0, 1, 2, 3, 0xffff)...)
}

// Row is 16-bit words as a lump has them.
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

// without leaves a lump out.
func without(lumps []doom.Lump, name string) (rest []doom.Lump) {
	for _, l := range lumps {
		if l.Name != name {
			rest = append(rest, l)
		}
	}
	return rest
}

// poke writes a 32-bit word into a file.
func poke(file []byte, offset int, value uint32) []byte {
	binary.LittleEndian.PutUint32(file[offset:], value)
	return file
}

// Write puts a file into the test's folder, which becomes the current one.
func Write(t testing.TB, name string, data []byte) {
	t.Helper()
	folder := t.TempDir()
	t.Chdir(folder)
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
