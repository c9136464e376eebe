package arena_c

// #include "heap.h"
// // The site is an argument, because the next call of a goroutine may run on another thread.
// static inline void *upfront_heap_alloc_at(upfront_heap *h, uint64_t size, uint64_t align, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_heap_alloc(h, size, align))
// static inline int upfront_heap_free_at(upfront_heap *h, void *p, uint32_t site)
//     UPFRONT_AT_SITE(int, upfront_heap_free(h, p))
// static inline void *upfront_heap_realloc_at(upfront_heap *h, void *p, uint64_t size, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_heap_realloc(h, p, size))
// // They do nothing unless p is a live block of `had` bytes. free_sized_at returns 1 then.
// static inline int upfront_heap_free_sized_at(upfront_heap *h, void *p, uint64_t had, uint32_t site) {
//     return upfront_heap_size_of(h, p) == (int64_t)had ? upfront_heap_free_at(h, p, site) : 1;
// }
// static inline void *upfront_heap_realloc_sized_at(upfront_heap *h, void *p, uint64_t had, uint64_t size,
//     uint32_t site) {
//     return upfront_heap_size_of(h, p) == (int64_t)had ? upfront_heap_realloc_at(h, p, size, site) : NULL;
// }
// #cgo noescape upfront_heap_free_sized_at
// #cgo nocallback upfront_heap_free_sized_at
// #cgo noescape upfront_heap_realloc_sized_at
// #cgo nocallback upfront_heap_realloc_sized_at
// typedef struct heap_run { void *run; uint64_t size, at; } heap_run;
// static inline heap_run upfront_heap_run_after(const upfront_heap *h, uint64_t page, uint64_t at) {
//     heap_run r = {NULL, 0, at};
//     r.size = upfront_heap_next_run(h, page, &r.at, &r.run);
//     return r;
// }
// #cgo noescape upfront_heap_run_after
// #cgo nocallback upfront_heap_run_after
// typedef struct heap_image { uint64_t size; int code; } heap_image;
// static inline heap_image upfront_heap_image(const upfront_heap *h, void *out, uint64_t room) {
//     heap_image i = {0, UPFRONT_OK};
//     i.code = upfront_heap_pack(h, out, room, &i.size);
//     return i;
// }
// #cgo noescape upfront_heap_image
// #cgo nocallback upfront_heap_image
// #cgo noescape upfront_heap_unpack
// #cgo nocallback upfront_heap_unpack
// #cgo nocallback upfront_heap_init
// #cgo noescape upfront_heap_alloc_at
// #cgo nocallback upfront_heap_alloc_at
// #cgo noescape upfront_heap_free_at
// #cgo nocallback upfront_heap_free_at
// #cgo noescape upfront_heap_realloc_at
// #cgo nocallback upfront_heap_realloc_at
// #cgo noescape upfront_heap_size_of
// #cgo nocallback upfront_heap_size_of
// #cgo noescape upfront_heap_check
// #cgo nocallback upfront_heap_check
// #cgo noescape upfront_heap_reset
// #cgo nocallback upfront_heap_reset
// #cgo noescape upfront_heap_largest
// #cgo nocallback upfront_heap_largest
// #cgo noescape upfront_heap_reserve
// #cgo nocallback upfront_heap_reserve
// #cgo noescape upfront_heap_phase
// #cgo nocallback upfront_heap_phase
// #cgo noescape upfront_heap_flush
// #cgo nocallback upfront_heap_flush
// #cgo noescape upfront_heap_plain
// #cgo nocallback upfront_heap_plain
// #cgo noescape upfront_heap_walk
// #cgo nocallback upfront_heap_walk
import "C"

import (
	"os"
	"unsafe"
)

// Heap is the header of a heap: heap.h.
type Heap struct {
	First, End                      uint64
	nowhere                         [2]uint64
	Epoch, Used, Most, Phase, Live  uint64
	Parked, Parks, sizes, hand      uint64
	Fronts, Lists, Map              uint64
	Bits                            [8]uint64
	Past, Failed, Bounded, refused  uint64
	Damaged, Where, lost, LostBytes uint64
	look, Plain                     uint64
	Rest                            struct{ Blocks, Bytes, Oldest, Newest uint64 }
	Busy, Raced                     uint64
}

// HeapBlock is the size of the smallest memory that holds a heap, and HeapFrontBytes the bytes that
// front lists add. HeapAlign is the alignment of allocations and the size of a header.
// HeapParked and HeapLost (out of service) are values of Block.Live.
const (
	HeapBlock      = C.UPFRONT_HEAP_BLOCK
	HeapFrontBytes = C.UPFRONT_HEAP_FRONT_BYTES
	HeapAlign      = C.UPFRONT_HEAP_ALIGN
	HeapParked     = C.UPFRONT_HEAP_PARKED
	HeapLost       = C.UPFRONT_HEAP_LOST
)

