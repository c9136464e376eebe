//go:build upfront_cgo || asan || checked

package arena_c

// #include "upfront.h"
// #cgo noescape upfront_linear_bump
// #cgo nocallback upfront_linear_bump
// #cgo noescape upfront_linear_grow
// #cgo nocallback upfront_linear_grow
// #cgo noescape upfront_ends_bump_far
// #cgo nocallback upfront_ends_bump_far
// #cgo noescape upfront_ends_mark
// #cgo nocallback upfront_ends_mark
// #cgo noescape upfront_ends_mark_far
// #cgo nocallback upfront_ends_mark_far
// #cgo noescape upfront_stack_push_far
// #cgo nocallback upfront_stack_push_far
// #cgo noescape upfront_stack_push
// #cgo nocallback upfront_stack_push
// static inline int upfront_ring_pop_at(upfront_ring *r, uint64_t tag, uintptr_t p) {
//     return upfront_ring_pop(r, tag, (void *)p);
// }
// #cgo noescape upfront_ring_push
// #cgo nocallback upfront_ring_push
// #cgo noescape upfront_ring_front
// #cgo nocallback upfront_ring_front
// #cgo noescape upfront_ring_pop_at
// #cgo nocallback upfront_ring_pop_at
import "C"

import "unsafe"

// The hits, by the bindings: hit.go has the same functions in Go. In the checked build each that gives memory asks whether it
// may, and takes back what it may not give.

// Crossing says whether the hits of this build cross into C.
const Crossing = true

// NewOn is upfront_linear_bump for one zeroed T.
func NewOn[T any](l *Linear, need uint64) (x *T, ok bool) {
	p, ok := l.Bump(need, uint64(unsafe.Sizeof(*x)), AlignOf[T]()-1)
	if !ok {
		return nil, false
	}
	Zero(p, unsafe.Sizeof(*x))
	return (*T)(p), true
}

// Bump is upfront_linear_bump.
func (l *Linear) Bump(need, size, mask uint64) (unsafe.Pointer, bool) {
	was := *l
	p := C.upfront_linear_bump(l.c(), C.uint64_t(need), C.uint64_t(size), C.uint64_t(mask))
	if Checked && p != nil && !given(l, was) {
		l.Refused = need + OnPurpose
		return nil, false
	}
	return p, p != nil
}

// Grow is upfront_linear_grow.
func (l *Linear) Grow(need, size uint64) (unsafe.Pointer, bool) {
	was := *l
	p := C.upfront_linear_grow(l.c(), C.uint64_t(need), C.uint64_t(size))
	if Checked && p != nil && !given(l, was) {
		l.Refused = need + OnPurpose
		return nil, false
	}
	return p, p != nil
}

// BumpFar is upfront_ends_bump_far.
func (e *Ends) BumpFar(tag, size, mask uint64) unsafe.Pointer {
	was := *e
	p := C.upfront_ends_bump_far(e.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(mask))
	if Checked && p != nil && !given(e, was) {
		e.Linear.Refused = tag + size + OnPurpose
		return nil
	}
	return p
}

// Mark is upfront_ends_mark.
func (e *Ends) Mark() uint64 { return uint64(C.upfront_ends_mark(e.c())) }

// MarkFar is upfront_ends_mark_far.
func (e *Ends) MarkFar() uint64 { return uint64(C.upfront_ends_mark_far(e.c())) }

// PushFar is upfront_stack_push_far.
func (s *Stack) PushFar(tag, size, mask uint64) unsafe.Pointer {
	was := *s
	p := C.upfront_stack_push_far(s.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(mask))
	if Checked && p != nil && !given(s, was) {
		s.Linear.Refused = tag + size + OnPurpose
		return nil
	}
	return p
}

// Push is upfront_stack_push.
func (s *Stack) Push(tag, size, mask uint64) unsafe.Pointer {
	was := *s
	p := C.upfront_stack_push(s.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(mask))
	if Checked && p != nil && !given(s, was) {
		s.Linear.Refused = tag + size + OnPurpose
		return nil
	}
	return p
}

// Push, of a ring, is upfront_ring_push.
func (r *Ring) Push(tag, size, mask uint64) unsafe.Pointer {
	return C.upfront_ring_push(r.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(mask))
}

// Front is upfront_ring_front.
func (r *Ring) Front() (p unsafe.Pointer, size uint64) {
	p = C.upfront_ring_front(r.c(), (*C.uint64_t)(unsafe.Pointer(&size)))
	return p, size
}

// Pop is upfront_ring_pop.
func (r *Ring) Pop(tag uint64, p unsafe.Pointer) bool {
	return C.upfront_ring_pop_at(r.c(), C.uint64_t(tag), C.uintptr_t(uintptr(p))) == C.UPFRONT_OK
}
