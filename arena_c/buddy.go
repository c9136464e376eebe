package arena_c

// #include "buddy.h"
// static inline upfront_buddy_found upfront_buddy_block(const upfront_buddy *b, uint64_t offset) {
//     return upfront_buddy_find(b, b->low + (offset - b->first) / b->smallest);
// }
// #cgo noescape upfront_buddy_block
// #cgo nocallback upfront_buddy_block
// static inline void *upfront_buddy_alloc_at(upfront_buddy *b, uint64_t size, uint64_t align, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_buddy_alloc(b, size, align))
// static inline int upfront_buddy_free_at(upfront_buddy *b, void *p, uint32_t site)
//     UPFRONT_AT_SITE(int, upfront_buddy_free(b, p))
// static inline void *upfront_buddy_realloc_at(upfront_buddy *b, void *p, uint64_t size, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_buddy_realloc(b, p, size))
// // They do nothing unless p is a live block of `had` bytes. free_sized_at returns 1 then.
// static inline int upfront_buddy_free_sized_at(upfront_buddy *b, void *p, uint64_t had, uint32_t site) {
//     return upfront_buddy_size_of(b, p) == (int64_t)had ? upfront_buddy_free_at(b, p, site) : 1;
// }
// static inline void *upfront_buddy_realloc_sized_at(upfront_buddy *b, void *p, uint64_t had, uint64_t size,
//     uint32_t site) {
//     return upfront_buddy_size_of(b, p) == (int64_t)had ? upfront_buddy_realloc_at(b, p, size, site) : NULL;
// }
// #cgo noescape upfront_buddy_free_sized_at
// #cgo nocallback upfront_buddy_free_sized_at
// #cgo noescape upfront_buddy_realloc_sized_at
// #cgo nocallback upfront_buddy_realloc_sized_at
// #cgo nocallback upfront_buddy_init
// #cgo noescape upfront_buddy_size
// #cgo nocallback upfront_buddy_size
// #cgo noescape upfront_buddy_alloc_at
// #cgo nocallback upfront_buddy_alloc_at
// #cgo noescape upfront_buddy_free_at
// #cgo nocallback upfront_buddy_free_at
// #cgo noescape upfront_buddy_realloc_at
// #cgo nocallback upfront_buddy_realloc_at
// #cgo noescape upfront_buddy_size_of
// #cgo nocallback upfront_buddy_size_of
// #cgo noescape upfront_buddy_reset
// #cgo nocallback upfront_buddy_reset
// #cgo noescape upfront_buddy_largest
// #cgo nocallback upfront_buddy_largest
// #cgo noescape upfront_buddy_phase
// #cgo nocallback upfront_buddy_phase
// #cgo noescape upfront_buddy_plain
// #cgo nocallback upfront_buddy_plain
// #cgo noescape upfront_buddy_walk
// #cgo nocallback upfront_buddy_walk
import "C"

import "unsafe"

// Buddy is the header of a buddy (buddy.h).
type Buddy struct {
	First, End, Smallest, Low, Root          uint64
	Used, Peak, phase, Reserve, Live         uint64
	Given, Asked, Failed, Scattered, refused uint64
	Damaged, Where, look, Plain, Padded      uint64
	Rest                                     struct{ Blocks, Bytes, Oldest, Newest uint64 }
	Busy, Raced                              uint64
}

// BuddyLeast is the least size of a smallest block, and BuddyMost the largest number of smallest
// blocks.
const (
	BuddyLeast = C.UPFRONT_BUDDY_LEAST
	BuddyMost  = C.UPFRONT_BUDDY_MOST
)

var _ [unsafe.Sizeof(Buddy{})]byte = [unsafe.Sizeof(C.upfront_buddy{})]byte{}

func (b *Buddy) c() *C.upfront_buddy { return (*C.upfront_buddy)(checked(b)) }

// BuddyInit is upfront_buddy_init.
func BuddyInit(r Room, smallest uint64) *Buddy {
	b := C.upfront_buddy_init(r.of(RoomBuddy), C.uint64_t(r.Size), C.uint64_t(smallest))
	return made[Buddy](r, unsafe.Pointer(b))
}

// BuddySize is upfront_buddy_size.
func BuddySize(bytes, smallest uint64) uint64 {
	return uint64(C.upfront_buddy_size(C.uint64_t(bytes), C.uint64_t(smallest)))
}

// outside reports whether p is outside of the buddy. cgo would inspect a Go object there, and panic
// over its pointers.
func (b *Buddy) outside(p unsafe.Pointer) bool {
	return uint64(uintptr(p))-uint64(uintptr(unsafe.Pointer(b))) >= b.End
}

// Alloc is upfront_buddy_alloc.
func (b *Buddy) Alloc(size, align uint64) unsafe.Pointer {
	return crossed(writes(&b.Used),
		C.upfront_buddy_alloc_at(b.c(), C.uint64_t(size), C.uint64_t(align), C.uint32_t(Here(1))))
}

// Free is upfront_buddy_free. In race builds it overwrites the dead block, so that a goroutine that
// still reads it is reported.
func (b *Buddy) Free(p unsafe.Pointer) Code {
	if p == nil {
		return OK
	}
	if b.outside(p) {
		return Foreign
	}
	if Race {
		size, code := b.SizeOf(p)
		if code != OK {
			return code
		}
		raceDead(p, uintptr(size))
	}
	return Code(crossed(writes(&b.Used), C.upfront_buddy_free_at(b.c(), p, C.uint32_t(Here(1)))))
}

