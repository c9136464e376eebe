package doom

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// A WAD file has a header of 12 bytes, lumps anywhere, and a lump table with each lump's name,
// offset and size. Each offset and size is checked against the size of the file before use.
const (
	headerSize = 12
	entrySize  = 16
)

// Entry is one row of the lump table, in the region init.
type Entry struct {
	Offset, Size uint32
	Name         arena.Inline[[8]byte] // upper case
}

var entries = scope.Plain[Entry]()

// WAD is an open file and its lump table. The struct is a Go value that points into the budget. The
// opposite direction isn't allowed.
type WAD struct {
	Name    string
	Entries []Entry
	file    io.ReaderAt
}

// BadWAD is an error that names the first malformed byte of a file. Map and Lump may be empty.
type BadWAD struct {
	File, Map, Lump string
	Offset          int64 // from the start of the file
	Reason          string
}

func (e *BadWAD) Error() string {
	where := e.File
	if e.Map != "" {
		where += ": " + e.Map
	}
	if e.Lump != "" {
		where += ": " + e.Lump
	}
	return fmt.Sprintf("%s: offset %d: %s", where, e.Offset, e.Reason)
}

// openFile opens a WAD for the life of the scope and reads its lump table.
func openFile(s scope.Scope, name string) (WAD, error) {
	info, err := os.Stat(name) // first, since opening a pipe would wait for a writer
	if err != nil {
		return WAD{}, err
	}
	if info.IsDir() {
		return WAD{}, &BadWAD{File: name, Reason: "is a directory, not a WAD file"}
	}
	if !info.Mode().IsRegular() {
		return WAD{}, &BadWAD{File: name, Reason: "is not a regular file"}
	}
	file, err := os.Open(name)
	if err != nil {
		return WAD{}, err
	}
	s.Own(file)
	return ReadWAD(s, name, file, info.Size())
}

// ReadWAD reads the header and the lump table of a file into s, and checks them whole. It returns a
// [BadWAD] for a malformed byte.
func ReadWAD(s scope.Scope, name string, file io.ReaderAt, size int64) (WAD, error) {
	w := WAD{Name: name, file: file}
	bad := func(lump string, offset int64, format string, args ...any) (WAD, error) {
		return WAD{}, &BadWAD{File: name, Lump: lump, Offset: offset,
			Reason: fmt.Sprintf(format, args...)}
	}
	if size < headerSize {
		return bad("header", 0, "the file has %d bytes, a WAD starts with %d", size, headerSize)
	}
	temp := s.Temp(headerSize)
	defer temp.Close() // for each file, since init may open many
	header, err := scope.ReadAt(temp, file, 0, headerSize)
	if err != nil {
		return bad("header", 0, "%v", err)
	}
	if magic := string(header[:4]); magic != "IWAD" && magic != "PWAD" {
		return bad("header", 0, "starts with %q, not with IWAD or PWAD", magic)
	}
	count := int64(int32(binary.LittleEndian.Uint32(header[4:])))
	table := int64(int32(binary.LittleEndian.Uint32(header[8:])))
	if count < 0 {
		return bad("header", 4, "%d lumps", count)
	}
	if table < 0 || table > size || count > (size-table)/entrySize {
		return bad("header", 8, "the lump table (%d entries at offset %d) isn't within the file of "+
			"%d bytes", count, table, size)
	}
	tableSize := int(count * entrySize)
	tableTemp := s.Temp(tableSize)
	defer tableTemp.Close()
	raw, err := scope.ReadAt(tableTemp, file, table, tableSize)
	if err != nil {
		return bad("lump table", table, "%v", err)
	}
	w.Entries = entries.Slice(s, int(count))
	return w, w.readTable(raw, table, size)
}

// readTable fills the entries, and checks that each is within the file.
func (w *WAD) readTable(raw []byte, table, size int64) error {
	marker := "" // the map before the lump, for the error
	for i := range w.Entries {
		row := raw[i*entrySize:]
		e := &w.Entries[i]
		offset := int64(int32(binary.LittleEndian.Uint32(row)))
		length := int64(int32(binary.LittleEndian.Uint32(row[4:])))
		setName(&e.Name, row[8:16])
		switch {
		case e.isMap():
			marker = e.name()
		case !e.isMapLump():
			marker = ""
		}
		// An empty lump is a mark and may have any offset.
		if length < 0 || length > 0 && (offset < 0 || offset > size || length > size-offset) {
			return &BadWAD{File: w.Name, Map: marker, Lump: e.name(), Offset: table + int64(i)*entrySize,
				Reason: fmt.Sprintf("the lump (%d bytes at offset %d) isn't within the file of %d bytes",
					length, offset, size)}
		}
		e.Offset, e.Size = uint32(max(offset, 0)), uint32(length)
	}
	return nil
}

// setName sets a name, up to its first zero and in upper case.
func setName(to *arena.Inline[[8]byte], from []byte) {
	var name [8]byte
	n := 0
	for ; n < len(name) && from[n] != 0; n++ {
		name[n] = from[n]
		if 'a' <= name[n] && name[n] <= 'z' {
			name[n] -= 'a' - 'A'
		}
	}
	to.SetBytes(name[:n])
}

// name returns the name for messages, with a question mark for each byte that isn't printable
// ASCII.
func (e *Entry) name() string {
	text := make([]byte, 0, 8)
	for _, c := range e.Name.Bytes() {
		if c < ' ' || c > '~' {
			c = '?'
		}
		text = append(text, c)
	}
	return string(text)
}

// Lump is a lump of a file under construction.
type Lump struct {
	Name string // at most 8 bytes
	Data []byte
}

// MakeWAD makes a WAD file: the lumps in order, then the lump table.
func MakeWAD(lumps []Lump) []byte {
	out := append([]byte("PWAD"), make([]byte, 8)...)
	var table []byte
	for _, l := range lumps {
		table = binary.LittleEndian.AppendUint32(table, uint32(len(out)))
		table = binary.LittleEndian.AppendUint32(table, uint32(len(l.Data)))
		table = append(table, (l.Name + "\x00\x00\x00\x00\x00\x00\x00\x00")[:8]...)
		out = append(out, l.Data...)
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(lumps)))
	binary.LittleEndian.PutUint32(out[8:], uint32(len(out)))
	return append(out, table...)
}
