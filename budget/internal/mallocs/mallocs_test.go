package mallocs_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget/internal/mallocs"
)

// form is a form of ELF.
type form struct {
	wide  bool // 64 bits
	order binary.ByteOrder
	kind  uint32 // of the table of symbols: 2 or 11
}

var forms = []form{
	{true, binary.LittleEndian, 11}, {false, binary.LittleEndian, 11}, {true, binary.BigEndian, 11},
	{false, binary.BigEndian, 11}, {true, binary.LittleEndian, 2},
}

// elf returns a file with a section of names, and one of symbols. Each symbol of the list has its
// name in names. A "?" before it makes it undefined.
func (f form) elf(names string, symbols ...string) []byte {
	header, each, size, section := 52, 40, 16, 14
	if f.wide {
		header, each, size, section = 64, 64, 24, 6
	}
	text := "\x00" + strings.ReplaceAll(names, " ", "\x00") + "\x00"
	file := make([]byte, header)
	copy(file, "\x7fELF\x01\x01\x01")
	if f.wide {
		file[4] = 2
	}
	if f.order == binary.ByteOrder(binary.BigEndian) {
		file[5] = 2
	}
	table := make([]byte, size) // the first symbol is empty
	for _, s := range symbols {
		name, undefined := strings.CutPrefix(s, "?")
		row := make([]byte, size)
		f.order.PutUint32(row, uint32(strings.Index(text, name+"\x00")))
		if !undefined {
			f.order.PutUint16(row[section:], 1)
		}
		table = append(table, row...)
	}
	sections := make([]byte, 3*each)
	f.section(sections[each:], f.kind, len(file), len(table), 2)
	f.section(sections[2*each:], 3, len(file)+len(table), len(text), 0)
	at := len(file) + len(table) + len(text)
	if f.wide {
		f.order.PutUint64(file[0x28:], uint64(at))
		f.order.PutUint16(file[0x3c:], 3)
	} else {
		f.order.PutUint32(file[0x20:], uint32(at))
		f.order.PutUint16(file[0x30:], 3)
	}
	return append(append(append(file, table...), text...), sections...)
}

func (f form) section(b []byte, kind uint32, at, size, link int) {
	f.order.PutUint32(b[4:], kind)
	if f.wide {
		f.order.PutUint64(b[0x18:], uint64(at))
		f.order.PutUint64(b[0x20:], uint64(size))
		f.order.PutUint32(b[0x28:], uint32(link))
		return
	}
	f.order.PutUint32(b[0x10:], uint32(at))
	f.order.PutUint32(b[0x14:], uint32(size))
	f.order.PutUint32(b[0x18:], uint32(link))
}

// found returns the allocators and their symbols as a text.
func found(list []mallocs.Malloc) string {
	var words []string
	for _, m := range list {
		words = append(words, m.Name+":"+m.Symbol)
	}
	return strings.Join(words, " ")
}

func TestSearch(t *testing.T) {
	for _, c := range []struct{ names, symbols, want string }{
		{"malloc free", "malloc free", ""},
		{"mallctl", "mallctl", "jemalloc:mallctl"},
		{"duckdb_je_mallctl", "duckdb_je_mallctl", "jemalloc:duckdb_je_mallctl"},
		{"jemallctl", "jemallctl", "jemalloc:jemallctl"},
		{"mallctlbymib", "mallctlbymib", ""},
		{"mallctl", "?mallctl", ""},
		{"je_mallctl", "?mallctl", ""},
		{"je_mallctl", "mallctl", "jemalloc:mallctl"},
		{"je_mallctl", "?mallctl je_mallctl", "jemalloc:je_mallctl"},
		{"je_mallctl mallctl", "je_mallctl mallctl", "jemalloc:je_mallctl"},
		{"mi_malloc", "mi_malloc", "mimalloc:mi_malloc"},
		{"_Py_mi_malloc", "_Py_mi_malloc", "mimalloc:_Py_mi_malloc"},
		{"bmi_malloc etc_malloc", "bmi_malloc etc_malloc", ""},
		{"bmi_malloc", "mi_malloc", "mimalloc:mi_malloc"},
		{"tc_malloc", "tc_malloc", "tcmalloc:tc_malloc"},
		{"TCMallocInternalMalloc", "TCMallocInternalMalloc", "tcmalloc:TCMallocInternalMalloc"},
		{"main._Cfunc_mallctl a/b.mi_malloc", "main._Cfunc_mallctl a/b.mi_malloc", ""},
		{".a_mallctl", ".a_mallctl", ""},
		{"a_mallctl mi_malloc", "?a_mallctl mi_malloc", "mimalloc:mi_malloc"},
		{"mi_malloc a_mallctl", "a_mallctl mi_malloc", "jemalloc:a_mallctl mimalloc:mi_malloc"},
	} {
		for _, f := range forms {
			file := f.elf(c.names, strings.Fields(c.symbols)...)
			assert.Equal(t, c.want, found(mallocs.Search(file, 1<<10)), "%s in %s, %v", c.symbols, c.names, f)
		}
	}
}

