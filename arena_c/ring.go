package arena_c

// #include "ring.h"
// // An address to be checked is passed as a number: see pool.go.
// static inline int upfront_ring_find_at(const upfront_ring *r, uint64_t gen, uintptr_t p) {
//     return upfront_ring_find(r, gen, (const void *)p);
// }
// static inline void *upfront_ring_wrap_for(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_ring_wrap(r, gen, size, mask))
// #cgo nocallback upfront_ring_init
// #cgo noescape upfront_ring_wrap_for
// #cgo nocallback upfront_ring_wrap_for
// #cgo noescape upfront_ring_find_at
// #cgo nocallback upfront_ring_find_at
// #cgo noescape upfront_ring_reset
// #cgo nocallback upfront_ring_reset
// #cgo noescape upfront_ring_room
// #cgo nocallback upfront_ring_room
// #cgo noescape upfront_ring_walk
// #cgo nocallback upfront_ring_walk
import "C"

import "unsafe"

// Ring is the header of a ring: ring.h.
type Ring struct {
	Header
	Count, End, Oldest, Seam, _, _, _, _ uint64
}

var _ [unsafe.Sizeof(Ring{})]byte = [unsafe.Sizeof(C.upfront_ring{})]byte{}

// ringWord is the size of the word before a block, RingMask the least mask of a Push.
const (
	ringWord    = C.UPFRONT_RING_WORD
	RingMask    = ringWord - 1
	RingPadding = C.UPFRONT_RING_PADDING // one byte of padding in such a word, above the size
	RingSkipped = C.UPFRONT_RING_SKIPPED // Block.Live of the skipped tail
)

// Used is upfront_ring_used.
func (r *Ring) Used() uint64 {
	used := r.Cursor - r.Oldest
	if r.Seam != 0 {
		used += r.Size()
	}
	return used
}

// Size returns the capacity of the empty ring in bytes.
func (r *Ring) Size() uint64 { return r.End - r.Start }

// Peak returns the highest use in bytes.
func (r *Ring) Peak() uint64 { return r.Size() - min(r.Least, r.Size()-r.Used()) }

func (r *Ring) c() *C.upfront_ring { return (*C.upfront_ring)(checked(r)) }

// RingInit is upfront_ring_init.
func RingInit(r Room) *Ring {
	return made[Ring](r, unsafe.Pointer(C.upfront_ring_init(r.of(RoomRing), C.uint64_t(r.Size))))
}

// Wrap is upfront_ring_wrap.
func (r *Ring) Wrap(gen, size, mask uint64) unsafe.Pointer {
	return crossed(writes(&r.Cursor), C.upfront_ring_wrap_for(r.c(), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask)))
}

// Alloc is Push, or Wrap if the block doesn't fit after the newest one. In the checked build it is
// one request either way.
func (r *Ring) Alloc(gen, size, mask uint64) unsafe.Pointer {
	p := r.Push(gen, size, mask)
	if p == nil {
		p = r.Wrap(gen, size, mask)
	}
	return p
}

// Overwrite does upfront_ring_overwrite in parts, which report freed bytes to the race detector and
// make requests in a checked build.
func (r *Ring) Overwrite(gen, size, mask uint64) unsafe.Pointer {
	from := uint64(uintptr(unsafe.Pointer(r)))
	fits := r.Gen == gen && (from+r.Start+ringWord+mask)&^mask-from+size <= r.End
	for {
		p := r.Alloc(gen, size, mask)
		if p != nil || !fits || r.Count == 0 {
			return p
		}
		if oldest, _ := r.Front(); !r.Pop(gen, oldest) {
			return nil
		}
	}
}

// Find is upfront_ring_find.
func (r *Ring) Find(gen uint64, p unsafe.Pointer) Code {
	return Code(crossed(reads(&r.Cursor), C.upfront_ring_find_at(r.c(), C.uint64_t(gen), C.uintptr_t(uintptr(p)))))
}

// Reset is upfront_ring_reset.
func (r *Ring) Reset(gen uint64) Code {
	code := Code(crossed(writes(&r.Cursor), C.upfront_ring_reset(r.c(), C.uint64_t(gen))))
	if Race && code == OK {
		raceDead(r.At(r.Start), uintptr(r.Size()))
	}
	return code
}

// Room is upfront_ring_room.
func (r *Ring) Room() uint64 { return uint64(crossed(reads(&r.Cursor), C.upfront_ring_room(r.c()))) }

// Walk is upfront_ring_walk.
func (r *Ring) Walk(out []Block) (count uint64, code Code) {
	list := (*C.upfront_block)(unsafe.Pointer(unsafe.SliceData(out)))
	code = Code(C.upfront_ring_walk(r.c(), list, C.uint64_t(len(out)), (*C.uint64_t)(unsafe.Pointer(&count))))
	return count, code
}
