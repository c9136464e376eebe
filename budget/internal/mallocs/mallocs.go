// Package mallocs finds allocators that a library brings along besides C's malloc: jemalloc,
// mimalloc and tcmalloc. Their memory isn't in a plan's c_heap, so package budget names them.
//
// It reads the tables of symbols of the program and of its loaded libraries. An allocator isn't
// found if its file has no symbols of it, such as hidden ones in a stripped file, or has no section
// headers.
package mallocs

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// Malloc is an allocator that a file of the process defines.
type Malloc struct {
	Name   string // such as jemalloc
	Symbol string // of the file, such as duckdb_je_mallctl
	File   string
}

// known lists a function of each allocator. Builds of one may have a prefix before it.
var known = []struct {
	name, function string
	anyPrefix      bool // false: a prefix ends in an underscore
}{
	{"jemalloc", "mallctl", true},
	{"mimalloc", "mi_malloc", false},
	{"tcmalloc", "tc_malloc", false},
	{"tcmalloc", "TCMallocInternalMalloc", false},
}

// nameOf returns the name of the allocator with the symbol, or "".
func nameOf(symbol string) string {
	for _, k := range known {
		prefix, ok := strings.CutSuffix(symbol, k.function)
		if ok && (k.anyPrefix || prefix == "" || strings.HasSuffix(prefix, "_")) && isC(symbol) {
			return k.name
		}
	}
	return ""
}

// isC reports whether C may have the name. Go's names have dots and slashes.
func isC(symbol string) bool {
	return strings.IndexFunc(symbol, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// Bounds of the bytes that are read of a file, for any headers.
const (
	maxPart  = 1 << 30 // bytes of a table
	maxTexts = 64      // names that end like those of known
	maxName  = 128     // bytes of such a name; longer ones are skipped
)

// Types of sections.
const (
	allSymbols     = 2
	dynamicSymbols = 11
)

// searcher searches files one after the other. Its buffer is longer than maxName.
type searcher struct{ buffer []byte }

func newSearcher(size int) *searcher { return &searcher{make([]byte, size)} }

// object is an ELF file.
type object struct {
	file     io.ReaderAt
	size     uint64
	order    binary.ByteOrder
	wide     bool   // 64 bits
	sections []byte // their headers, of a size each
	each     int
}

// table is a table of symbols.
type table struct{ symbols, names part }

// part is a range of a file, inside of it.
type part struct{ at, size uint64 }

// text is a string in an object's names that ends with a function of known.
type text struct {
	at   uint64
	text string
}

// search returns the allocators that an ELF file defines, the first symbol of each. It returns none
// for a file that it can't read. The second table is that of debuggers, which a stripped file
// lacks. A program may have the symbols of a static library only there.
func (s *searcher) search(file io.ReaderAt, size uint64) (list []Malloc) {
	o := object{file: file, size: size}
	if !o.open() {
		return nil
	}
	for _, kind := range []uint32{dynamicSymbols, allSymbols} {
		t, ok := o.table(kind)
		if !ok {
			continue
		}
		if texts := s.texts(&o, t.names); len(texts) > 0 {
			list = s.defined(&o, t.symbols, texts)
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}

// read fills b, or returns false.
func (o *object) read(b []byte, at uint64) bool {
	if at > o.size || uint64(len(b)) > o.size-at {
		return false
	}
	n, _ := o.file.ReadAt(b, int64(at))
	return n == len(b)
}

// open reads the headers of the sections.
func (o *object) open() bool {
	header := make([]byte, 64)
	if !o.read(header, 0) || string(header[:4]) != "\x7fELF" {
		return false
	}
	o.wide, o.order = header[4] == 2, binary.LittleEndian
	if header[5] == 2 {
		o.order = binary.BigEndian
	}
	count, at := 0, o.word(header, 0x20, 0x28)
	if o.wide {
		o.each, count = 64, int(o.order.Uint16(header[0x3c:]))
	} else {
		o.each, count = 40, int(o.order.Uint16(header[0x30:]))
	}
	if at > o.size || uint64(o.each*count) > o.size-at {
		return false
	}
	o.sections = make([]byte, o.each*count)
	return o.read(o.sections, at)
}

// table finds the first table of a kind.
func (o *object) table(kind uint32) (t table, ok bool) {
	for b := o.sections; len(b) > 0; b = b[o.each:] {
		if o.order.Uint32(b[4:]) != kind {
			continue
		}
		link := uint64(o.order.Uint32(b[0x18:]))
		if o.wide {
			link = uint64(o.order.Uint32(b[0x28:]))
		}
		if link >= uint64(len(o.sections)/o.each) {
			return t, false
		}
		return table{o.part(b), o.part(o.sections[int(link)*o.each:])}, true
	}
	return t, false
}

// word reads an address or a size, at one of two places.
func (o *object) word(b []byte, narrow, wide int) uint64 {
	if o.wide {
		return o.order.Uint64(b[wide:])
	}
	return uint64(o.order.Uint32(b[narrow:]))
}

// part returns the range of a section.
func (o *object) part(section []byte) part {
	at, size := o.word(section, 0x10, 0x18), o.word(section, 0x14, 0x20)
	if at > o.size {
		return part{}
	}
	return part{at, min(size, o.size-at, maxPart)}
}

// texts returns the names that end with a function of known.
func (s *searcher) texts(o *object, names part) (list []text) {
	for at := uint64(0); ; {
		b := s.buffer[:min(uint64(len(s.buffer)), names.size-at)]
		if !o.read(b, names.at+at) {
			return list
		}
		start := 0
		for len(list) < maxTexts {
			size := bytes.IndexByte(b[start:], 0)
			if size < 0 {
				break
			}
			from := start + max(0, size-maxName)
			if name := b[from : start+size]; endsKnown(name) {
				list = append(list, text{at + uint64(from), string(name)})
			}
			start += size + 1
		}
		if len(b) < len(s.buffer) || len(list) >= maxTexts {
			return list
		}
		at += uint64(max(start, len(b)-maxName)) // the last name may continue
	}
}

// endsKnown reports whether a name ends with a function of known.
func endsKnown(name []byte) bool {
	if len(name) == 0 || name[len(name)-1] != 'l' && name[len(name)-1] != 'c' {
		return false // most names
	}
	for _, k := range known {
		if len(name) >= len(k.function) && string(name[len(name)-len(k.function):]) == k.function {
			return true
		}
	}
	return false
}

// defined returns the allocators whose symbols the file defines. A symbol's name may be the end of
// another one.
func (s *searcher) defined(o *object, symbols part, texts []text) (list []Malloc) {
	each, section := 16, 14
	if o.wide {
		each, section = 24, 6
	}
	have := map[string]bool{}
	for at := uint64(0); at < symbols.size; {
		b := s.buffer[:min(uint64(len(s.buffer)/each*each), (symbols.size-at)/uint64(each)*uint64(each))]
		if len(b) == 0 || !o.read(b, symbols.at+at) {
			break
		}
		at += uint64(len(b))
		for ; len(b) > 0; b = b[each:] {
			if o.order.Uint16(b[section:]) == 0 {
				continue // of another file
			}
			name := uint64(o.order.Uint32(b))
			for _, t := range texts {
				if name < t.at || name-t.at >= uint64(len(t.text)) {
					continue
				}
				symbol := t.text[name-t.at:]
				if malloc := nameOf(symbol); malloc != "" && !have[malloc] {
					have[malloc] = true
					list = append(list, Malloc{Name: malloc, Symbol: symbol})
				}
			}
		}
	}
	return list
}
