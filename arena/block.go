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

// checkBlock says what a block lacks that is to be a header and a line more, so that the C core's refusal has words.
func checkBlock(what string, block []byte, header int) error {
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(block))); at%arena_c.LineSize != 0 {
		return fmt.Errorf("arena: a %s's block begins at a multiple of %d, this one %d past one; NewBlock makes such", what,
			arena_c.LineSize, at%arena_c.LineSize)
	}
	if least := header + arena_c.LineSize; len(block) < least {
		return fmt.Errorf("arena: a %s needs a block of at least %d bytes, this one has %d", what, least, len(block))
	}
	if uint64(len(block)) >= arena_c.OffsetMax-arena_c.AlignMax {
		return fmt.Errorf("arena: a %s's block is below %d bytes, this one has %d", what, uint64(arena_c.OffsetMax-arena_c.AlignMax),
			len(block))
	}
	return nil
}

// mask is align - 1 of a size and an alignment that are within bounds; anything else is a caller's bug.
func mask(what string, size, align uint64) uint64 {
	if size >= arena_c.OffsetMax || align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(fmt.Sprintf("arena: BUG: %s.Alloc of %d bytes aligned to %d: a size is below 2^38, an align a power of two up to 1 MiB", what,
			size, align))
	}
	return align - 1
}
