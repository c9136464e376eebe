package arena

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// NewBlock allocates a block of size bytes on the Go heap, aligned to align, a power of two from 64
// to 1 MiB. It is for tests and tools; a budget takes its memory from the system. NewBlock panics
// if align is out of range, or if size is larger than any arena's block.
func NewBlock(size, align int) []byte {
	const most = min(arena_c.OffsetMax, math.MaxInt) - arena_c.AlignMax
	isAlign := align >= arena_c.LineSize && align <= arena_c.AlignMax && align&(align-1) == 0
	if size < 0 || uint64(size) >= most || !isAlign {
		panic(fmt.Sprintf("arena: BUG: NewBlock of %d bytes aligned to %d; a block has less than %d bytes, and its "+
			"alignment is a power of two from 64 to 1 MiB", size, align, uint64(most)))
	}
	raw := make([]byte, size+align-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & uintptr(align-1))
	return raw[skip : skip+size : skip+size]
}

// roomIn returns the block as the memory for an arena. The block must have space for the header and
// one more cache line. Unlike the C core's refusal, the error names the reason.
func roomIn(block []byte, what string, kind arena_c.RoomKind, header int) (arena_c.Room, error) {
	first := unsafe.Pointer(unsafe.SliceData(block))
	if past := uintptr(first) % arena_c.LineSize; past != 0 {
		return arena_c.Room{}, fmt.Errorf(
			"arena: a %s's block must begin at a multiple of %d, and this one begins %d past one: allocate it "+
				"with NewBlock, or in a scope with BytesUnzeroed(n, 64)", what, arena_c.LineSize, past)
	}
	if least := header + arena_c.LineSize; len(block) < least {
		return arena_c.Room{}, fmt.Errorf("arena: a %s needs a block of at least %d bytes, this one has %d", what,
			least, len(block))
	}
	if most := uint64(arena_c.OffsetMax - arena_c.AlignMax); uint64(len(block)) >= most {
		return arena_c.Room{}, fmt.Errorf("arena: a %s's block must be below %d bytes, this one has %d", what, most,
			len(block))
	}
	room := arena_c.RoomOf(kind, first, uint64(len(block)))
	return room, room.Err()
}

// asked returns an Alloc's size and alignment mask as an arena's header takes them. A size that no
// block has becomes OffsetMax, which no arena can serve. A bad align panics.
func asked(what string, size, align uint64) (uint64, uint64) {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(fmt.Sprintf("arena: BUG: %s.Alloc of %d bytes aligned to %d: "+
			"the alignment must be a power of two up to 1 MiB", what, size, align))
	}
	return min(size, arena_c.OffsetMax), align - 1
}

// made returns the header of an arena, and panics for a zero value.
func made[H any](header *H, what zero) *H {
	if header == nil {
		panic(what)
	}
	return header
}

type zero string

func (z zero) Error() string { return "arena: BUG: a zero " + string(z) + ": it was never made" }
