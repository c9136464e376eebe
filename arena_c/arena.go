package arena_c

// // The module's path: two copies of the module in a program have two cores. See names.h.
// #cgo CFLAGS: -UUPFRONT_PREFIX -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #include "arena.h"
import "C"

import "unsafe"

// Header is the header of an arena; arena.h explains its words. In this package a Go struct has the
// words of its C struct, in the same order. A struct of another size than C's doesn't compile.
type Header struct {
	Cursor, Limit, Gen, Asked, Misused, Least, Next, Start uint64
}

var (
	_ [unsafe.Sizeof(Header{})]byte = [unsafe.Sizeof(C.upfront_arena{})]byte{}
	_ [64]byte                      = [unsafe.Sizeof(Header{})]byte{}
)

func (h *Header) c() *C.upfront_arena { return (*C.upfront_arena)(checked(h)) }

// moved reports to the race detector the bytes freed since cursor and limit had these values; the
// detector doesn't see a rewind, which only moves a cursor. The caller reads both into variables
// before the call into C, because Go doesn't order an operand and a call in one expression. If
// nothing was freed, no address is formed: the end of a block may be the start of another object.
func (h *Header) moved(cursor, limit uint64, code Code) Code {
	if Race && h.Cursor < cursor {
		raceDead(h.At(h.Cursor), uintptr(cursor-h.Cursor))
	}
	if Race && limit < h.Limit {
		raceDead(h.At(limit), uintptr(h.Limit-limit))
	}
	return code
}
