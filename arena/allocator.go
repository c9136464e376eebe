package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Allocator is what every arena does that hands out bytes of any size: size bytes aligned to align, not zeroed, nil when
// it is full. What an arena can do beyond is an interface of its own, and what it can't do it has no method for: no Free
// that does nothing. A BlockPool is no Allocator, because its chunks have one size.
type Allocator interface {
	Alloc(size, align uint64) unsafe.Pointer
}

// Freer is an Allocator that takes single blocks back; which ones and in which order says the arena: a Stack its last, a
// Ring its oldest. Another is refused with an error.
type Freer interface {
	Allocator
	Free(p unsafe.Pointer) error
}

// Sizer tells the size of a live block: what was asked for, or what was given if that is more. Another address is refused
// with an error.
type Sizer interface {
	Allocator
	SizeOf(p unsafe.Pointer) (uint64, error)
}

var (
	_ Allocator = Linear{}
	_ Allocator = LinearFar{}
	_ Freer     = Stack{}
	_ Freer     = StackFar{}
	_ Freer     = Ring{}
	_ Allocator = Frame{}
	_ Allocator = FrameHandle{}
	_ Freer     = Heap{}
	_ Sizer     = Heap{}
)

// BlockFrom gives a block of size bytes of another arena, for an arena to be made on. It is aligned to 64 and dies with
// what it was allocated from. Nil when that is full. For one in a scope there is scope.Scope.BytesUnzeroed.
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
