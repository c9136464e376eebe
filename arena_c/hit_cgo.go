//go:build upfront_cgo || asan || checked

package arena_c

// #include "handles.h"
// #cgo noescape upfront_handles_get
// #cgo nocallback upfront_handles_get
// #cgo noescape upfront_handles_at
// #cgo nocallback upfront_handles_at
// #cgo noescape upfront_handles_put
// #cgo nocallback upfront_handles_put
// #cgo noescape upfront_pool_get
// #cgo nocallback upfront_pool_get
// static inline int upfront_pool_put_at(upfront_pool *p, uint64_t tag, uintptr_t chunk) {
//     return upfront_pool_put(p, tag, (void *)chunk); // a number, as for upfront_pool_judge
// }
// #cgo noescape upfront_pool_put_at
// #cgo nocallback upfront_pool_put_at
import "C"

import "unsafe"

// The fast paths of pools, by the bindings: fast_cgo.go has the others.

// Get is upfront_pool_get for one zeroed T.
func Get[T any](p *Pool, tag uint64) *T {
	chunk := p.get(tag)
	if chunk != nil {
		Zero(chunk, unsafe.Sizeof(*(*T)(nil)))
	}
	return (*T)(chunk)
}

func (p *Pool) get(tag uint64) unsafe.Pointer {
	if Checked && p.refuses(tag) {
		return nil
	}
	return C.upfront_pool_get(p.c(), C.uint64_t(tag))
}

// refuses asks before, for a chunk that there is: a chunk that was given has lost its state.
func (p *Pool) refuses(tag uint64) bool { return p.Free-tag-1 < OffsetMax && Refuse() }

// Put is upfront_pool_put.
func (p *Pool) Put(tag uint64, chunk unsafe.Pointer) bool {
	return C.upfront_pool_put_at(p.c(), C.uint64_t(tag), C.uintptr_t(uintptr(chunk))) == C.UPFRONT_OK
}

// GetHandle is upfront_handles_get for one zeroed T.
func GetHandle[T any](h *Handles, tag uint64) (x *T, handle uint64) {
	chunk := h.get(tag, &handle)
	if chunk != nil {
		Zero(chunk, unsafe.Sizeof(*x))
	}
	return (*T)(chunk), handle
}

func (h *Handles) get(tag uint64, handle *uint64) unsafe.Pointer {
	if Checked && h.Pool.refuses(tag) {
		return nil
	}
	return C.upfront_handles_get(h.c(), C.uint64_t(tag), (*C.uint64_t)(unsafe.Pointer(handle)))
}

// ChunkOf is upfront_handles_at.
func (h *Handles) ChunkOf(tag, handle uint64) unsafe.Pointer {
	return C.upfront_handles_at(h.c(), C.uint64_t(tag), C.uint64_t(handle))
}

// PutHandle is upfront_handles_put.
func (h *Handles) PutHandle(tag, handle uint64) Code {
	return Code(C.upfront_handles_put(h.c(), C.uint64_t(tag), C.uint64_t(handle)))
}
