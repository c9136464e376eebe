package arena_c

// #include "stack.h"
// #cgo noescape upfront_stack_init
// #cgo nocallback upfront_stack_init
// #cgo noescape upfront_stack_free
// #cgo nocallback upfront_stack_free
// #cgo noescape upfront_stack_rewind
// #cgo nocallback upfront_stack_rewind
import "C"

import "unsafe"

// Stack is the header of a stack arena: stack.h.
type Stack struct{ Linear Linear }

// below is the word pair before a block of a stack.
type below struct{ cursor, last uint64 }

func (s *Stack) c() *C.upfront_stack { return (*C.upfront_stack)(unsafe.Pointer(s)) }

// StackInit is upfront_stack_init.
func StackInit(block unsafe.Pointer, size uint64) *Stack {
	return (*Stack)(unsafe.Pointer(C.upfront_stack_init(block, C.uint64_t(size))))
}

// PopBlock is upfront_stack_free.
func (s *Stack) PopBlock(p unsafe.Pointer) Code {
	was := s.Linear.Cursor
	return s.Linear.dead(was, Code(C.upfront_stack_free(s.c(), p)))
}

// Rewind is upfront_stack_rewind.
func (s *Stack) Rewind(mark uint64) Code {
	was := s.Linear.Cursor
	return s.Linear.dead(was, Code(C.upfront_stack_rewind(s.c(), C.uint64_t(mark))))
}