// Realloc is upfront_buddy_realloc. After nil, SizeOf reports whether p is the cause. Realloc
// reports the freed bytes to the race detector; if the block moved, they belong to the buddy by
// then.
func (b *Buddy) Realloc(p unsafe.Pointer, size uint64) unsafe.Pointer {
	if p != nil && b.outside(p) {
		return nil
	}
	if !Race || p == nil {
		return crossed(writes(&b.Used), C.upfront_buddy_realloc_at(b.c(), p, C.uint64_t(size), C.uint32_t(Here(1))))
	}
	old, code := b.SizeOf(p)
	q := crossed(writes(&b.Used), C.upfront_buddy_realloc_at(b.c(), p, C.uint64_t(size), C.uint32_t(Here(1))))
	if code != OK || q == nil {
		return q
	}
	if q != p {
		raceWrite(p, uintptr(old))
	} else if kept, _ := b.SizeOf(q); kept < old {
		raceWrite(unsafe.Add(p, kept), uintptr(old-kept))
	}
	return q
}

// FreeSized is Free for a block of `had` bytes, by SizeOf, in one call of C. It reports false, and
// frees nothing, if p isn't such a block.
func (b *Buddy) FreeSized(p unsafe.Pointer, had uint64) (code Code, ok bool) {
	if b.outside(p) {
		return Foreign, false
	}
	if Race {
		if size, code := b.SizeOf(p); code != OK || size != had {
			return code, false
		}
		return b.Free(p), true
	}
	code = Code(crossed(writes(&b.Used), C.upfront_buddy_free_sized_at(b.c(), p, C.uint64_t(had), C.uint32_t(Here(1)))))
	return code, code != 1
}

// ReallocSized is Realloc for a block of `had` bytes, in one call of C. For any other p it returns
// nil.
func (b *Buddy) ReallocSized(p unsafe.Pointer, had, size uint64) unsafe.Pointer {
	if b.outside(p) {
		return nil
	}
	if Race {
		if now, code := b.SizeOf(p); code != OK || now != had {
			return nil
		}
		return b.Realloc(p, size)
	}
	return crossed(writes(&b.Used), C.upfront_buddy_realloc_sized_at(b.c(), p, C.uint64_t(had), C.uint64_t(size),
		C.uint32_t(Here(1))))
}

// SizeOf is upfront_buddy_size_of.
func (b *Buddy) SizeOf(p unsafe.Pointer) (size uint64, code Code) {
	if b.outside(p) {
		return 0, Foreign
	}
	return found(crossed(reads(&b.Used), C.upfront_buddy_size_of(b.c(), p)))
}

// SetPlain is upfront_buddy_plain.
func (b *Buddy) SetPlain() { C.upfront_buddy_plain(b.c()) }

// Reset is upfront_buddy_reset.
func (b *Buddy) Reset() {
	if Race {
		raceDead(unsafe.Add(unsafe.Pointer(b), b.First), uintptr(b.End-b.First))
	}
	crossed(writes(&b.Used), C.upfront_buddy_reset(b.c()))
}

// Largest is upfront_buddy_largest.
func (b *Buddy) Largest() uint64 {
	return uint64(crossed(reads(&b.Used), C.upfront_buddy_largest(b.c())))
}

// TakePhase is upfront_buddy_phase.
func (b *Buddy) TakePhase() uint64 {
	return uint64(crossed(writes(&b.Used), C.upfront_buddy_phase(b.c())))
}

// Walk is upfront_buddy_walk.
func (b *Buddy) Walk(out []Block) (count uint64, code Code) {
	list := (*C.upfront_block)(unsafe.Pointer(unsafe.SliceData(out)))
	code = Code(C.upfront_buddy_walk(b.c(), list, C.uint64_t(len(out)), (*C.uint64_t)(unsafe.Pointer(&count))))
	return count, code
}

// CheckAll is upfront_buddy_walk without a list: it only checks.
func (b *Buddy) CheckAll() Code { return Code(C.upfront_buddy_walk(b.c(), nil, 0, nil)) }

// BlockOf returns the block that contains the byte at an offset: the block's offset, its size, and
// whether it is live. pre: the words are whole, and the byte is in a block.
func (b *Buddy) BlockOf(offset uint64) (from, size uint64, live bool) {
	f := C.upfront_buddy_block(b.c(), C.uint64_t(offset))
	return b.First + (uint64(f.from)-b.Low)*b.Smallest, b.Smallest << f.order, f.code == C.UPFRONT_OK
}

// EdgesHold reports whether halves of pairs outside of the blocks are marked as not free, which the
// walk doesn't check. pre: first, end, smallest and low are right.
func (b *Buddy) EdgesHold() bool {
	high := b.Low + (b.End-b.First)/b.Smallest
	byteOf := func(at uint64) uint8 {
		return *(*uint8)(unsafe.Add(unsafe.Pointer(b), uint64(unsafe.Sizeof(*b))+at-b.Low&^1-1))
	}
	return (b.Low%2 == 0 || byteOf(b.Low)&C.UPFRONT_BUDDY_LEFT != 0) &&
		(high%2 == 0 || byteOf(high)&C.UPFRONT_BUDDY_RIGHT != 0)
}
