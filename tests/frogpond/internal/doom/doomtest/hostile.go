package doomtest

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// Hostile holds malformed files. Line is the whole error if the file's name is bad.wad.
var Hostile = []struct {
	Name string
	File func() []byte
	Line string
}{
	{"empty", func() []byte { return nil },
		"bad.wad: header: offset 0: the file has 0 bytes, a WAD starts with 12"},
	{"half a header", func() []byte { return []byte("IWAD\x01\x00") },
		"bad.wad: header: offset 0: the file has 6 bytes, a WAD starts with 12"},
	{"not a WAD", func() []byte { return []byte("\x89PNG\r\n\x1a\n....") },
		`bad.wad: header: offset 0: starts with "\x89PNG", not with IWAD or PWAD`},
	{"negative count", func() []byte { return poke(doom.MakeWAD(GoodMap()), 4, 0xffffffff) },
		"bad.wad: header: offset 4: -1 lumps"},
	{"more lumps than the file", func() []byte { return poke(doom.MakeWAD(GoodMap()), 4, 0x7fffffff) },
		"bad.wad: header: offset 8: the lump table (2147483647 entries at offset 240) isn't " +
			"within the file of 336 bytes"},
	{"table beyond the file", func() []byte { return poke(doom.MakeWAD(GoodMap()), 8, 337) },
		"bad.wad: header: offset 8: the lump table (6 entries at offset 337) isn't " +
			"within the file of 336 bytes"},
	{"negative table", func() []byte { return poke(doom.MakeWAD(GoodMap()), 8, 0x80000000) },
		"bad.wad: header: offset 8: the lump table (6 entries at offset -2147483648) isn't " +
			"within the file of 336 bytes"},
	{"truncated table", func() []byte { f := doom.MakeWAD(GoodMap()); return f[:len(f)-1] },
		"bad.wad: header: offset 8: the lump table (6 entries at offset 240) isn't " +
			"within the file of 335 bytes"},
	{"lump beyond the file", func() []byte { return poke(doom.MakeWAD(GoodMap()), 240+2*16+4, 1000) },
		"bad.wad: MAP01: LINEDEFS: offset 272: the lump (1000 bytes at offset 22) isn't " +
			"within the file of 336 bytes"},
	{"lump of another kind beyond the file",
		func() []byte {
			return poke(doom.MakeWAD([]doom.Lump{{Name: "FLOOR7_2", Data: []byte("x")}}), 13, 0x7ffffff0)
		},
		"bad.wad: FLOOR7_2: offset 13: the lump (1 bytes at offset 2147483632) isn't " +
			"within the file of 29 bytes"},
	{"negative lump", func() []byte { return poke(doom.MakeWAD(GoodMap()), 240+4*16+4, 0xfffffff0) },
		"bad.wad: MAP01: VERTEXES: offset 304: the lump (-16 bytes at offset 198) isn't " +
			"within the file of 336 bytes"},
	{"unprintable name", func() []byte {
		return poke(doom.MakeWAD([]doom.Lump{{Name: "\x1b[2J\xff", Data: []byte("x")}}), 13, 99)
	},
		"bad.wad: ?[2J?: offset 13: the lump (1 bytes at offset 99) isn't within the file of 29 bytes"},
	{"no map", func() []byte { return doom.MakeWAD([]doom.Lump{{Name: "CREDITS"}}) },
		"bad.wad: no map (a mark named ExMy or MAPxx)"},
	{"no VERTEXES", func() []byte { return doom.MakeWAD(without(GoodMap(), "VERTEXES")) },
		"bad.wad: MAP01: VERTEXES: offset 12: the map has no such lump"},
	{"nothing but a mark", func() []byte { return doom.MakeWAD([]doom.Lump{{Name: "E1M1"}}) },
		"bad.wad: E1M1: THINGS: offset 12: the map has no such lump"},
	{"VERTEXES empty", with("VERTEXES", nil),
		"bad.wad: MAP01: VERTEXES: offset 198: is empty"},
	{"twice", func() []byte { return doom.MakeWAD(append(GoodMap(), doom.Lump{Name: "SECTORS"})) },
		"bad.wad: MAP01: SECTORS: offset 240: the map has this lump twice"},
	{"Hexen", func() []byte {
		return doom.MakeWAD(append(GoodMap(), doom.Lump{Name: "BEHAVIOR", Data: []byte("ACS\x00")}))
	},
		"bad.wad: MAP01: BEHAVIOR: offset 240: the map is in the Hexen or UDMF format; " +
			"only Doom's is read"},
	{"UDMF", func() []byte {
		return doom.MakeWAD([]doom.Lump{{Name: "MAP01"}, {Name: "TEXTMAP", Data: []byte("namespace")}})
	},
		"bad.wad: MAP01: TEXTMAP: offset 12: the map is in the Hexen or UDMF format; " +
			"only Doom's is read"},
	{"THINGS don't divide", with("THINGS", make([]byte, 11)),
		"bad.wad: MAP01: THINGS: offset 12: 11 bytes don't divide by 10"},
	{"LINEDEFS don't divide", with("LINEDEFS", make([]byte, 55)),
		"bad.wad: MAP01: LINEDEFS: offset 22: 55 bytes don't divide by 14"},
	{"too many", with("THINGS", make([]byte, 655360)),
		"bad.wad: MAP01: THINGS: offset 12: 65536 elements; the format counts to 65535"},
	{"vertex out of range", at(22+14+2, 4),
		"bad.wad: MAP01: LINEDEFS: offset 38: line 1: vertex 4 of 4"},
	{"no right side", at(32, 0xff, 0xff),
		"bad.wad: MAP01: LINEDEFS: offset 32: line 0: side 65535 of 4"},
	{"left side out of range", at(22+42+12, 0xfe),
		"bad.wad: MAP01: LINEDEFS: offset 76: line 3: side 65534 of 4"},
	{"sector out of range", at(78+60+28, 1),
		"bad.wad: MAP01: SIDEDEFS: offset 166: side 2: sector 1 of 1"},
}

// with returns a file of GoodMap with other data in a lump.
func with(lump string, data []byte) func() []byte {
	return func() []byte { return doom.MakeWAD(Set(GoodMap(), lump, data)) }
}

// at returns a file of GoodMap with other bytes at an offset.
func at(offset int, bytes ...byte) func() []byte {
	return func() []byte {
		file := doom.MakeWAD(GoodMap())
		copy(file[offset:], bytes)
		return file
	}
}
