package save

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// A delta is a header of eight words, and then the changed ranges in order. A range consists of two
// varints, the number of unchanged bytes before it and the number of changed bytes, and then the
// changed bytes, XORed with the base's. All numbers are little-endian. Say the base is 07 00 00 00
// 05 00 00 00, and the snapshot 07 00 00 00 06 00 00 00. They differ in byte 4, and 05 XOR 06 is
// 03, so the only range is 04 01 03. A small change of a number has zeros in its high bytes, so
// deltas compress well.
const (
	deltaMagic   = 0x31_61_74_6c_65_64_70_75 // "updelta1"; the digit is the version
	deltaVersion = 0xff << 56
	deltaHeader  = 8 * 8
	deltaSummed  = 7 * 8 // their CRC32C is the lower 32 bits of the last word

	// deltaOf is the lowest bit of the subjects' 32-bit checksum in the last word. The checksum is
	// 0 if there are no subjects.
	deltaOf = 32

	rangeSizeMax = 2 * binary.MaxVarintLen64 // the two varints
	rangeGap     = 2                         // bytes: another range costs as many
	deltaBlock   = 4 * arena_c.LineSize      // bytes per comparison
)

type deltaHead struct{ magic, size, changes, base, number, baseHash, hash, sum uint64 }

func (h *deltaHead) words() [8]*uint64 {
	return [...]*uint64{&h.magic, &h.size, &h.changes, &h.base, &h.number, &h.baseHash, &h.hash,
		&h.sum}
}

func (h *deltaHead) put(to []byte, of uint32) {
	for i, word := range h.words() {
		if 8*i == deltaSummed {
			*word = uint64(sumOf(to[:deltaSummed])) | uint64(of)<<deltaOf
		}
		binary.LittleEndian.PutUint64(to[8*i:], *word)
	}
}

// Delta appends to dst the changes that turn snapshot base into snapshot number. [Ring.Apply]
// applies the changes in the same program on any machine. A delta takes 64 bytes, and for each
// changed place the changed bytes and a few more. If the ring doesn't hold both snapshots, or a
// region isn't a state region, Delta returns dst unchanged and an error. Delta compares the
// snapshots, and hashes a snapshot if its hash isn't known. Delta makes no Go allocation if dst has
// enough capacity.
func (r *Ring) Delta(dst []byte, base, number uint64) ([]byte, error) {
	from, err := r.state("Delta", base)
	if err != nil {
		return dst, err
	}
	to, err := r.state("Delta", number)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, make([]byte, deltaHeader)...)
	dst = r.appendChanges(dst, from.bytes(), to.bytes())
	head := deltaHead{magic: deltaMagic, size: uint64(r.flatSize), base: base, number: number,
		changes: uint64(len(dst) - start - deltaHeader), baseHash: from.sum(), hash: to.sum()}
	head.put(dst[start:], r.of)
	return dst, nil
}

// appendChanges appends the ranges in which two images differ, by their positions in flat images.
func (r *Ring) appendChanges(dst, from, to []byte) []byte {
	a, b, last := r.segmentsOf(from), r.segmentsOf(to), 0
	for len(a.bytes) != 0 || len(b.bytes) != 0 {
		at, x, y := a.at, a.bytes, b.bytes
		switch { // bytes that only one image has stand against zeros
		case len(x) == 0 || len(y) != 0 && b.at < a.at:
			at, x, y = b.at, zeros[:], y[:min(len(y), a.before(b.at))]
		case len(y) == 0 || a.at < b.at:
			x, y = x[:min(len(x), b.before(a.at))], zeros[:]
		}
		n := min(len(x), len(y))
		dst, last = appendDifferences(dst, x[:n], y[:n], at, last)
		if len(a.bytes) != 0 && a.at == at {
			a.skip(n)
		}
		if len(b.bytes) != 0 && b.at == at {
			b.skip(n)
		}
	}
	return dst
}

// before returns the bytes from a position to the walk's segment, which begins after it or has
// ended.
func (w *segments) before(at int) int {
	if len(w.bytes) == 0 {
		return math.MaxInt
	}
	return w.at - at
}

