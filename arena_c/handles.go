package arena_c

// #include "handles.h"
// #cgo noescape upfront_handles_make
// #cgo nocallback upfront_handles_make
import "C"

import "unsafe"

// Handles is the header of a pool with generations: handles.h.
type Handles struct{ Pool Pool }

// HandleIndex is the index in a handle; the generation is above it.
const HandleIndex = 1<<32 - 1

// Generation is upfront_handles_generation.
func (h *Handles) Generation(index uint64) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(h), uint64(unsafe.Sizeof(*h))+index*4))
}

// Name is upfront_handles_name.
func (h *Handles) Name(index uint64) uint64 { return uint64(*h.Generation(index))<<32 | index }

func (h *Handles) c() *C.upfront_handles { return (*C.upfront_handles)(checked(h)) }

// HandlesMake is upfront_handles_make.
func HandlesMake(block unsafe.Pointer, blockSize, size, align uint64) *Handles {
	return (*Handles)(unsafe.Pointer(C.upfront_handles_make(block, C.uint64_t(blockSize), C.uint64_t(size), C.uint64_t(align))))
}
