package save

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strings"
)

// A file is a header, the layout as JSON, and the image. All numbers are little-endian.
const (
	fileMagic   = "upsave1\n" // the digit is the version
	fileVersion = len("upsave")
	fileHeader  = 56
	fileSummed  = 48 // bytes before their CRC32C; four zeros follow it

	layoutMost = 16 << 20
	// layoutComma is the minimum size of a description in bytes for each comma. A ring writes at
	// least 16.
	layoutComma   = 8
	differsMost   = 1 << 20 // maximum bytes of a description that is decoded to name a difference
	fileImageMost = 1 << 30 // maximum bytes of a snapshot without a ring
)

type fileHead struct {
	layoutSize, imageSize, number, fingerprint uint64
	layoutSum, imageSum                        uint32
}

func (h *fileHead) append(to []byte) []byte {
	start := len(to)
	to = append(to, fileMagic...)
	for _, word := range []uint64{h.layoutSize, h.imageSize, h.number, h.fingerprint} {
		to = binary.LittleEndian.AppendUint64(to, word)
	}
	to = binary.LittleEndian.AppendUint32(to, h.layoutSum)
	to = binary.LittleEndian.AppendUint32(to, h.imageSum)
	return binary.LittleEndian.AppendUint64(to, uint64(sumOf(to[start:][:fileSummed])))
}

// Write writes a snapshot to w as a file: a header with sizes and checksums, a description of the
// types, and the bytes. A program with the same plan name, types and data can read the file on any
// little-endian machine, at any address. In a checked build the file also contains the source line
// of each allocation. With this file [DiffFiles] can name the fields in files of release builds
// with the same load. Write calls w at most twice, and returns w's error. Write also fails if the
// ring doesn't hold the snapshot, if a region isn't a state region, or if the description has more
// than 16 MiB. Write computes a checksum, and makes Go allocations.
func (r *Ring) Write(w io.Writer, number uint64) error {
	s, head, err := r.fileOf("Write", number)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{append(head.append(nil), r.text...), s.bytes()} {
		if _, err := w.Write(part); err != nil {
			return r.badFile("Write", number, err)
		}
	}
	return nil
}

// AppendFile appends to dst the file that [Ring.Write] writes, for a game that saves during play.
// On an error AppendFile returns dst unchanged. AppendFile copies the snapshot and computes a
// checksum. If dst has enough capacity, only the first file of a ring makes Go allocations, for the
// description of the types.
func (r *Ring) AppendFile(dst []byte, number uint64) ([]byte, error) {
	s, head, err := r.fileOf("AppendFile", number)
	if err != nil {
		return dst, err
	}
	return append(append(head.append(dst), r.text...), s.bytes()...), nil
}

func (r *Ring) fileOf(what string, number uint64) (s *slot, head fileHead, err error) {
	if s, err = r.state(what, number); err != nil {
		return nil, head, err
	}
	if err := r.describeFile(); err != nil {
		return nil, head, r.badFile(what, number, err)
	}
	head = r.described
	head.imageSize, head.number, head.imageSum = uint64(s.used), number, sumOf(s.bytes())
	return s, head, nil
}

// describeFile makes the description that is common to all files of the ring.
func (r *Ring) describeFile() error {
	if r.text != nil {
		return nil
	}
	l := r.describe()
	text, _ := json.Marshal(l) // numbers and strings never fail
	if len(text) > layoutMost {
		return fmt.Errorf("its description has %d bytes, more than %d", len(text), layoutMost)
	}
	r.described = fileHead{layoutSize: uint64(len(text)), fingerprint: l.fingerprint(), layoutSum: sumOf(text)}
	r.text = text
	return nil
}

func (r *Ring) badFile(what string, number uint64, err error) error {
	name := r.parts[0].saved.Name
	return fmt.Errorf("save: %s of snapshot %d of region %s: %w", what, number, name, err)
}

// Read makes a snapshot of the ring from a file, and returns the snapshot's number for
// [Ring.Restore]. Read checks every byte of the file, and works in spare memory. If Read fails,
// nothing has changed. For a damaged file the error names the damaged part. For another program's
// file the error names the first difference between the programs, or only their fingerprints if the
// file's description has more than 1 MiB. After a [State.Version], Read converts a file of other
// types; if a function of [Converted] panics, nothing has changed. All promises of [Ring.Apply]
// about the new snapshot also hold for Read.
//
// Read stops at the end of the file, and leaves later bytes in rd. If the file's header has a wrong
// size, Read fails before it reads the snapshot. Read copies the snapshot, computes checksums, and
// checks pools, bools and links. Read makes Go allocations for each type, field and pool of the
// state, and more if the error names a difference. The ring's first check of a snapshot also makes
// the allocations of [Ring.Apply].
func (r *Ring) Read(rd io.Reader) (number uint64, err error) {
	if err := r.states("Read"); err != nil {
		return 0, err
	}
	if err := r.check(); err != nil {
		return 0, err
	}
	f := source{rd: rd, name: "a file for region " + r.parts[0].saved.Name}
	head, err := f.head()
	if err != nil {
		return 0, err
	}
	switch plan, err := r.fits(&f, head); {
	case err != nil:
		return 0, err
	case plan != nil:
		return r.convert(&f, head, plan)
	}
	to := r.empty(head.number)
	defer r.refused(to)
	if most := uint64(r.most); head.imageSize > most {
		return 0, f.bad(16, "a snapshot of %d bytes, and the ring holds %d: raise the most of State.Heap by %d or more",
			head.imageSize, most, head.imageSize-most)
	}
	image := to.image[:head.imageSize]
	if err := f.full(image, "the snapshot"); err != nil {
		return 0, err
	}
	at := f.at - len(image)
	if sum := sumOf(image); sum != head.imageSum {
		return 0, f.bad(at, "the snapshot is damaged: its checksum is %#x, and the header says %#x", sum, head.imageSum)
	}
	if err := r.admitFile(to, len(image), head.number); err != nil {
		return 0, f.bad(at, "the snapshot is a state that this program can't produce: %w", err)
	}
	r.holdOutside(to, head.number, len(image))
	return head.number, nil
}

