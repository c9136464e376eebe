package arena_c

// // The module's path: two copies of it in a program have two cores. names.h says more.
// #cgo CFLAGS: -UUPFRONT_PREFIX -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #include "arena.h"
import "C"

import "unsafe"

// Header is the header of an arena: arena.h says what its words mean. Here and in the other files a Go struct has the words of
// the C struct, in their order; one of another size does not compile.
type Header struct {
	Cursor, Limit, Gen, Asked, Misused, Least, Next, Start uint64
}

var (
	_ [unsafe.Sizeof(Header{})]byte = [unsafe.Sizeof(C.upfront_arena{})]byte{}
	_ [64]byte                      = [unsafe.Sizeof(Header{})]byte{}
)

func (h *Header) c() *C.upfront_arena { return (*C.upfront_arena)(checked(h)) }

// moved tells the race detector what died when cursor and limit moved back from where they were: a rewind that only moves a
// cursor conflicts with nobody. Where they were is read into variables first: Go doesn't say whether an operand or a call
// beside it comes first. Where nothing died nothing is addressed: the end of the block may be the start of something else.
func (h *Header) moved(cursor, limit uint64, code Code) Code {
	if Race && h.Cursor < cursor {
		raceDead(h.At(h.Cursor), uintptr(cursor-h.Cursor))
	}
	if Race && limit < h.Limit {
		raceDead(h.At(limit), uintptr(h.Limit-limit))
	}
	return code
}
