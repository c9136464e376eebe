package arena

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Allocator is what every arena does that hands out bytes of any size: size bytes aligned to align, not zeroed, nil when
// it is full. What an arena can do beyond is an interface of its own, and what it can't do it has no method for: no Free
// that does nothing. A Pool is no Allocator, because its chunks have one size.
type Allocator interface {
	Alloc(size, align uint64) unsafe.Pointer
}

// Freer is an Allocator that takes single blocks back; which ones and in which order says the arena: a Stack its last, a
// Ring its oldest. Another is refused with an error.
type Freer interface {
	Allocator
	Free(p unsafe.Pointer) error
}

// Sizer tells the size of a live block: what was asked for, or what was given if that is more.
type Sizer interface {
	Allocator
	SizeOf(p unsafe.Pointer) uint64
}

// Marker frees all that is newer than a mark.
type Marker interface {
	Allocator
	Mark() Mark
	Rewind(m Mark) error
}

// Resetter frees everything.
type Resetter interface {
	Allocator
	Reset()
}

// Resizer makes a block longer or shorter where it lies; old is the size it has. False: no room, and nothing has changed.
type Resizer interface {
	Allocator
	Resize(p unsafe.Pointer, old, size uint64) (bool, error)
}

var (
	_ Marker    = Linear{}
	_ Resetter  = Linear{}
	_ Resizer   = Linear{}
	_ Marker    = LinearFar{}
	_ Resetter  = LinearFar{}
	_ Freer     = Stack{}
	_ Marker    = Stack{}
	_ Resetter  = Stack{}
	_ Freer     = StackFar{}
	_ Marker    = StackFar{}
	_ Resetter  = StackFar{}
	_ Freer     = Ring{}
	_ Resetter  = Ring{}
	_ Allocator = Frame{}
	_ Allocator = FrameHandle{}
	_ Freer     = Heap{}
	_ Sizer     = Heap{}
	_ Resetter  = Heap{}
	_ Sizer     = SizedAllocator{}
	_ Sizer     = SizedFreer{}
	_ Freer     = SizedFreer{}
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

// SizedAllocator is an Allocator with a word before each block that holds its size.
type SizedAllocator struct{ a Allocator }

// SizedFreer is a SizedAllocator that frees.
type SizedFreer struct {
	SizedAllocator
	free Freer
}

// Sized adds a size to the blocks of any arena, so that it can tell SizeOf. It costs 8 bytes a block, or the block's
// alignment if that is more. Blocks of a itself and of what Sized gave don't mix.
func Sized(a Allocator) SizedAllocator { return SizedAllocator{a} }

// SizedFree is Sized for an arena that frees.
func SizedFree(a Freer) SizedFreer { return SizedFreer{SizedAllocator{a}, a} }

// The word before a block: its size, and above sizeBits the power of two by which the block lies behind its begin.
const (
	sizeWord = 8
	sizeBits = 56
)

// Alloc is that of the arena behind it.
func (s SizedAllocator) Alloc(size, align uint64) unsafe.Pointer {
	m := mask("Sized", size, align)
	front := max(m+1, sizeWord)
	if size+front >= arena_c.OffsetMax {
		return nil // no block is as large
	}
	p := s.a.Alloc(size+front, front)
	if p == nil {
		return nil
	}
	p = unsafe.Add(p, front)
	*sizeOf(p) = uint64(bits.TrailingZeros64(front))<<sizeBits | size
	return p
}

// SizeOf is the size that was asked for. p must be what Alloc gave, and live: the word before anything else says nothing.
func (s SizedAllocator) SizeOf(p unsafe.Pointer) uint64 { return *sizeOf(p) & (1<<sizeBits - 1) }

// Free is that of the arena behind it, for a p that Alloc gave.
func (s SizedFreer) Free(p unsafe.Pointer) error {
	if p == nil {
		return s.free.Free(nil)
	}
	if power := *sizeOf(p) >> sizeBits; power >= 3 && 1<<power <= arena_c.AlignMax {
		p = unsafe.Add(p, -(1 << power))
	} // else it is no block of ours, nor then one that the arena behind has given
	return s.free.Free(p)
}

func sizeOf(p unsafe.Pointer) *uint64 { return (*uint64)(unsafe.Add(p, -sizeWord)) }
