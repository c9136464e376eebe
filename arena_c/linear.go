package arena_c

// #include "linear.h"
import "C"

import "unsafe"

// Linear is the header of a linear arena, and of a scope: linear.h says what its words mean.
type Linear struct {
	Cursor, Limit, Origin, Count, Start, Peak, Chain, Refused uint64
}

// Tag is the generation of the header: the tag of a handle that is not stale.
func (l *Linear) Tag() uint64 { return l.Limit &^ Offsets }

// At is the address of an offset.
func (l *Linear) At(offset uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(l), l.Origin+offset)
}

// Offset is the offset of an address.
func (l *Linear) Offset(p unsafe.Pointer) uint64 {
	return uint64(uintptr(p)) - uint64(uintptr(unsafe.Pointer(l))) - l.Origin
}

// Bytes is the sum of the sizes that were asked for since the scope was opened; what else it uses is padding.
func (l *Linear) Bytes() uint64 { return l.Count & (Object - 1) }

// Objects is the number of allocations since the scope was opened, modulo 2^26.
func (l *Linear) Objects() uint64 { return l.Count / Object }

// Padding is upfront_linear_padding: of the bytes in use those that were not asked for.
func (l *Linear) Padding() uint64 { return l.Cursor - l.Start - l.Bytes() }

func (l *Linear) c() *C.upfront_linear { return (*C.upfront_linear)(checked(l)) }

// dead tells the race detector what died when the cursor moved back from where it was: a rewind that only moves a
// cursor conflicts with nobody. Where it was is read into a variable first: Go doesn't say whether an operand or a call
// beside it comes first.
func (l *Linear) dead(was uint64, code Code) Code {
	if Race {
		raceDead(l.At(l.Cursor), uintptr(was-l.Cursor))
	}
	return code
}
