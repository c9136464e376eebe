package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// NewBlock makes a block of size bytes on the Go heap, aligned to align, a power of two from 64 to 1 MiB. For tests
// and tools: a budget has its memory from the system.
func NewBlock(size, align int) []byte {
	if size < 0 || align < arena_c.LineSize || align > arena_c.AlignMax || align&(align-1) != 0 {
		panic(fmt.Sprintf("arena: BUG: NewBlock of %d bytes aligned to %d; an alignment is a power of two from 64 to 1 MiB", size, align))
	}
	raw := make([]byte, size+align-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & uintptr(align-1))
	return raw[skip : skip+size : skip+size]
}

// roomIn is the room for an arena of a kind in a block, which has a header and a line more at least. An
// error says what the block lacks: the C core's refusal has no words.
func roomIn(block []byte, what string, kind arena_c.RoomKind, header int) (arena_c.Room, error) {
	first := unsafe.Pointer(unsafe.SliceData(block))
	if past := uintptr(first) % arena_c.LineSize; past != 0 {
		return arena_c.Room{}, fmt.Errorf("arena: a %s's block begins at a multiple of %d, this one %d past one; NewBlock "+
			"makes such, and in a scope BytesUnzeroed(n, 64)", what, arena_c.LineSize, past)
	}
	if least := header + arena_c.LineSize; len(block) < least {
		return arena_c.Room{}, fmt.Errorf("arena: a %s needs a block of at least %d bytes, this one has %d", what, least, len(block))
	}
	if most := uint64(arena_c.OffsetMax - arena_c.AlignMax); uint64(len(block)) >= most {
		return arena_c.Room{}, fmt.Errorf("arena: a %s's block is below %d bytes, this one has %d", what, most, len(block))
	}
	room := arena_c.RoomOf(kind, first, uint64(len(block)))
	return room, room.Err()
}

// asked is what an arena is asked for, as its header takes it: what no block has is full like any other size that there is no
// room for. An align that is none is a caller's bug.
func asked(what string, size, align uint64) (uint64, uint64) {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(fmt.Sprintf("arena: BUG: %s.Alloc of %d bytes aligned to %d: an align is a power of two up to 1 MiB", what, size, align))
	}
	return min(size, arena_c.OffsetMax), align - 1
}

// made is the header of an arena; a zero value has none.
func made[H any](header *H, what zero) *H {
	if header == nil {
		panic(what)
	}
	return header
}

// zero is the name of a type whose zero value was used.
type zero string

func (z zero) Error() string { return "arena: BUG: a zero " + string(z) + ": it was never made" }
