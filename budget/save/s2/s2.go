// Package s2 packs the deltas of package budget/save: what changed little has many zeros, which
// S2, a fast relative of Snappy, makes small. It is a module of its own, since the library needs
// none but Go's.
//
//	packed = s2.Compress(packed[:0], delta)        // and goes out
//	delta, err = s2.Decompress(delta[:0], packed, 2*ring.Size()+64)
//	number, err = ring.Apply(delta)
//
// A delta of scattered changes, or of a hundred bytes, gets no smaller: measure yours (the
// benchmark shows how).
package s2

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Compress appends the packed delta to dst, which has no byte in common with it. A delta of 4 GiB
// or more panics. Cost: a few bytes a ns; no Go allocation when dst has room for a sixth more
// than the delta has, and 32 bytes.
func Compress(dst, delta []byte) []byte {
	start := len(dst)
	if most := s2.MaxEncodedLen(len(delta)); most > 0 {
		dst = slices.Grow(dst, most)
	}
	return dst[:start+len(s2.Encode(dst[start:start], delta))]
}

// Decompress appends to dst what was packed, unless it is more than `most` bytes: nobody who
// sends a few has it take more memory than that. A delta has less than 2*ring.Size()+64. An
// error, of damaged bytes too, leaves dst as it was; what isn't noticed here [save.Ring.Apply]
// notices. Cost: a few bytes a ns; no Go allocation when dst has room.
//
// [save.Ring.Apply]: https://pkg.go.dev/github.com/upfront-mem/upfront/budget/save#Ring.Apply
func Decompress(dst, packed []byte, most int) ([]byte, error) {
	size, err := s2.DecodedLen(packed)
	if err != nil {
		return dst, fmt.Errorf("save/s2: byte 0: %w", err)
	}
	if size > most {
		return dst, fmt.Errorf("save/s2: byte 0: %d bytes were packed, and %d are the most that "+
			"is asked for",
			size, most)
	}
	start := len(dst)
	grown := slices.Grow(dst, size)
	if _, err = s2.Decode(grown[start:start:start+size], packed); err != nil {
		return dst, fmt.Errorf("save/s2: behind byte 0, %d bytes: %w", len(packed), err)
	}
	return grown[:start+size], nil
}
