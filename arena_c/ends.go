package arena_c

// #include "ends.h"
// // An address to be judged is passed as a number: see pool.go.
// static inline int upfront_ends_resize_at(upfront_ends *e, uint64_t tag, uintptr_t p, uint64_t old, uint64_t size) {
//     return upfront_ends_resize(e, tag, (const void *)p, old, size);
// }
// #cgo noescape upfront_ends_init
// #cgo nocallback upfront_ends_init
// #cgo noescape upfront_ends_rewind
// #cgo nocallback upfront_ends_rewind
// #cgo noescape upfront_ends_rewind_far
// #cgo nocallback upfront_ends_rewind_far
// #cgo noescape upfront_ends_resize_at
// #cgo nocallback upfront_ends_resize_at
// #cgo noescape upfront_ends_reset
// #cgo nocallback upfront_ends_reset
import "C"

import "unsafe"

// FarEnd is what a second end needs: ends.h says what its words mean.
type FarEnd struct {
	End, Low, Count, Mark, FarMark, Chain uint64
	_                                     [2]uint64
}

// Ends is the header of a linear arena with two ends: ends.h.
type Ends struct {
	Linear Linear
	FarEnd FarEnd
}

// FarAt is upfront_far_at: the far end's position.
func (l *Linear) FarAt() uint64 { return l.Limit & Offsets }

func (e *Ends) c() *C.upfront_ends { return (*C.upfront_ends)(checked(e)) }

// deadFar is dead at the far end.
func (l *Linear) deadFar(was uint64, code Code) Code {
	if Race {
		raceDead(l.At(was), uintptr(l.FarAt()-was))
	}
	return code
}

// EndsInit is upfront_ends_init.
func EndsInit(block unsafe.Pointer, size uint64) *Ends {
	return (*Ends)(unsafe.Pointer(C.upfront_ends_init(block, C.uint64_t(size))))
}

// Rewind is upfront_ends_rewind.
func (e *Ends) Rewind(tag, mark uint64) Code {
	was := e.Linear.Cursor
	return e.Linear.dead(was, Code(crossed(writes(&e.Linear.Cursor),
		C.upfront_ends_rewind(e.c(), C.uint64_t(tag), C.uint64_t(mark)))))
}

// RewindFar is upfront_ends_rewind_far.
func (e *Ends) RewindFar(tag, mark uint64) Code {
	was := e.Linear.FarAt()
	return e.Linear.deadFar(was, Code(crossed(writes(&e.Linear.Cursor),
		C.upfront_ends_rewind_far(e.c(), C.uint64_t(tag), C.uint64_t(mark)))))
}

// Resize is upfront_ends_resize.
func (e *Ends) Resize(tag uint64, p unsafe.Pointer, old, size uint64) Code {
	was, before := e.Linear.Cursor, *e
	code := Code(crossed(writes(&e.Linear.Cursor),
		C.upfront_ends_resize_at(e.c(), C.uint64_t(tag), C.uintptr_t(uintptr(p)), C.uint64_t(old), C.uint64_t(size))))
	if Checked && code == OK && size > old && !given(e, before) {
		e.Linear.Refused = tag + size + OnPurpose
		return Full
	}
	return e.Linear.dead(max(was, e.Linear.Cursor), code)
}

// Reset is upfront_ends_reset.
func (e *Ends) Reset() {
	was, far := e.Linear.Cursor, e.Linear.FarAt()
	crossed(writes(&e.Linear.Cursor), C.upfront_ends_reset(e.c()))
	e.Linear.dead(was, OK)
	e.Linear.deadFar(far, OK)
}