// admitFile checks the image of a file in an empty slot.
func (r *Ring) admitFile(to *slot, size int, number uint64) error {
	flat := r.zeroFlat(to)
	if r.isFlat() {
		return r.admit(flat, number)
	}
	if err := spread(r.pieces, r.fixed, flat, to.image[:size]); err != nil {
		return err
	}
	if err := r.admit(flat, number); err != nil {
		return err
	}
	was := maphash.Bytes(r.seed, to.image[:size]) // a CRC can be forged
	used, err := r.repack(to.image, flat)
	if err != nil {
		return err
	}
	if maphash.Bytes(r.seed, to.image[:used]) != was {
		return errors.New("its heaps aren't packed as a ring packs them")
	}
	r.wipe(to.image[:used])
	r.isZero = true
	return nil
}

// differs returns the first difference between a file's program and this program, or for a long
// description the fingerprints.
func (r *Ring) differs(f *source, head fileHead) (what string, err error) {
	here := r.describe()
	if head.layoutSize <= differsMost {
		l, err := f.layout(head)
		if err != nil {
			return "", err
		}
		what = here.differs(l)
	}
	if what == "" {
		what = fmt.Sprintf("fingerprint %#x and snapshots of %d bytes here, and %#x and %d in the file",
			here.fingerprint(), r.Size(), head.fingerprint, head.imageSize)
	}
	return what, nil
}

type source struct {
	rd   io.Reader
	name string
	at   int // bytes that were read
}

func (f *source) bad(at int, text string, args ...any) error {
	return fmt.Errorf("save: %s, byte %d: %w", f.name, at, fmt.Errorf(text, args...))
}

func (f *source) full(to []byte, what string) error {
	n, err := io.ReadFull(f.rd, to)
	return f.has(uint64(len(to)), uint64(n), err, what)
}

// has adds n to at, and returns an error if a read of size bytes failed.
func (f *source) has(size, n uint64, err error, what string) error {
	f.at += int(n)
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return f.bad(f.at, "the file ends early: %[3]d of the %[2]d bytes of %[1]s are missing", what, size, size-n)
	case err != nil:
		return f.bad(f.at, "%w", err)
	}
	return nil
}

func (f *source) head() (h fileHead, err error) {
	var b [fileHeader]byte
	if err := f.full(b[:], "the header"); err != nil {
		return h, err
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if string(b[:fileVersion]) != fileMagic[:fileVersion] ||
		b[fileVersion+1] != fileMagic[fileVersion+1] {
		return h, f.bad(0, "it isn't a snapshot file")
	}
	if b[fileVersion] != fileMagic[fileVersion] {
		return h, f.bad(fileVersion, "it has version %q, and this program reads %q",
			b[fileVersion:fileVersion+1], fileMagic[fileVersion:fileVersion+1])
	}
	if sum := uint64(sumOf(b[:fileSummed])); sum != word(fileSummed) {
		return h, f.bad(fileSummed, "the header is damaged: its checksum is %#x, and it says %#x", sum,
			word(fileSummed))
	}
	h = fileHead{word(8), word(16), word(24), word(32), uint32(word(40)), uint32(word(40) >> 32)}
	switch {
	case h.layoutSize > layoutMost:
		return h, f.bad(8, "a description of %d bytes: at most %d are read", h.layoutSize, layoutMost)
	case h.imageSize > min(sizeMax, math.MaxInt):
		return h, f.bad(16, "a snapshot of %d bytes, more than any state", h.imageSize)
	}
	return h, nil
}

// text copies the layout's text. It buffers no more bytes than the file has.
func (f *source) text(h fileHead, to io.Writer) error {
	sum := crc32.New(castagnoli)
	n, err := io.CopyN(io.MultiWriter(sum, to), f.rd, int64(h.layoutSize))
	if err := f.has(h.layoutSize, uint64(n), err, "the description"); err != nil {
		return err
	}
	if sum.Sum32() != h.layoutSum {
		return f.bad(fileHeader, "the description is damaged: its checksum is %#x, and the header says %#x",
			sum.Sum32(), h.layoutSum)
	}
	return nil
}

// layout reads a description. Each value in it takes up to 100 bytes of Go heap, and its commas
// bound the number of values. So layout refuses a text of many short values, which no ring writes.
func (f *source) layout(h fileHead) (*layout, error) {
	var b bytes.Buffer
	if err := f.text(h, &b); err != nil {
		return nil, err
	}
	text := b.Bytes()
	if commas := bytes.Count(text, []byte{','}); commas > len(text)/layoutComma {
		return nil, f.bad(fileHeader, "the description has %d commas in %d bytes: at most one for each %d "+
			"is read", commas, len(text), layoutComma)
	}
	l := new(layout)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, f.bad(fileHeader, "the description: %w", err)
	}
	if err := l.check(); err != nil {
		return nil, f.bad(fileHeader, "the description: %w", err)
	}
	flat, fixed := l.sizes()
	if flat != fixed && h.imageSize >= fixed {
		return l, nil // packed heaps, which have any size
	}
	if flat != h.imageSize {
		return nil, f.bad(16, "a snapshot of %d bytes here, and of %d by the description", h.imageSize, fixed)
	}
	return l, nil
}

