package save

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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
	fileSummed  = 48 // bytes of the header that the next four are the CRC32C of; then four zeros

	layoutMost    = 16 << 20
	layoutComma   = 8       // bytes of a description for each comma: a ring writes 16 and more
	differsMost   = 1 << 20 // bytes of a description that is read to say what differs
	fileImageMost = 1 << 30 // bytes of a snapshot that is read without a ring
)

// fileHead is a file's header.
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

// Write writes a snapshot as a file: a header with sizes and checksums, what describes the types,
// and the bytes. Who reads it is the same program, on any little-endian machine, at whatever
// address. In a checked build it has what was made where, too: so it is a map for files that
// releases wrote of the same load, see [DiffFiles]. w gets it in two writes; its error comes back.
// Cost: a look at the snapshot; Go allocations.
func (r *Ring) Write(w io.Writer, number uint64) error {
	s, head, err := r.fileOf("Write", number)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{append(head.append(nil), r.text...), s.image} {
		if _, err := w.Write(part); err != nil {
			return r.badFile("Write", number, err)
		}
	}
	return nil
}

// AppendFile appends what [Ring.Write] writes, for who keeps memory for it: a game that saves
// while it is played. An error leaves dst as it was. Cost: a look at the snapshot, a sum and a copy;
// no Go allocation when dst has room, but for the first file of a ring, which describes the types.
func (r *Ring) AppendFile(dst []byte, number uint64) ([]byte, error) {
	s, head, err := r.fileOf("AppendFile", number)
	if err != nil {
		return dst, err
	}
	return append(append(head.append(dst), r.text...), s.image...), nil
}

// fileOf is a snapshot and the header of its file.
func (r *Ring) fileOf(what string, number uint64) (s *slot, head fileHead, err error) {
	if s, err = r.state(what, number); err != nil {
		return nil, head, err
	}
	if r.text == nil { // what all files of the ring have in common
		l := r.describe()
		text, _ := json.Marshal(l) // of numbers and strings
		if len(text) > layoutMost {
			return nil, head, r.badFile(what, number,
				fmt.Errorf("its description has %d bytes, more than %d", len(text), layoutMost))
		}
		r.described = fileHead{layoutSize: uint64(len(text)), fingerprint: l.fingerprint(),
			layoutSum: sumOf(text)}
		r.text = text
	}
	head = r.described
	head.imageSize, head.number, head.imageSum = uint64(len(s.image)), number, sumOf(s.image)
	return s, head, nil
}

func (r *Ring) badFile(what string, number uint64, err error) error {
	name := r.parts[0].saved.Name()
	return fmt.Errorf("save: %s of snapshot %d of region %s: %w", what, number, name, err)
}

// Read makes a snapshot of the ring from a file, and says its number: [Ring.Restore] puts it in
// place. What comes is trusted in nothing: it is looked at beside what the ring holds. An error
// says at which byte of the file what is wrong, or in what its program differs from this one; then
// nothing has changed. All that [Ring.Apply] says of a snapshot from outside holds for this one. rd
// is read to the end of the file and not beyond. A snapshot of another size than the ring's is
// refused by its header, whatever size that claims. Cost: a copy, two sums, a look at the pools, at
// bools and at what leads anywhere; Go allocations of 64 KiB at most, or of 32 MiB to say in what
// another program differs.
func (r *Ring) Read(rd io.Reader) (number uint64, err error) {
	if err := r.states("Read"); err != nil {
		return 0, err
	}
	if err := r.check(); err != nil {
		return 0, err
	}
	f := source{rd: rd, name: "a file for region " + r.parts[0].saved.Name()}
	head, err := f.head()
	if err != nil {
		return 0, err
	}
	if here := r.describe(); head.fingerprint != here.fingerprint() ||
		head.imageSize != uint64(r.Size()) {
		what, err := r.differs(&f, head)
		if err != nil {
			return 0, err
		}
		return 0, f.bad(fileHeader, "it is of another program, plan or data: %s", what)
	}
	if err := f.text(head, io.Discard); err != nil {
		return 0, err
	}
	if err := f.full(r.spare, "the snapshot"); err != nil {
		return 0, err
	}
	if sum := sumOf(r.spare); sum != head.imageSum {
		return 0, f.bad(f.at-len(r.spare),
			"the snapshot is damaged: its sum is %#x, and the header says %#x", sum, head.imageSum)
	}
	if err := r.admit(head.number); err != nil {
		return 0, f.bad(f.at-len(r.spare), "the snapshot is what play doesn't leave: %w", err)
	}
	to := r.hold(head.number)
	for i := range r.parts {
		to.finalizers[i] = r.parts[i].saved.Stack().Finalizers()
	}
	return head.number, nil
}

// differs says in what the program of a file differs. The description is read if it is short.
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
		what = fmt.Sprintf("fingerprint %#x of snapshots of %d bytes here, and %#x of %d in the file",
			here.fingerprint(), r.Size(), head.fingerprint, head.imageSize)
	}
	return what, nil
}

// source is a file that is read.
type source struct {
	rd   io.Reader
	name string
	at   int // how far
}

func (f *source) bad(at int, text string, args ...any) error {
	return fmt.Errorf("save: %s, byte %d: %w", f.name, at, fmt.Errorf(text, args...))
}

