package save

import (
	"encoding/binary"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Bytes of a word: each says that a chunk is live; each has its lowest bit, its highest.
const (
	allLive = arena_c.ChunkLive * ones
	ones    = 0x0101_0101_0101_0101
	tops    = 0x8080_8080_8080_8080
)

// runEnd is where the chunks end that are live, or not, as the one at `from` is. Their states are given, the last
// chunk's first. pre: from < len(states).
func runEnd(states []byte, from int) (to int, live bool) {
	left := states[:len(states)-from]
	live = left[len(left)-1] == arena_c.ChunkLive
	for len(left) >= 8 {
		other := binary.LittleEndian.Uint64(left[len(left)-8:]) ^ allLive
		if some := (other - ones) &^ other & tops; live && other != 0 || !live && some != 0 {
			break // one of the eight is of the other kind
		}
		left = left[:len(left)-8]
	}
	for len(left) > 0 && (left[len(left)-1] == arena_c.ChunkLive) == live {
		left = left[:len(left)-1]
	}
	return len(states) - len(left), live
}

func startOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