type file struct {
	Number, Fingerprint uint64
	Layout              *layout
	Image               []byte // flat
}

// readFile reads a file of any program, and checks it like [Ring.Read] as far as it can without a
// ring. It takes up to three times the file's size of Go heap, the size of the heaps of State.Heap,
// and more for the description. It refuses a state of more than 1 GiB by the header and the
// description.
func readFile(rd io.Reader) (*file, error) {
	f := source{rd: rd, name: "a file"}
	h, err := f.head()
	if err != nil {
		return nil, err
	}
	l, err := f.layout(h)
	if err != nil {
		return nil, err
	}
	if of := l.fingerprint(); of != h.fingerprint {
		return nil, f.bad(32, "fingerprint %#x here, and %#x by the description", h.fingerprint, of)
	}
	flat, fixed := l.sizes()
	if size := max(h.imageSize, flat); size > fileImageMost {
		return nil, f.bad(16, "a snapshot of %d bytes: without a ring at most %d are read; use Ring.Read "+
			"and Ring.Diff", size, fileImageMost)
	}
	var b bytes.Buffer // takes no more memory than the file has bytes
	n, err := io.CopyN(&b, f.rd, int64(h.imageSize))
	if err := f.has(h.imageSize, uint64(n), err, "the snapshot"); err != nil {
		return nil, err
	}
	image := b.Bytes()
	if sum := sumOf(image); sum != h.imageSum {
		return nil, f.bad(f.at-len(image),
			"the snapshot is damaged: its checksum is %#x, and the header says %#x", sum, h.imageSum)
	}
	if flat != fixed {
		pieces, fixed := piecesOf(l.shapes())
		packed := image
		image = make([]byte, flat)
		if err := spread(pieces, fixed, image, packed); err != nil {
			return nil, f.bad(f.at-len(packed), "the snapshot: %w", err)
		}
	}
	return &file{h.number, h.fingerprint, l, image}, nil
}

// DiffFiles returns the first difference between two files, like [Ring.Diff]. names is nil, or a
// file that a checked build wrote after the same load. DiffFiles takes from names the names of
// values that a release build can't name. DiffFiles fails if a file is damaged, if the programs
// differ, if a release build wrote names, or if a snapshot has more than 1 GiB. For larger
// snapshots use [Ring.Diff]. On the Go heap, DiffFiles takes up to three times the files' sizes and
// the sizes of all heaps of [State.Heap]. It takes more for the files' descriptions of types, which
// have at most 16 MiB each.
func DiffFiles(a, b, names io.Reader) (d Difference, differ bool, err error) {
	var files [3]*file
	for i, rd := range []io.Reader{a, b, names} {
		if i == 2 && rd == nil {
			break
		}
		which := [...]string{"A", "B", "the map"}[i]
		if files[i], err = readFile(rd); err != nil {
			return d, false, fmt.Errorf("%s: %w", which, err)
		}
		if what := files[0].Layout.differs(files[i].Layout); what != "" {
			return d, false, fmt.Errorf("save: %s is of another program, plan or data than A: %s", which,
				strings.NewReplacer(" here", " in A", "the file", which).Replace(what))
		}
	}
	l := files[0].Layout
	if m := files[2]; m != nil {
		if l = m.Layout; !l.knowsObjects() {
			return d, false, errors.New("save: the map has no names: write it in a checked build")
		}
	} else if !l.knowsObjects() {
		l = files[1].Layout
	}
	d, differ = l.diff(files[0].Image, files[1].Image)
	return d, differ, nil
}

// knowsObjects reports whether a checked build wrote the layout.
func (l *layout) knowsObjects() bool {
	return slices.ContainsFunc(l.Parts, func(p partLayout) bool { return len(p.Objects) != 0 })
}