// HeapSealBits is the number of bits below the seal in a header's word `size`, HeapSizeBits the
// mask of the size in it. HeapFrontLists is the number of front lists.
const (
	HeapSealBits   = C.UPFRONT_HEAP_SEAL
	HeapSizeBits   = C.UPFRONT_OFFSET_MAX - 16
	HeapFrontLists = C.UPFRONT_HEAP_FRONT_BYTES / 8
)

// HeapRun is the size of the two words before each run of an image: offset and bytes.
const HeapRun = C.UPFRONT_HEAP_RUN

// Block is one block in the output of a Walk (base.h). Live is 0 for a free block, 1 for a live
// one, or HeapParked, HeapLost or RingSkipped.
type Block struct{ Offset, Size, Asked, Align, Live uint64 }

var (
	_ [unsafe.Sizeof(Heap{})]byte  = [unsafe.Sizeof(C.upfront_heap{})]byte{}
	_ [unsafe.Sizeof(Block{})]byte = [unsafe.Sizeof(C.upfront_block{})]byte{}
	_ [HeapAlign]byte              = [C.UPFRONT_HEAP_HEADER]byte{}
)

func (h *Heap) c() *C.upfront_heap { return (*C.upfront_heap)(checked(h)) }

// HeapInit is upfront_heap_init.
func HeapInit(r Room, parked uint64) *Heap {
	h := C.upfront_heap_init(r.of(RoomHeap), C.uint64_t(r.Size), C.uint64_t(parked))
	return made[Heap](r, unsafe.Pointer(h))
}

// outside reports whether p is outside of the heap. cgo would inspect a Go object there, and panic
// over its pointers.
func (h *Heap) outside(p unsafe.Pointer) bool {
	return uint64(uintptr(p))-uint64(uintptr(unsafe.Pointer(h))) > h.End
}

// Alloc is upfront_heap_alloc.
func (h *Heap) Alloc(size, align uint64) unsafe.Pointer {
	return crossed(writes(&h.Used), C.upfront_heap_alloc_at(h.c(), C.uint64_t(size), C.uint64_t(align),
		C.uint32_t(Here(1))))
}

// Free is upfront_heap_free. In race builds it overwrites the dead block, so that a goroutine that
// still reads it is reported.
func (h *Heap) Free(p unsafe.Pointer) Code {
	if p == nil {
		return OK
	}
	if h.outside(p) {
		return Foreign
	}
	if Race {
		size, code := h.SizeOf(p)
		if code != OK {
			return code
		}
		raceDead(p, uintptr(size))
	}
	return Code(crossed(writes(&h.Used), C.upfront_heap_free_at(h.c(), p, C.uint32_t(Here(1)))))
}

// Realloc is upfront_heap_realloc. After nil, Check reports whether p is the cause. If the block
// moved, Realloc reports its old bytes, which belong to the heap by then, to the race detector as
// written.
func (h *Heap) Realloc(p unsafe.Pointer, size uint64) unsafe.Pointer {
	if p != nil && h.outside(p) {
		return nil
	}
	if !Race || p == nil {
		return crossed(writes(&h.Used), C.upfront_heap_realloc_at(h.c(), p, C.uint64_t(size), C.uint32_t(Here(1))))
	}
	old, code := h.SizeOf(p)
	q := crossed(writes(&h.Used), C.upfront_heap_realloc_at(h.c(), p, C.uint64_t(size), C.uint32_t(Here(1))))
	if code == OK && q != nil && q != p {
		raceWrite(p, uintptr(old))
	}
	return q
}

// FreeSized is Free for a block of `had` bytes, by SizeOf, in one call of C. It reports false, and
// frees nothing, if p isn't such a block.
func (h *Heap) FreeSized(p unsafe.Pointer, had uint64) (code Code, ok bool) {
	if h.outside(p) {
		return Foreign, false
	}
	if Race {
		if size, code := h.SizeOf(p); code != OK || size != had {
			return code, false
		}
		return h.Free(p), true
	}
	code = Code(crossed(writes(&h.Used), C.upfront_heap_free_sized_at(h.c(), p, C.uint64_t(had), C.uint32_t(Here(1)))))
	return code, code != 1
}

// ReallocSized is Realloc for a block of `had` bytes, in one call of C. For any other p it returns
// nil.
func (h *Heap) ReallocSized(p unsafe.Pointer, had, size uint64) unsafe.Pointer {
	if h.outside(p) {
		return nil
	}
	if Race {
		if now, code := h.SizeOf(p); code != OK || now != had {
			return nil
		}
		return h.Realloc(p, size)
	}
	return crossed(writes(&h.Used), C.upfront_heap_realloc_sized_at(h.c(), p, C.uint64_t(had), C.uint64_t(size),
		C.uint32_t(Here(1))))
}

