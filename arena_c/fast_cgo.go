//go:build upfront_cgo || asan || checked

package arena_c

// #include "upfront.h"
// static inline void *upfront_scopes_bump_at(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask,
//     uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_scopes_bump(h, gen, size, mask))
// static inline void *upfront_scopes_grow_at(upfront_scopes *h, uint64_t gen, uint64_t from, uint64_t size,
//     uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_scopes_grow(h, gen, from, size))
// static inline void *upfront_scopes_node_at(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t mask,
//     uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_scopes_node(h, gen, size, mask))
// static inline void upfront_scopes_close_at(upfront_scopes *h, uint32_t site)
//     UPFRONT_DO_AT_SITE(upfront_scopes_close(h))
// static inline void upfront_arena_cut_at(upfront_arena *a, uint64_t to, uint32_t site)
//     UPFRONT_DO_AT_SITE(upfront_arena_cut(a, to))
// static inline void *upfront_pool_get_at(upfront_pool *p, uint64_t gen, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_pool_get(p, gen))
// static inline void *upfront_pool_get_handle_at(upfront_pool *p, uint64_t gen, uint64_t *handle, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_pool_get_handle(p, gen, handle))
// static inline int upfront_pool_put_handle_at(upfront_pool *p, uint64_t gen, uint64_t handle, uint32_t site)
//     UPFRONT_AT_SITE(int, upfront_pool_put_handle(p, gen, handle))
// static inline int upfront_pool_put_at(upfront_pool *p, uint64_t gen, uintptr_t chunk, uint32_t site)
//     UPFRONT_AT_SITE(int, upfront_pool_put(p, gen, (void *)chunk)) // a number: see pool.go
// static inline void *upfront_arena_bump_for(upfront_arena *a, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_arena_bump(a, gen, size, mask))
// static inline void *upfront_ends_bump_far_for(upfront_ends *e, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_ends_bump_far(e, gen, size, mask))
// static inline void *upfront_stack_push_for(upfront_stack *s, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_stack_push(s, gen, size, mask))
// static inline void *upfront_stack_push_far_for(upfront_stack *s, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_stack_push_far(s, gen, size, mask))
// static inline void *upfront_ring_push_for(upfront_ring *r, uint64_t gen, uint64_t size, uint64_t mask)
//     UPFRONT_ASK(void *, upfront_ring_push(r, gen, size, mask))
// static inline int upfront_ring_pop_at(upfront_ring *r, uint64_t gen, uintptr_t p) {
//     return upfront_ring_pop(r, gen, (void *)p); // a number: see pool.go
// }
// #cgo noescape upfront_arena_bump_for
// #cgo nocallback upfront_arena_bump_for
// #cgo noescape upfront_ends_bump_far_for
// #cgo nocallback upfront_ends_bump_far_for
// #cgo noescape upfront_ends_mark
// #cgo nocallback upfront_ends_mark
// #cgo noescape upfront_ends_mark_far
// #cgo nocallback upfront_ends_mark_far
// #cgo noescape upfront_stack_push_for
// #cgo nocallback upfront_stack_push_for
// #cgo noescape upfront_stack_push_far_for
// #cgo nocallback upfront_stack_push_far_for
// #cgo noescape upfront_ring_push_for
// #cgo nocallback upfront_ring_push_for
// #cgo noescape upfront_ring_front
// #cgo nocallback upfront_ring_front
// #cgo noescape upfront_ring_pop_at
// #cgo nocallback upfront_ring_pop_at
// #cgo noescape upfront_scopes_bump_at
// #cgo nocallback upfront_scopes_bump_at
// #cgo noescape upfront_scopes_grow_at
// #cgo nocallback upfront_scopes_grow_at
// #cgo noescape upfront_scopes_node_at
// #cgo nocallback upfront_scopes_node_at
// #cgo noescape upfront_scopes_open
// #cgo nocallback upfront_scopes_open
// #cgo noescape upfront_scopes_close_at
// #cgo nocallback upfront_scopes_close_at
// #cgo noescape upfront_arena_cut_at
// #cgo nocallback upfront_arena_cut_at
// #cgo noescape upfront_pool_get_at
// #cgo nocallback upfront_pool_get_at
// #cgo noescape upfront_pool_get_handle_at
// #cgo nocallback upfront_pool_get_handle_at
// #cgo noescape upfront_pool_at
// #cgo nocallback upfront_pool_at
// #cgo noescape upfront_pool_put_handle_at
// #cgo nocallback upfront_pool_put_handle_at
// #cgo noescape upfront_pool_put_at
// #cgo nocallback upfront_pool_put_at
import "C"