// appendDifferences appends the ranges in which from and to differ, which begin at a position. The
// last range before them ends at last; appendDifferences returns the end of the new last one. pre:
// both have the same number of words.
func appendDifferences(dst, from, to []byte, position, last int) ([]byte, int) {
	last -= position
	start, end := 0, 0 // the open range
	for at := 0; at < len(from); at += deltaBlock {
		block := from[at:min(at+deltaBlock, len(from))]
		if bytes.Equal(block, to[at:at+len(block)]) { // much faster than by words
			continue
		}
		for words := changedWords(block, to[at:at+len(block)]); words != 0; words &= words - 1 {
			word := at + 8*bits.TrailingZeros32(words)
			d := binary.LittleEndian.Uint64(from[word:]) ^ binary.LittleEndian.Uint64(to[word:])
			if first := word + bits.TrailingZeros64(d)/8; first > end+rangeGap {
				dst = appendRange(dst, from, to, last, start, end)
				if start != end {
					last = end
				}
				start = first
			}
			end = word + 8 - bits.LeadingZeros64(d)/8
		}
	}
	dst = appendRange(dst, from, to, last, start, end)
	if start != end {
		last = end
	}
	return dst, last + position
}

// changedWords returns a bit for each word that differs. It doesn't branch, because a processor
// can't predict these words.
func changedWords(from, to []byte) (words uint32) {
	line := 0
	for ; line+arena_c.LineSize <= len(from); line += arena_c.LineSize {
		a, b := (*[arena_c.LineSize]byte)(from[line:]), (*[arena_c.LineSize]byte)(to[line:])
		differ := func(i int) uint32 {
			d := binary.LittleEndian.Uint64(a[8*i:]) ^ binary.LittleEndian.Uint64(b[8*i:])
			return uint32((d|-d)>>63) << i
		}
		words |= (differ(0) | differ(1) | differ(2) | differ(3) |
			differ(4) | differ(5) | differ(6) | differ(7)) << (line / 8)
	}
	for ; line < len(from); line += 8 { // the end of a run
		if binary.LittleEndian.Uint64(from[line:]) != binary.LittleEndian.Uint64(to[line:]) {
			words |= 1 << (line / 8)
		}
	}
	return words
}

// appendRange appends [start, end), unless it is empty. The range before it ends at last.
func appendRange(dst, from, to []byte, last, start, end int) []byte {
	n := end - start
	if n == 0 {
		return dst
	}
	dst = slices.Grow(dst, rangeSizeMax+max(n, 8))
	dst = appendCount(appendCount(dst, start-last), n)
	at := len(dst)
	dst = dst[:at+max(n, 8)]
	if n <= 8 && start+8 <= len(to) { // the usual case: copy a whole word, and cut it
		d := binary.LittleEndian.Uint64(from[start:]) ^ binary.LittleEndian.Uint64(to[start:])
		binary.LittleEndian.PutUint64(dst[at:], d)
	} else {
		subtle.XORBytes(dst[at:], from[start:end], to[start:end])
	}
	return dst[:at+n]
}

// appendCount is binary.AppendUvarint with a fast path for small counts.
func appendCount(dst []byte, n int) []byte {
	switch {
	case n < 1<<7:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, byte(n)|0x80, byte(n>>7))
	}
	return binary.AppendUvarint(dst, uint64(n))
}