// SizeOf is upfront_heap_size_of.
func (h *Heap) SizeOf(p unsafe.Pointer) (size uint64, code Code) {
	if h.outside(p) {
		return 0, Foreign
	}
	return found(crossed(reads(&h.Used), C.upfront_heap_size_of(h.c(), p)))
}

// Check is upfront_heap_check.
func (h *Heap) Check(p unsafe.Pointer) Code {
	if p != nil && h.outside(p) {
		return Foreign
	}
	return Code(crossed(reads(&h.Used), C.upfront_heap_check(h.c(), p)))
}

// SetPlain is upfront_heap_plain.
func (h *Heap) SetPlain() { C.upfront_heap_plain(h.c()) }

// Reset is upfront_heap_reset.
func (h *Heap) Reset() {
	if Race {
		raceDead(unsafe.Add(unsafe.Pointer(h), h.First), uintptr(h.End-h.First))
	}
	crossed(writes(&h.Used), C.upfront_heap_reset(h.c()))
}

// Reserve is upfront_heap_reserve.
func (h *Heap) Reserve(bytes uint64) {
	crossed(writes(&h.Used), C.upfront_heap_reserve(h.c(), C.uint64_t(bytes)))
}

// TakePhase is upfront_heap_phase.
func (h *Heap) TakePhase() uint64 {
	return uint64(crossed(writes(&h.Used), C.upfront_heap_phase(h.c())))
}

// Peak is upfront_heap_peak.
func (h *Heap) Peak() uint64 { return max(h.Phase, h.Past) }

// Flush is upfront_heap_flush.
func (h *Heap) Flush() { crossed(writes(&h.Used), C.upfront_heap_flush(h.c())) }

// Largest is upfront_heap_largest.
func (h *Heap) Largest() uint64 {
	return uint64(crossed(writes(&h.Used), C.upfront_heap_largest(h.c())))
}

// nextRun is upfront_heap_next_run: it returns the run after the position `at`, and the next
// position. A size of 0 ends the runs.
func (h *Heap) nextRun(page, at uint64) (run unsafe.Pointer, size, next uint64) {
	r := crossed(reads(&h.Used), C.upfront_heap_run_after(h.c(), C.uint64_t(page), C.uint64_t(at)))
	return r.run, uint64(r.size), uint64(r.at)
}

// Trim flushes the heap and passes each run of whole pages in its free blocks to discard, which
// makes them zero. It returns the sum of discard's bytes, and ends at an error.
func (h *Heap) Trim(discard func(p unsafe.Pointer, size uint64) (uint64, error)) (bytes uint64, err error) {
	h.Flush()
	page := uint64(os.Getpagesize())
	for run, size, at := h.nextRun(page, 0); size != 0; run, size, at = h.nextRun(page, at) {
		n, err := discard(run, size)
		if bytes += n; err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

// Discard is the Discard of the owner of the bytes at p. Without an owner the pages stay, and so do
// those of checked builds.
func Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error) {
	if owner := ownerOf(p); owner != nil && !Checked {
		return owner.Discard(p, size)
	}
	return 0, nil
}

// TrimRoom is Trim with the Discard of the owner of the heap's bytes; a heap without an owner keeps
// its pages, and so does each heap of a checked build.
func (h *Heap) TrimRoom() (bytes uint64, err error) {
	if owner := ownerOf(unsafe.Pointer(h)); owner != nil && !Checked {
		return h.Trim(owner.Discard)
	}
	return 0, nil
}

// Pack is upfront_heap_pack. In race builds it reports a read of the whole heap.
func (h *Heap) Pack(out []byte) (size uint64, code Code) {
	raceRead(unsafe.Pointer(h), uintptr(h.End))
	to := unsafe.Pointer(unsafe.SliceData(out))
	i := crossed(reads(&h.Used), C.upfront_heap_image(h.c(), to, C.uint64_t(len(out))))
	return uint64(i.size), Code(i.code)
}

// Unpack is upfront_heap_unpack. In race builds it reports a write of all bytes.
func (h *Heap) Unpack(bytes uint64, image []byte) Code {
	raceWrite(unsafe.Pointer(h), uintptr(bytes))
	from := unsafe.Pointer(unsafe.SliceData(image))
	return Code(crossed(writes(&h.Used), C.upfront_heap_unpack(h.c(), C.uint64_t(bytes), from,
		C.uint64_t(len(image)))))
}

// Walk is upfront_heap_walk.
func (h *Heap) Walk(out []Block) (count uint64, code Code) {
	list := (*C.upfront_block)(unsafe.Pointer(unsafe.SliceData(out)))
	code = Code(C.upfront_heap_walk(h.c(), list, C.uint64_t(len(out)), (*C.uint64_t)(unsafe.Pointer(&count))))
	return count, code
}
