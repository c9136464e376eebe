package wazero_test

import (
	"encoding/binary"
	"slices"
)

// guest is a module for tests. Each imports env.host, a func().
type guest struct {
	name     string
	min, max uint32 // pages; a max of 0 is not declared
	shared   bool
	memory   string // the module that exports its memory; "": its own
	none     bool   // it has no memory
	table    string // the module that exports its table, which gets its poke
	start    string // the function that is called first
	data     []byte // the bytes at at
	at       uint32
}

// functions are the exports of each guest. Function 0 is the host's.
var functions = []struct {
	name string
	kind byte // of types
	code []byte
}{
	{"host", 3, []byte{0x10, 0}},
	{"peek", 0, []byte{0x20, 0, 0x2d, 0, 0}},
	{"poke", 1, []byte{0x20, 0, 0x20, 1, 0x3a, 0, 0}},
	{"grow", 0, []byte{0x20, 0, 0x40, 0}},
	{"size", 2, []byte{0x3f, 0}},
	{"trap", 3, []byte{0x00}},
	{"loop", 3, []byte{0x03, 0x40, 0x0c, 0, 0x0b}},
	// Grows by a page until it is refused, and returns the number of pages.
	{"greedy", 2, []byte{0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x3f, 0}},
	{"peekAfterHost", 0, []byte{0x10, 0, 0x20, 0, 0x2d, 0, 0}},
	{"pokeAfterHost", 1, []byte{0x10, 0, 0x20, 0, 0x20, 1, 0x3a, 0, 0}},
	{"hostAndLoop", 3, []byte{0x10, 0, 0x03, 0x40, 0x0c, 0, 0x0b}},
	{"answer", 2, []byte{0x41, 42}},
	{"pokeByTable", 1, []byte{0x20, 0, 0x20, 1, 0x41, 0, 0x11, 1, 0}},
}

// types are (i32) i32, (i32, i32), i32, and none.
var types = [][]byte{
	{0x60, 1, 0x7f, 1, 0x7f}, {0x60, 2, 0x7f, 0x7f, 0}, {0x60, 0, 1, 0x7f}, {0x60, 0, 0},
}

const (
	external = 0x00 // of imports and exports: the kind
	anyTable = 0x01
	memory   = 0x02
)

// encode returns the module in WebAssembly's binary format.
func (g guest) encode() []byte {
	host := slices.Concat(name("env"), name("host"), []byte{external, 3})
	imports, tables, memories := [][]byte{host}, [][]byte(nil), [][]byte(nil)
	switch {
	case g.none:
	case g.memory != "":
		imports = append(imports, slices.Concat(name(g.memory), name("memory"), []byte{memory}, g.limits()))
	default:
		memories = append(memories, g.limits())
	}
	table := []byte{0x70, 0, 1}
	if g.table != "" {
		imports = append(imports, slices.Concat(name(g.table), name("table"), []byte{anyTable}, table))
	} else {
		tables = append(tables, table)
	}
	exports := [][]byte{append(name("table"), anyTable, 0)}
	if !g.none {
		exports = append(exports, append(name("memory"), memory, 0))
	}
	var kinds, bodies, elements, data [][]byte
	begin := []byte(nil)
	for i, f := range functions {
		code := append([]byte{0}, f.code...)
		if g.none && (f.kind < 2 || f.name == "size" || f.name == "greedy") {
			code = []byte{0, 0x00} // no memory
		}
		code = append(code, 0x0b)
		kinds = append(kinds, []byte{f.kind})
		bodies = append(bodies, append(number(uint32(len(code))), code...))
		exports = append(exports, append(name(f.name), external, byte(i+1)))
		if f.name == g.start {
			begin = []byte{byte(i + 1)}
		}
		if f.name == "poke" && g.table != "" {
			elements = append(elements, []byte{0, 0x41, 0, 0x0b, 1, byte(i + 1)})
		}
	}
	if g.data != nil {
		at := append(signed(g.at), 0x0b)
		data = append(data, slices.Concat([]byte{0, 0x41}, at, number(uint32(len(g.data))), g.data))
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(2, imports), section(3, kinds), section(4, tables),
		section(5, memories), section(7, exports), raw(8, begin), section(9, elements),
		section(10, bodies), section(11, data), g.names())
}

func (g guest) limits() []byte {
	switch {
	case g.shared:
		return slices.Concat([]byte{3}, number(g.min), number(g.max))
	case g.max != 0:
		return slices.Concat([]byte{1}, number(g.min), number(g.max))
	}
	return append([]byte{0}, number(g.min)...)
}

// names returns the custom section with the module's name.
func (g guest) names() []byte {
	if g.name == "" {
		return nil
	}
	inner := name(g.name)
	return raw(0, slices.Concat(name("name"), []byte{0}, number(uint32(len(inner))), inner))
}

func section(id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return nil
	}
	return raw(id, append(number(uint32(len(items))), slices.Concat(items...)...))
}

func raw(id byte, bytes []byte) []byte {
	if bytes == nil {
		return nil
	}
	return slices.Concat([]byte{id}, number(uint32(len(bytes))), bytes)
}

func name(s string) []byte { return append(number(uint32(len(s))), s...) }

func number(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// signed returns n in signed LEB128.
func signed(n uint32) (bytes []byte) {
	for v := int32(n); ; {
		low := byte(v & 0x7f)
		if v >>= 7; v == 0 && low < 0x40 || v == -1 && low >= 0x40 {
			return append(bytes, low)
		}
		bytes = append(bytes, low|0x80)
	}
}
