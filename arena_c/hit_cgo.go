//go:build upfront_cgo || asan || memdebug

package arena_c

// #include "upfront.h"
// #cgo noescape upfront_linear_bump
// #cgo nocallback upfront_linear_bump
// #cgo noescape upfront_stack_push
// #cgo nocallback upfront_stack_push
// #cgo noescape upfront_pool_get
// #cgo nocallback upfront_pool_get
// #cgo noescape upfront_pool_put
// #cgo nocallback upfront_pool_put
// #cgo noescape upfront_row_open
// #cgo nocallback upfront_row_open
// #cgo noescape upfront_row_close
// #cgo nocallback upfront_row_close
// #cgo noescape upfront_row_freeze
// #cgo nocallback upfront_row_freeze
// #cgo noescape upfront_row_node
// #cgo nocallback upfront_row_node
// #cgo noescape upfront_row_link
// #cgo nocallback upfront_row_link
// #cgo noescape upfront_row_unlink
// #cgo nocallback upfront_row_unlink
import "C"

import "unsafe"

// The hits, by the bindings: hit.go has the same functions in Go.

// Crossing says whether the hits of this build cross into C.
const Crossing = true

// New is upfront_linear_bump for one zeroed T.
func New[T any](l *Linear, need uint64) (x *T, ok bool) {
	p, ok := l.Bump(need, uint64(unsafe.Sizeof(*x)), uint64(unsafe.Alignof(*x)-1))
	if !ok {
		return nil, false
	}
	Zero(p, unsafe.Sizeof(*x))
	return (*T)(p), true
}

// Bump is upfront_linear_bump.
func (l *Linear) Bump(need, size, mask uint64) (unsafe.Pointer, bool) {
	p := C.upfront_linear_bump(l.c(), C.uint64_t(need), C.uint64_t(size), C.uint64_t(mask))
	return p, p != nil
}

// Push is upfront_stack_push.
func (s *Stack) Push(tag, size, mask uint64) unsafe.Pointer {
	return C.upfront_stack_push(s.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(mask))
}

// Get is upfront_pool_get for one zeroed T.
func Get[T any](p *Pool, tag uint64) *T {
	chunk := p.get(tag)
	if chunk != nil {
		Zero(chunk, unsafe.Sizeof(*(*T)(nil)))
	}
	return (*T)(chunk)
}

func (p *Pool) get(tag uint64) unsafe.Pointer { return C.upfront_pool_get(p.c(), C.uint64_t(tag)) }

// Put is upfront_pool_put.
func (p *Pool) Put(tag uint64, chunk unsafe.Pointer) bool {
	return C.upfront_pool_put(p.c(), C.uint64_t(tag), chunk) == C.UPFRONT_OK
}

// OpenScope is upfront_row_open.
func (r *Row) OpenScope() (child *Linear, tag uint64) {
	child = r.Slot(r.Open)
	return child, uint64(C.upfront_row_open(r.c()))
}

// CloseScope is upfront_row_close.
func (r *Row) CloseScope() { C.upfront_row_close(r.c()) }

// Freeze is upfront_row_freeze.
func (l *Linear) Freeze() { C.upfront_row_freeze(l.c()) }

// NewNode is upfront_row_node.
func (l *Linear) NewNode(tag uint64) *Node {
	return (*Node)(unsafe.Pointer(C.upfront_row_node(l.c(), C.uint64_t(tag))))
}

// Link is upfront_row_link.
func (l *Linear) Link(node *Node, class, what uint64) {
	C.upfront_row_link(l.c(), (*C.upfront_node)(unsafe.Pointer(node)), C.uint64_t(class), C.uint64_t(what))
}

// Unlink is upfront_row_unlink.
func (l *Linear) Unlink() (node Node, ok bool) {
	ok = C.upfront_row_unlink(l.c(), (*C.upfront_node)(unsafe.Pointer(&node))) != 0
	return node, ok
}
