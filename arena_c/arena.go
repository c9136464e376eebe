package arena_c

// #include "arena.h"
import "C"

import "unsafe"

// Header is the header of an arena: arena.h says what its words mean. Here and in the other files a Go struct has the words of
// the C struct, in their order; one of another size does not compile.
type Header struct {
	Cursor, Limit, Gen, Asked, Misused, Least, Next, Start uint64
}

var _ [unsafe.Sizeof(Header{})]byte = [unsafe.Sizeof(C.upfront_arena{})]byte{}

func (h *Header) c() *C.upfront_arena { return (*C.upfront_arena)(checked(h)) }

// dead tells the race detector what died when the cursor moved back from where it was: a rewind that only moves a
// cursor conflicts with nobody. Where it was is read into a variable first: Go doesn't say whether an operand or a call
// beside it comes first.
func (h *Header) dead(was uint64, code Code) Code {
	if Race {
		raceDead(h.At(h.Cursor), uintptr(was-h.Cursor))
	}
	return code
}

// deadFar is dead at the far end.
func (h *Header) deadFar(was uint64, code Code) Code {
	if Race {
		raceDead(h.At(was), uintptr(h.Limit-was))
	}
	return code
}
