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

// moving is a call into C that may free bytes at the ends of an arena. It has the cursor and the
// limit from before the call.
type moving struct {
	h             *Header
	cursor, limit uint64
	crossing      crossing
}

func (h *Header) moves() moving { return moving{h, h.Cursor, h.Limit, writes(&h.Cursor)} }

// moved reports to the race detector the bytes that the call freed; the detector doesn't see a
// rewind, which only moves a cursor. If nothing was freed, no address is formed: the end of a block
// may be the start of another object.
func moved[T any](m moving, answer T) T {
	crossed(m.crossing, answer)
	if h := m.h; Race && h.Cursor < m.cursor {
		raceDead(h.At(h.Cursor), uintptr(m.cursor-h.Cursor))
	}
	if h := m.h; Race && m.limit < h.Limit {
		raceDead(h.At(m.limit), uintptr(h.Limit-m.limit))
	}
	return answer
}
