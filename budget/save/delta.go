package save

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// A delta is a header of eight words and the ranges of bytes that changed, in order: two varints,
// how many bytes before it are as they were and how many it has, and these, each XORed with what
// it was. So what changed little has many zeros, which packs well. All numbers are little-endian.
const (
	deltaMagic   = 0x31_61_74_6c_65_64_70_75 // "updelta1": the last is the version
	deltaVersion = 0xff << 56
	deltaHeader  = 8 * 8
	deltaSummed  = 7 * 8 // bytes of the header; the last word's lower half is their CRC32C

	// deltaOf is where the last word has the sum of the subjects, of 32 bits: 0 without any.
	deltaOf = 32

	rangeSizeMax = 2 * binary.MaxVarintLen64 // of the two varints
	rangeGap     = 2                         // equal bytes that cost less than a range more
	deltaBlock   = 4 * arena_c.LineSize      // is compared at once
)

// deltaHead is a delta's header.
type deltaHead struct{ magic, size, changes, base, number, baseHash, hash, sum uint64 }

func (h *deltaHead) words() [8]*uint64 {
	return [...]*uint64{&h.magic, &h.size, &h.changes, &h.base, &h.number, &h.baseHash, &h.hash,
		&h.sum}
}

// put writes the header, with its checksum and the sum of the subjects.
func (h *deltaHead) put(to []byte, of uint32) {
	for i, word := range h.words() {
		if 8*i == deltaSummed {
			*word = uint64(sumOf(to[:deltaSummed])) | uint64(of)<<deltaOf
		}
		binary.LittleEndian.PutUint64(to[8*i:], *word)
	}
}

// Delta appends to dst what makes snapshot number of snapshot base: [Ring.Apply] does it, in the
// same program on any machine. It has 64 bytes, and 3 for each place that changed beside the
// bytes that did. Cost: a look at both snapshots, and the hash of each unless it is known
// already; no Go allocation when dst has room. An error, a snapshot that the ring doesn't hold or
// a region that is no state region, leaves dst as it was.
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
	dst = appendChanges(dst, from.image, to.image)
	head := deltaHead{magic: deltaMagic, size: uint64(len(to.image)), base: base, number: number,
		changes: uint64(len(dst) - start - deltaHeader), baseHash: from.sum(), hash: to.sum()}
	head.put(dst[start:], r.of)
	return dst, nil
}

// appendChanges appends the ranges in which two images differ. pre: they have as many whole lines.
func appendChanges(dst, from, to []byte) []byte {
	last, start, end := 0, 0, 0 // the range at work, and the end of the one before
	for at := 0; at < len(from); at += deltaBlock {
		block := from[at:min(at+deltaBlock, len(from))]
		if bytes.Equal(block, to[at:at+len(block)]) { // much faster than words
			continue
		}
		for words := changedWords(block, to[at:at+len(block)]); words != 0; words &= words - 1 {
			word := at + 8*bits.TrailingZeros32(words)
			d := binary.LittleEndian.Uint64(from[word:]) ^ binary.LittleEndian.Uint64(to[word:])
			if first := word + bits.TrailingZeros64(d)/8; first > end+rangeGap {
				dst = appendRange(dst, from, to, last, start, end)
				last, start = end, first
			}
			end = word + 8 - bits.LeadingZeros64(d)/8
		}
	}
	return appendRange(dst, from, to, last, start, end)
}

// changedWords has a bit for each word in which two blocks differ. It doesn't branch: which words
// those are, no processor foresees.
func changedWords(from, to []byte) (words uint32) {
	for line := 0; line < len(from); line += arena_c.LineSize {
		a, b := (*[arena_c.LineSize]byte)(from[line:]), (*[arena_c.LineSize]byte)(to[line:])
		differ := func(i int) uint32 {
			d := binary.LittleEndian.Uint64(a[8*i:]) ^ binary.LittleEndian.Uint64(b[8*i:])
			return uint32((d|-d)>>63) << i
		}
		words |= (differ(0) | differ(1) | differ(2) | differ(3) |
			differ(4) | differ(5) | differ(6) | differ(7)) << (line / 8)
	}
	return words
}

// appendRange appends [start, end), unless it is empty; the range before it ends at last.
func appendRange(dst, from, to []byte, last, start, end int) []byte {
	n := end - start
	if n == 0 {
		return dst
	}
	dst = slices.Grow(dst, rangeSizeMax+max(n, 8))
	dst = appendCount(appendCount(dst, start-last), n)
	at := len(dst)
	dst = dst[:at+max(n, 8)]
	if n <= 8 && start+8 <= len(to) { // most are: what is behind them is cut off
		d := binary.LittleEndian.Uint64(from[start:]) ^ binary.LittleEndian.Uint64(to[start:])
		binary.LittleEndian.PutUint64(dst[at:], d)
	} else {
		subtle.XORBytes(dst[at:], from[start:end], to[start:end])
	}
	return dst[:at+n]
}

