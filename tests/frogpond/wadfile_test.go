package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// lump is a lump of a test's WAD file.
type lump struct {
	name string
	data []byte
}

// goodMap is the smallest map: a room of four walls with a player in it. As the
// file starts with its lumps, their offsets are easy to tell.
func goodMap() []lump {
	return []lump{
		{"MAP01", nil},
		{"THINGS", row(64, 64, 0, 1, 7)}, // at offset 12
		{"LINEDEFS", join(row(0, 1, 1, 0, 0, 0, 0xffff), row(1, 2, 1, 0, 0, 1, 0xffff), // at 22
			row(2, 3, 1, 0, 0, 2, 0xffff), row(3, 0, 1, 0, 0, 3, 0xffff))},
		{"SIDEDEFS", join(side(0), side(0), side(0), side(0))},      // at 78
		{"VERTEXES", row(0, 0, 0, 512, 512, 512, 512, 0)},           // at 198
		{"SECTORS", row(0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0)}, // at 214
	} // the table is at 240
}

// goodBlockmap suits goodMap: five by five cells, which share a list of all lines.
func goodBlockmap() []byte {
	list := 4 + 25
	words := []int{0, 0, 5, 5}
	for range 25 {
		words = append(words, list)
	}
	return row(append(words, 0, 0, 1, 2, 3, 0xffff)...)
}

func row(values ...int) (out []byte) {
	appendWords(&out, values...)
	return out
}

func side(sector int) []byte { return row(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sector) }

func join(rows ...[]byte) (out []byte) {
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

func wadFile(lumps []lump) []byte {
	f := &wadMaker{out: append([]byte("PWAD"), make([]byte, 8)...)}
	for _, l := range lumps {
		f.lump(l.name, l.data)
	}
	return f.finish()
}

// set replaces the data of a lump, or adds the lump.
func set(lumps []lump, name string, data []byte) []lump {
	for i := range lumps {
		if lumps[i].name == name {
			lumps[i].data = data
			return lumps
		}
	}
	return append(lumps, lump{name, data})
}

// without leaves a lump out.
func without(lumps []lump, name string) (rest []lump) {
	for _, l := range lumps {
		if l.name != name {
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

// write puts a file into the test's folder, which becomes the current one.
func write(t *testing.T, name string, data []byte) {
	t.Helper()
	folder := t.TempDir()
	t.Chdir(folder)
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o644))
}
