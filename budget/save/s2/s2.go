// Package s2 compresses the deltas of package budget/save with S2, a fast relative of Snappy. A
// delta of small changes contains many zeros, and often becomes much smaller.
//
//	packed = s2.Compress(packed[:0], delta) // to send
//	delta, err = s2.Decompress(delta[:0], packed, 2*ring.Size()+64)
//	number, err = ring.Apply(delta)
//
// A delta of scattered changes, or of only a hundred bytes, doesn't become smaller. Measure your
// deltas with the benchmark. The package is a module of its own, because package save itself needs
// no other module.
package s2

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Compress appends the compressed delta to dst, which must not overlap delta, and returns the
// result. Compress panics for a delta of about 4 GiB or more (on 32-bit systems about 2 GiB).
// Compress makes no Go allocation if dst has capacity for 7/6 of the delta's size and 32 bytes
// more.
func Compress(dst, delta []byte) []byte {
	start := len(dst)
	if most := s2.MaxEncodedLen(len(delta)); most > 0 {
		dst = slices.Grow(dst, most)
	}
	return dst[:start+len(s2.Encode(dst[start:start], delta))]
}

// Decompress appends the decompressed delta to dst. If Decompress finds packed damaged, or if the
// delta has more than most bytes, Decompress returns dst unchanged and an error. So a few hostile
// bytes can't take much more memory than most. A delta has fewer than 2*ring.Size()+64 bytes.
// [save.Ring.Apply] finds damage that Decompress doesn't find. Decompress makes no Go allocation if
// dst has enough capacity.
//
// [save.Ring.Apply]: https://pkg.go.dev/github.com/upfront-mem/upfront/budget/save#Ring.Apply
func Decompress(dst, packed []byte, most int) ([]byte, error) {
	size, err := s2.DecodedLen(packed)
	if err != nil {
		return dst, fmt.Errorf("save/s2: byte 0: %w", err)
	}
	if size > most {
		return dst, fmt.Errorf("save/s2: byte 0: the delta has %d bytes, and the caller allows %d",
			size, most)
	}
	start := len(dst)
	grown := slices.Grow(dst, size)
	if _, err = s2.Decode(grown[start:start:start+size], packed); err != nil {
		return dst, fmt.Errorf("save/s2: in %d bytes: %w", len(packed), err)
	}
	return grown[:start+size], nil
}
