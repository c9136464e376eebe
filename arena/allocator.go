package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Allocator is an arena that allocates blocks of any size. Alloc returns size bytes aligned to
// align, not zeroed. It returns nil when the arena is full, and for a size of 2^38 bytes or more.
// The align must be a power of two up to 1 MiB; for any other align Alloc panics, and C's functions
// return NULL.
//
// An arena has methods only for operations that it supports. A BlockPool isn't an Allocator,
// because its chunks have one size.
type Allocator interface {
	Alloc(size, align uint64) unsafe.Pointer
}

// Freer is an Allocator that frees single blocks. A Stack frees only its newest block, and a Ring
// only its oldest. For any other block Free returns an error and changes nothing.
type Freer interface {
	Allocator
	Free(p unsafe.Pointer) error
}

// Reallocator is a Freer that frees its blocks in any order, reports their sizes, and resizes them:
// a Heap, a Buddy, or a Shared or a Proxy in front of one. SizeOf returns the requested size, or
// the size of the whole block if the arena doesn't keep the requested one, as a Buddy. SizeOf, Free
// and Realloc return an error for an address that isn't that of a live block, except that Free(nil)
// does nothing and Realloc(nil, size) allocates.
type Reallocator interface {
	Freer
	SizeOf(p unsafe.Pointer) (uint64, error)
	Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error)
}

// Inner is an arena whose contents package budget/inside can list: a Heap, Buddy, Ring or
// BlockPool.
type Inner interface {
	// Block returns the first byte of the arena's block.
	Block() unsafe.Pointer
}

var _ = []Inner{Heap{}, Buddy{}, Ring{}, BlockPool[byte]{}}

// Stats counts the bytes of an arena, or of one end of it.
type Stats struct {
	Size uint64 // capacity of the empty arena; of a Frame, of one buffer
	Used uint64 // bytes of live blocks, padding included
	Free uint64 // bytes that aren't used; two ends share them
	Peak uint64 // the highest Used
}

// refused returns the error for a code of the core, or nil for OK.
func refused(what string, code arena_c.Code) error {
	if code == arena_c.OK {
		return nil
	}
	why := ""
	switch {
	case code != arena_c.Order:
	case what == "Ring.Free":
		why = ": a Ring frees its oldest block first"
	case what == "Linear.Resize":
		why = ": only the newest block can change its size"
	default:
		why = ": a Stack frees its newest block first"
	}
	return fmt.Errorf("arena: BUG: %s: %v%s", what, code, why)
}

// refusedMark is refused for a Rewind, with the mark in the error.
func refusedMark(what string, m Mark, code arena_c.Code) error {
	if code == arena_c.OK {
		return nil
	}
	why := ""
	if code == arena_c.Order {
		why = ": the mark is past the end of the allocated bytes"
	}
	return fmt.Errorf("arena: BUG: %s.Rewind to %d: %v%s", what, m, code, why)
}