import (
	"fmt"
	"unsafe"
)

// The fast paths as calls into C. fast.go and fast_block.go have the same functions in Go, and
// their comments. In a checked build each allocating call is a request: see UPFRONT_REQUEST in
// base.h.

const Crossing = true

func New[T any](h *Scopes, gen uint64) (x *T) {
	x = TryNew[T](h, gen)
	if x == nil {
		panic(Refusal{h, gen})
	}
	return x
}

func TryNew[T any](h *Scopes, gen uint64) (x *T) {
	p, ok := h.Bump(gen, uint64(unsafe.Sizeof(*x)), AlignOf[T]()-1)
	if !ok {
		return nil
	}
	Zero(p, unsafe.Sizeof(*x))
	return (*T)(p)
}

// site returns the number of the caller's call site, in builds that keep it.
func site() C.uint32_t { return C.uint32_t(Here(2)) }

func (h *Scopes) Bump(gen, size, mask uint64) (p unsafe.Pointer, ok bool) {
	p = C.upfront_scopes_bump_at(h.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask), site())
	return p, p != nil
}

func (h *Scopes) Alloc(gen, size, align uint64) unsafe.Pointer {
	p := h.TryAlloc(gen, size, align)
	if p == nil {
		panic(Refusal{h, gen + wrongAlign(align)})
	}
	return p
}

func (h *Scopes) AllocMask(gen, size, mask uint64) unsafe.Pointer {
	p, ok := h.Bump(gen, min(size, OffsetMax), mask)
	if !ok {
		panic(Refusal{h, gen})
	}
	return p
}

func (h *Scopes) TryAlloc(gen, size, align uint64) unsafe.Pointer {
	p, _ := h.Bump(gen+wrongAlign(align), min(size, OffsetMax), align-1)
	return p
}

func wrongAlign(align uint64) uint64 { return (align - 1) & (align | aboveLine) * badAlign }

func (h *Scopes) Grow(gen, from, size uint64) (p unsafe.Pointer, ok bool) {
	p = C.upfront_scopes_grow_at(h.c(), C.uint64_t(gen), C.uint64_t(from), C.uint64_t(size), site())
	return p, p != nil
}

func (h *Scopes) Node(gen, size, mask uint64) (object unsafe.Pointer) {
	return C.upfront_scopes_node_at(h.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask), site())
}

func NewNode[T any](h *Scopes, gen, class uint64) (x *T) {
	p := h.Node(gen, uint64(unsafe.Sizeof(*new(T))), NodeSize-1)
	if p == nil {
		panic(Refusal{h, gen})
	}
	Zero(p, unsafe.Sizeof(*new(T)))
	h.Link(p, class)
	return (*T)(p)
}

func (h *Scopes) Open() (gen uint64) { return uint64(C.upfront_scopes_open(h.c())) }

func (h *Scopes) Close(r *Record) { C.upfront_scopes_close_at(h.c(), site()) }

func (h *Scopes) Cut(to uint64) {
	C.upfront_arena_cut_at(h.header().c(), C.uint64_t(to), site())
}

