package arena_c

// #include "stack.h"
// // An address to be checked is passed as a number: see pool.go.
// static inline int upfront_stack_free_at(upfront_stack *s, uintptr_t p) {
//     return upfront_stack_free(s, (const void *)p);
// }
// static inline int upfront_stack_free_far_at(upfront_stack *s, uintptr_t p) {
//     return upfront_stack_free_far(s, (const void *)p);
// }
// #cgo nocallback upfront_stack_init
// #cgo noescape upfront_stack_padding
// #cgo nocallback upfront_stack_padding
// #cgo noescape upfront_stack_free_at
// #cgo nocallback upfront_stack_free_at
// #cgo noescape upfront_stack_free_far_at
// #cgo nocallback upfront_stack_free_far_at
// #cgo noescape upfront_stack_rewind
// #cgo nocallback upfront_stack_rewind
// #cgo noescape upfront_stack_rewind_far
// #cgo nocallback upfront_stack_rewind_far
// #cgo noescape upfront_stack_reset
// #cgo nocallback upfront_stack_reset
// #cgo noescape upfront_stack_reset_far
// #cgo nocallback upfront_stack_reset_far
import "C"

import "unsafe"

// Stack is the header of a stack arena: stack.h.
type Stack Ends

// StackMask is the least mask of a Push: each block is aligned for the two words before it.
const StackMask = 15

// below is the pair of words before a block of a stack.
type below struct{ cursor, last uint64 }

var (
	_ [unsafe.Sizeof(Stack{})]byte = [unsafe.Sizeof(C.upfront_stack{})]byte{}
	_ [unsafe.Sizeof(below{})]byte = [unsafe.Sizeof(C.upfront_stack_below{})]byte{}
	_ [unsafe.Sizeof(below{})]byte = [StackMask + 1]byte{}
)

func (s *Stack) c() *C.upfront_stack { return (*C.upfront_stack)(checked(s)) }

// StackInit is upfront_stack_init.
func StackInit(r Room) *Stack {
	return made[Stack](r, unsafe.Pointer(C.upfront_stack_init(r.of(RoomStack), C.uint64_t(r.Size))))
}

// Padding is upfront_stack_padding.
func (s *Stack) Padding() uint64 {
	return uint64(crossed(reads(&s.Cursor), C.upfront_stack_padding(s.c())))
}

// Free is upfront_stack_free.
func (s *Stack) Free(p unsafe.Pointer) Code {
	return Code(moved(s.moves(), C.upfront_stack_free_at(s.c(), C.uintptr_t(uintptr(p)))))
}

// FreeFar is upfront_stack_free_far.
func (s *Stack) FreeFar(p unsafe.Pointer) Code {
	return Code(moved(s.moves(), C.upfront_stack_free_far_at(s.c(), C.uintptr_t(uintptr(p)))))
}

// Rewind is upfront_stack_rewind.
func (s *Stack) Rewind(mark uint64) Code {
	return Code(moved(s.moves(), C.upfront_stack_rewind(s.c(), C.uint64_t(mark))))
}

// RewindFar is upfront_stack_rewind_far.
func (s *Stack) RewindFar(mark uint64) Code {
	return Code(moved(s.moves(), C.upfront_stack_rewind_far(s.c(), C.uint64_t(mark))))
}

// Reset is upfront_stack_reset.
func (s *Stack) Reset() {
	moved(s.moves(), C.upfront_stack_reset(s.c()))
}

// ResetFar is upfront_stack_reset_far.
func (s *Stack) ResetFar() {
	moved(s.moves(), C.upfront_stack_reset_far(s.c()))
}
