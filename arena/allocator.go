package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Allocator is what every arena does that hands out bytes of any size: size bytes aligned to align,
// a power of two up to 1 MiB, not zeroed; nil when it is full. Of a size there is no bound: what no
// block has, 2^38 bytes or more, is full, in Go and in C. Any other align is a caller's bug and
// panics; C says NULL. What an arena can do beyond is an interface of its own, and what it can't do
// it has no method for: no Free that does nothing. A BlockPool is no Allocator, because its chunks
// have one size.
type Allocator interface {
	Alloc(size, align uint64) unsafe.Pointer
}

// Freer is an Allocator that takes single blocks back; which ones and in which order says the
// arena: a Stack its last, a Ring its oldest. Another is refused with an error.
type Freer interface {
	Allocator
	Free(p unsafe.Pointer) error
}

// Reallocator is a Freer that takes any block back in any order, knows its size, which is what was
// asked for or what was given if that is more, and gives it another: a Heap, a Buddy, or a Shared
// or a Proxy before one. An address that is no live block is refused with an error.
type Reallocator interface {
	Freer
	SizeOf(p unsafe.Pointer) (uint64, error)
	Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error)
}

// Stats counts the bytes of an arena, or of one end of it.
type Stats struct {
	Size uint64 // its room when it is empty; of a Frame, that of one buffer
	Used uint64 // what it has given and not back, with padding
	Free uint64 // the rest, which two ends share
	Peak uint64 // the highest Used
}

// refused is the error for a code of the core's; nil for OK.
func refused(what string, code arena_c.Code) error {
	if code == arena_c.OK {
		return nil
	}
	return fmt.Errorf("arena: BUG: %s: %v", what, code)
}

// refusedMark is refused for a Rewind: it names the mark.
func refusedMark(what string, m Mark, code arena_c.Code) error {
	if code == arena_c.OK {
		return nil
	}
	return fmt.Errorf("arena: BUG: %s.Rewind to %d: %v", what, m, code)
}

// BlockFrom gives a block of size bytes of another arena, for an arena to be made on. It is aligned
// to 64 and dies with what it was allocated from. Nil when that is full. For one in a scope there
// is scope.Scope.BytesUnzeroed.
func BlockFrom(a Allocator, size int) []byte {
	if size < 0 {
		panic(fmt.Sprintf("arena: BUG: BlockFrom of %d bytes", size))
	}
	p := a.Alloc(uint64(size), arena_c.LineSize)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), size)
}