// Apply makes a snapshot of the ring from a delta of another program's ring and from the delta's
// base, a snapshot that this ring must hold. Apply returns the new snapshot's number. It checks
// every byte of the delta, and works in spare memory. Apply fails and changes nothing in these
// cases:
//
//   - The delta is damaged, or of another state or version. The error names a byte of the delta.
//   - The ring doesn't hold the base, or holds another snapshot with the base's number. A region
//     isn't a state region, or was loaded again or rewound.
//   - The resulting snapshot fails a check, a function of [State.Verify] returns an error, or a
//     heap needs more than the most of [State.Heap].
//
// Play that continues from the new snapshot can harm only the game's own data. The control words of
// pools, scopes and arenas are as play could leave them, except in data of a C library. Apply
// checks the bools and links in all values that the root, pools, containers and [Values] lead to.
// Each bool is 0 or 1. Each link (an arena.Ptr or arena.Slice) leads to values of the state, or to
// values passed to [Readable], or its Get returns nil. A link's target never overlaps control
// words, nor a bool or link of another type. A number, such as an index, a length or an enum, may
// have any value, and an arena.Slice may differ from the loader's. Check the numbers and slices in
// a function passed to [State.Verify].
//
// Apply copies and hashes one snapshot, hashes the base if its hash isn't known, and checks pools,
// bools and links. The first call makes Go allocations; if a type contains a link, they take about
// half the size of the state. A later call makes some only if the snapshot has more links or blocks
// than those before.
func (r *Ring) Apply(delta []byte) (number uint64, err error) {
	if err := r.states("Apply"); err != nil {
		return 0, err
	}
	bad := func(at int, text string, args ...any) (uint64, error) {
		return 0, fmt.Errorf("save: a delta for region %s, byte %d: %w", r.parts[0].saved.Name, at,
			fmt.Errorf(text, args...))
	}
	if len(delta) < deltaHeader {
		return bad(len(delta), "it ends within its header of %d bytes", deltaHeader)
	}
	var head deltaHead
	for i, word := range head.words() {
		*word = binary.LittleEndian.Uint64(delta[8*i:])
	}
	sum := uint64(sumOf(delta[:deltaSummed]))
	switch changes := uint64(len(delta) - deltaHeader); {
	case (head.magic^deltaMagic)&^deltaVersion != 0:
		return bad(0, "it is no delta")
	case head.magic != deltaMagic:
		return bad(7, "it has version %q, and this program reads %q", delta[7:8], "1")
	case head.sum&(1<<deltaOf-1) != sum:
		return bad(deltaSummed, "the header is damaged: its checksum is %#x, and it says %#x", sum,
			head.sum&(1<<deltaOf-1))
	case uint32(head.sum>>deltaOf) != r.of:
		return bad(deltaSummed+4, "its state depends on other data (State.Of), with the checksum %#x; here "+
			"it depends on %s, with %#x", head.sum>>deltaOf, r.subjects(), r.of)
	case head.size != uint64(r.flatSize):
		return bad(8, "its snapshots have %d bytes, and %d here", head.size, r.flatSize)
	case head.changes != changes:
		return bad(16, "the header says that %d bytes follow it, and %d do", head.changes, changes)
	}
	base, err := r.state("Apply", head.base)
	if err != nil {
		return bad(24, "its base: %w", err)
	}
	if base.sum() != head.baseHash {
		return bad(40, "its base, snapshot %d, has hash %#x there and %#x here: the two games "+
			"differ from then on", head.base, head.baseHash, base.sum())
	}
	to := r.empty(head.number)
	defer r.refused(to)
	flat := r.zeroFlat(to)
	r.flatten(flat, base.bytes())
	changes := delta[deltaHeader:]
	if at, what := applyChanges(flat, changes, xorRange); what != "" {
		return bad(deltaHeader+at, "%s", what)
	}
	used, err := r.repack(to.image, flat)
	if err != nil {
		return bad(deltaHeader, "it makes a state that this program can't produce, or that its ring can't hold: %w",
			err)
	}
	hash := hashOf(to.image[:used])
	if hash != head.hash {
		return bad(48, "it is damaged: it makes a snapshot with hash %#x, and says %#x", hash, head.hash)
	}
	if err := r.admit(flat, head.number); err != nil {
		return bad(deltaHeader, "it makes a state that this program can't produce: %w", err)
	}
	if !r.isFlat() {
		r.wipe(to.image[:used])
		at, left := applyChanges(flat, changes, isCleared)
		if left != "" || !r.isWiped(base.bytes()) {
			return bad(deltaHeader+at, "it is damaged: it leaves bytes in the free part of a heap")
		}
		r.isZero = true
	}
	r.holdOutside(to, head.number, used)
	to.hash, to.hashed = hash, true
	return head.number, nil
}

// xorRange makes the changes of a range.
func xorRange(to, changes []byte) bool {
	subtle.XORBytes(to, to, changes)
	return true
}

// isCleared reports whether a range has zeros.
func isCleared(to, _ []byte) bool { return isZero(to) }

// applyChanges calls do for each range of an image with its bytes and the changes. It returns the
// first error and its byte, or "". A range that do refuses is an error.
func applyChanges(image, changes []byte, do func(to, changes []byte) bool) (at int, what string) {
	to := uint64(0)
	for at < len(changes) {
		skip, n := binary.Uvarint(changes[at:])
		if n <= 0 {
			return at, "the number of bytes to skip is no varint"
		}
		length, m := binary.Uvarint(changes[at+n:])
		if m <= 0 {
			return at + n, "the number of bytes that changed is no varint"
		}
		left := uint64(len(image)) - to
		switch begin := at + n + m; {
		case skip > left || length > left-skip:
			return at, fmt.Sprintf("a range skips %d bytes and changes %d, and the snapshot has %d more",
				skip, length, left)
		case length == 0:
			return at + n, "a range of no bytes"
		case length > uint64(len(changes)-begin):
			return at + n, fmt.Sprintf("a range changes %d bytes, and the delta has %d more", length,
				len(changes)-begin)
		default:
			if !do(image[to+skip:][:length], changes[begin:][:length]) {
				return at, "refused"
			}
			at, to = begin+int(length), to+skip+length
		}
	}
	return 0, ""
}