func (h *Header) Bump(gen, size, mask uint64) (p unsafe.Pointer, ok bool) {
	p = C.upfront_arena_bump_for(h.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
	return p, p != nil
}

func (e *Ends) BumpFar(gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_ends_bump_far_for(e.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

func (e *Ends) MarkNear() uint64 { return uint64(C.upfront_ends_mark(e.c())) }

func (e *Ends) MarkFar() uint64 { return uint64(C.upfront_ends_mark_far(e.c())) }

func (s *Stack) Push(gen, size, mask uint64) (p unsafe.Pointer) {
	return C.upfront_stack_push_for(s.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

func (s *Stack) PushFar(gen, size, mask uint64) (p unsafe.Pointer) {
	return C.upfront_stack_push_far_for(s.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

func (r *Ring) Push(gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_ring_push_for(r.c(), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

func (r *Ring) Front() (p unsafe.Pointer, size uint64) {
	p = C.upfront_ring_front(r.c(), (*C.uint64_t)(unsafe.Pointer(&size)))
	return p, size
}

func (r *Ring) Pop(gen uint64, p unsafe.Pointer) bool {
	return C.upfront_ring_pop_at(r.c(), C.uint64_t(gen), C.uintptr_t(uintptr(p))) == C.UPFRONT_OK
}

func Get[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T) {
	x = GetUnzeroed[T](p, gen, first, numbers)
	if x != nil {
		Zero(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	return x
}

func GetUnzeroed[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T) {
	return whole[T](p, gen, C.upfront_pool_get_at(p.c(), C.uint64_t(gen), site()))
}

// whole returns a chunk of a pool for T. It clears the bytes beyond a T, as in the other builds.
func whole[T any](p *Pool, gen uint64, chunk unsafe.Pointer) *T {
	p.lookAt(gen, chunk)
	if size := unsafe.Sizeof(*new(T)); chunk != nil && uintptr(p.Stride) > size {
		Zero(unsafe.Add(chunk, size), uintptr(p.Stride)-size)
	}
	return (*T)(chunk)
}

// lookAt panics if a checked build took no chunk because the next one isn't free
// (upfront_pool_next_is_free).
func (p *Pool) lookAt(gen uint64, chunk unsafe.Pointer) {
	if !Checked || chunk != nil || p.Gen != gen || p.Free == 0 {
		return
	}
	index := *p.Number(p.Free - 1)
	if index >= p.Count || *p.State(uint64(index)) != ChunkFresh && *p.State(uint64(index)) != ChunkFree {
		panic(fmt.Sprintf(
			"upfront: BUG: a write before the chunks of a pool of %d chunks of %d bytes: its next chunk, "+
				"number %d, isn't free", p.Count, p.Stride, index))
	}
}

func Put[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers, x *T) (ok bool) {
	return C.upfront_pool_put_at(p.c(), C.uint64_t(gen), C.uintptr_t(uintptr(unsafe.Pointer(x))),
		site()) == C.UPFRONT_OK
}

func (p *Pool) At(gen, handle uint64) unsafe.Pointer {
	return C.upfront_pool_at(p.c(), C.uint64_t(gen), C.uint64_t(handle))
}

func GetHandle[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T, handle uint64) {
	x = whole[T](p, gen, C.upfront_pool_get_handle_at(p.c(), C.uint64_t(gen), (*C.uint64_t)(unsafe.Pointer(&handle)),
		site()))
	if x != nil {
		Zero(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	return x, handle
}

func (p *Pool) TakeHandle(gen uint64) (chunk unsafe.Pointer, handle uint64) {
	chunk = C.upfront_pool_get_handle_at(p.c(), C.uint64_t(gen), (*C.uint64_t)(unsafe.Pointer(&handle)), site())
	p.lookAt(gen, chunk)
	return chunk, handle
}

func (p *Pool) PutHandle(gen, handle uint64) Code {
	return Code(C.upfront_pool_put_handle_at(p.c(), C.uint64_t(gen), C.uint64_t(handle), site()))
}