// TestSearchInPieces: a name that the end of a buffer cuts is found, and once.
func TestSearchInPieces(t *testing.T) {
	for before := range 400 {
		for _, f := range forms[:2] {
			file := f.elf(strings.Repeat("x", before)+" a_mallctl "+strings.Repeat("y", 999), "a_mallctl")
			assert.Equal(t, "jemalloc:a_mallctl", found(mallocs.Search(file, 200)), before)
		}
	}
	long := strings.Repeat("a", 500) + "_mallctl"
	end := long[len(long)-128:]
	assert.Equal(t, "jemalloc:"+end, found(mallocs.Search(forms[0].elf(long, end), 200)))
}

// TestSearchBadFiles: each cut of a file and each byte with another value is read without a panic,
// and in little time.
func TestSearchBadFiles(t *testing.T) {
	for _, f := range forms {
		file := f.elf("malloc a_mallctl", "?malloc", "a_mallctl")
		for end := range file {
			assert.Empty(t, mallocs.Search(file[:end], 200), "cut at %d", end)
		}
		for i := range file {
			for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				bad := append([]byte(nil), file...)
				bad[i] = value
				mallocs.Search(bad, 200)
			}
		}
	}
	for _, text := range []string{"", "#!/bin/sh\n", "\x7fELF", strings.Repeat("\xff", 100), "\x7fELF" +
		strings.Repeat("\xff", 100), strings.Repeat("\x00", 4096)} {
		assert.Empty(t, mallocs.Search([]byte(text), 200), "%q", text)
	}
}

// TestSearchForgedHeaders: offsets and sizes beyond the file, and those whose sum overflows, don't
// panic. A table may end with the file.
func TestSearchForgedHeaders(t *testing.T) {
	f := forms[0]
	file := f.elf("malloc a_mallctl", "?malloc", "a_mallctl")
	sections := int(f.order.Uint64(file[0x28:]))
	for _, c := range []struct {
		what string
		at   int // of a word of 64 bits
	}{
		{"the table of sections", 0x28},
		{"the symbols", sections + 64 + 0x18},
		{"the size of the symbols", sections + 64 + 0x20},
		{"the section of names", sections + 64 + 0x28},
		{"the names", sections + 128 + 0x18},
		{"the size of the names", sections + 128 + 0x20},
	} {
		for _, value := range []uint64{0, 1, uint64(len(file)) - 1, uint64(len(file)), uint64(len(file)) + 1, 1 << 31,
			math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 63, math.MaxUint64} {
			forged := append([]byte(nil), file...)
			f.order.PutUint64(forged[c.at:], value)
			list := mallocs.Search(forged, 1<<10)
			if strings.HasPrefix(c.what, "the size") && value >= uint64(len(file)) {
				assert.Equal(t, "jemalloc:a_mallctl", found(list), "%s: %d", c.what, value)
			}
		}
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("a%d_mallctl", i))
	}
	all := f.elf(strings.Join(many, " "), many...)
	assert.Equal(t, "jemalloc:a0_mallctl", found(mallocs.Search(all, 1<<10)), "of many the first")
}

func FuzzSearch(f *testing.F) {
	for _, form := range forms {
		f.Add(form.elf("malloc a_mallctl", "?malloc", "a_mallctl"))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, m := range mallocs.Search(file, 200) {
			assert.Contains(t, string(file), m.Symbol+"\x00")
		}
	})
}