// appendCount is binary.AppendUvarint, at once for what most counts are.
func appendCount(dst []byte, n int) []byte {
	switch {
	case n < 1<<7:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, byte(n)|0x80, byte(n>>7))
	}
	return binary.AppendUvarint(dst, uint64(n))
}

// Apply makes a snapshot of one that the ring holds, by a delta of another program's ring, and
// says its number. What comes is trusted in nothing: it is worked out and looked at beside what
// the ring holds. An error says at which byte of the delta what is wrong: it is damaged, of
// another state or version, its base isn't held or is another here, or what it makes is no state
// that play could have left; then nothing has changed.
//
// Play that goes on from what Apply takes harms the game alone. Words of pools and scopes are as
// play leaves them. Each bool is 0 or 1. An arena.Ptr or arena.Slice leads to values of the state,
// or to those that [Readable] named: never over the program's own words, nor over another Ptr,
// Slice or bool, unless that is of the same type. This holds for all that the root, pools and
// [Values] lead to. Numbers are the game's own: an index, a length or an enum may be any, and an
// arena.Slice may be another than the loader's. A function of [State.Verify] checks them.
//
// Cost: a copy of a snapshot and its hash, that of the base unless it is known already, and a look
// at the pools, at bools and at what leads anywhere; no Go allocation but the first time, where the
// types have an arena.Ptr or arena.Slice: then 4 bytes for each 8 of the state.
func (r *Ring) Apply(delta []byte) (number uint64, err error) {
	if err := r.states("Apply"); err != nil {
		return 0, err
	}
	bad := func(at int, text string, args ...any) (uint64, error) {
		return 0, fmt.Errorf("save: a delta for region %s, byte %d: %w", r.parts[0].saved.Name(), at,
			fmt.Errorf(text, args...))
	}
	if len(delta) < deltaHeader {
		return bad(len(delta), "it ends, and its header has %d bytes", deltaHeader)
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
		return bad(7, "it is of version %q, and this program knows %q", delta[7:8], "1")
	case head.sum&(1<<deltaOf-1) != sum:
		return bad(deltaSummed, "the header is damaged: its sum is %#x, and it says %#x", sum,
			head.sum&(1<<deltaOf-1))
	case uint32(head.sum>>deltaOf) != r.of:
		return bad(deltaSummed+4, "its state is of other data, sum %#x in all, and here it is of %s, "+
			"%#x in all", head.sum>>deltaOf, r.subjects(), r.of)
	case head.size != uint64(r.Size()):
		return bad(8, "it is of snapshots of %d bytes, and they have %d here", head.size, r.Size())
	case head.changes != changes:
		return bad(16, "%d bytes behind the header, and there are %d", head.changes, changes)
	}
	base, err := r.state("Apply", head.base)
	if err != nil {
		return bad(24, "its base: %w", err)
	}
	if base.sum() != head.baseHash {
		return bad(40, "its base is another snapshot %d than the one held here, of hash %#x and not "+
			"%#x: the two have parted", head.base, head.baseHash, base.sum())
	}
	copy(r.spare, base.image)
	if at, what := applyChanges(r.spare, delta[deltaHeader:]); what != "" {
		return bad(deltaHeader+at, "%s", what)
	}
	hash := hashOf(r.spare)
	if hash != head.hash {
		return bad(48, "it makes a snapshot of hash %#x, and says %#x: it is damaged", hash, head.hash)
	}
	if err := r.admit(head.number); err != nil {
		return bad(deltaHeader, "it makes what play doesn't leave: %w", err)
	}
	to := r.hold(head.number)
	to.hash, to.hashed = hash, true
	return head.number, nil
}

// applyChanges XORs ranges into an image, or says where one is wrong.
func applyChanges(image, changes []byte) (at int, what string) {
	to := uint64(0) // in the image
	for at < len(changes) {
		skip, n := binary.Uvarint(changes[at:])
		if n <= 0 {
			return at, "no number of bytes to skip"
		}
		length, m := binary.Uvarint(changes[at+n:])
		if m <= 0 {
			return at + n, "no number of bytes that changed"
		}
		left := uint64(len(image)) - to
		switch begin := at + n + m; {
		case skip > left || length > left-skip:
			return at, fmt.Sprintf("%d bytes to skip and %d that changed, and the snapshot has %d more",
				skip, length, left)
		case length == 0:
			return at + n, "a range of no bytes"
		case length > uint64(len(changes)-begin):
			return at + n, fmt.Sprintf("%d bytes that changed, and the delta has %d more", length,
				len(changes)-begin)
		default:
			from := image[to+skip:][:length]
			subtle.XORBytes(from, from, changes[begin:][:length])
			at, to = begin+int(length), to+skip+length
		}
	}
	return 0, ""
}