// full reads all of it, or says where the file ends.
func (f *source) full(to []byte, what string) error {
	n, err := io.ReadFull(f.rd, to)
	return f.has(uint64(len(to)), uint64(n), err, what)
}

// has notes that a read of size bytes came to n, and says what is wrong with that.
func (f *source) has(size, n uint64, err error, what string) error {
	f.at += int(n)
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return f.bad(f.at, "it ends, and %s has %d bytes, %d more", what, size, size-n)
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
		return h, f.bad(0, "it is no file of a snapshot")
	}
	if b[fileVersion] != fileMagic[fileVersion] {
		return h, f.bad(fileVersion, "it is of version %q, and this program knows %q",
			b[fileVersion:fileVersion+1], fileMagic[fileVersion:fileVersion+1])
	}
	if sum := uint64(sumOf(b[:fileSummed])); sum != word(fileSummed) {
		return h, f.bad(fileSummed, "the header is damaged: its sum is %#x, and it says %#x", sum,
			word(fileSummed))
	}
	h = fileHead{word(8), word(16), word(24), word(32), uint32(word(40)), uint32(word(40) >> 32)}
	switch {
	case h.layoutSize > layoutMost:
		return h, f.bad(8, "a description of %d bytes: %d is the most", h.layoutSize, layoutMost)
	case h.imageSize > min(sizeMax, math.MaxInt):
		return h, f.bad(16, "a snapshot of %d bytes", h.imageSize)
	}
	return h, nil
}

// text reads the layout's text to somewhere: no more memory is taken than comes.
func (f *source) text(h fileHead, to io.Writer) error {
	sum := crc32.New(castagnoli)
	n, err := io.CopyN(io.MultiWriter(sum, to), f.rd, int64(h.layoutSize))
	if err := f.has(h.layoutSize, uint64(n), err, "the description"); err != nil {
		return err
	}
	if sum.Sum32() != h.layoutSum {
		return f.bad(fileHeader, "the description is damaged: its sum is %#x, and the header says %#x",
			sum.Sum32(), h.layoutSum)
	}
	return nil
}

// layout reads a description. Each comma is a value at most, and a value takes up to 100 bytes of
// Go heap: so one of many short values, which no ring writes, is refused before.
func (f *source) layout(h fileHead) (*layout, error) {
	var b bytes.Buffer
	if err := f.text(h, &b); err != nil {
		return nil, err
	}
	text := b.Bytes()
	if commas := bytes.Count(text, []byte{','}); commas > len(text)/layoutComma {
		return nil, f.bad(fileHeader, "the description has %d commas in %d bytes: one for each %d is "+
			"the most", commas, len(text), layoutComma)
	}
	l := new(layout)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, f.bad(fileHeader, "the description: %w", err)
	}
	if err := l.check(); err != nil {
		return nil, f.bad(fileHeader, "the description: %w", err)
	}
	if size := l.imageSize(); size != h.imageSize {
		return nil, f.bad(16, "a snapshot of %d bytes, and by the description it has %d", h.imageSize,
			size)
	}
	return l, nil
}

// file is a snapshot in a file, for who has no ring for it: tools.
type file struct {
	Number, Fingerprint uint64
	Layout              *layout
	Image               []byte
}

// readFile reads a file that [Ring.Write] wrote, of whatever program, and looks at it as
// [Ring.Read] does at what it can. Cost: up to three times the file's size of Go heap, and more for
// the description. A snapshot of more than 1 GiB is refused by its header.
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
		return nil, f.bad(32, "fingerprint %#x, and by the description it is %#x", h.fingerprint, of)
	}
	if h.imageSize > fileImageMost {
		return nil, f.bad(16, "a snapshot of %d bytes: without its ring at most %d are read; read it by "+
			"Ring.Read, and see Ring.Diff", h.imageSize, fileImageMost)
	}
	var b bytes.Buffer // no more memory is taken than comes
	n, err := io.CopyN(&b, f.rd, int64(h.imageSize))
	if err := f.has(h.imageSize, uint64(n), err, "the snapshot"); err != nil {
		return nil, err
	}
	image := b.Bytes()
	if sum := sumOf(image); sum != h.imageSum {
		return nil, f.bad(f.at-len(image),
			"the snapshot is damaged: its sum is %#x, and the header says %#x", sum, h.imageSum)
	}
	return &file{h.number, h.fingerprint, l, image}, nil
}

// DiffFiles says where two files differ first, as [Ring.Diff] does. names, or nil, is a file that a
// checked build wrote after the same load: of it only what was made where counts, which gives names
// to what a release knows no name for. An error says which file is none, or in what programs
// differ, or which has a snapshot of more than 1 GiB: [Ring.Diff] compares those. Cost: up to three
// times the files' sizes of Go heap, and more for their descriptions, of 16 MiB at most each.
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
			return d, false, errors.New("save: the map names nothing: no checked build wrote it")
		}
	} else if !l.knowsObjects() {
		l = files[1].Layout
	}
	d, differ = l.diff(files[0].Image, files[1].Image)
	return d, differ, nil
}

// knowsObjects says whether a checked build wrote it.
func (l *layout) knowsObjects() bool {
	return slices.ContainsFunc(l.Parts, func(p partLayout) bool { return len(p.Objects) != 0 })
}
