package arena_c

// #include "ends.h"
// // An address to be checked is passed as a number: see pool.go.
// static inline int upfront_ends_resize_at(upfront_ends *e, uint64_t gen, uintptr_t p, uint64_t old, uint64_t size) {
//     UPFRONT_ASK(int, upfront_ends_resize(e, gen, (const void *)p, old, size))
// }
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

// Ends is the header of a linear arena with two ends: ends.h.
type Ends struct {
	Header
	End, High, Low, Mark, FarMark, Last, FarLast, Lost uint64
}

var _ [unsafe.Sizeof(Ends{})]byte = [unsafe.Sizeof(C.upfront_ends{})]byte{}

// PushNear is upfront_arena_bump; checked builds count the padding.
func (e *Ends) PushNear(gen, size, mask uint64) unsafe.Pointer {
	from := e.Cursor
	p, ok := e.Bump(gen, size, mask)
	if Checked && ok {
		e.Lost += e.Cursor - from - size
	}
	return p
}

func (e *Ends) c() *C.upfront_ends { return (*C.upfront_ends)(checked(e)) }

// EndsInit is upfront_ends_init.
func EndsInit(r Room) *Ends {
	return made[Ends](r, unsafe.Pointer(C.upfront_ends_init(r.of(RoomEnds), C.uint64_t(r.Size))))
}

// Rewind is upfront_ends_rewind.
func (e *Ends) Rewind(gen, mark uint64) Code {
	return Code(moved(e.moves(), C.upfront_ends_rewind(e.c(), C.uint64_t(gen), C.uint64_t(mark))))
}

// RewindFar is upfront_ends_rewind_far.
func (e *Ends) RewindFar(gen, mark uint64) Code {
	return Code(moved(e.moves(), C.upfront_ends_rewind_far(e.c(), C.uint64_t(gen), C.uint64_t(mark))))
}

// Resize is upfront_ends_resize.
func (e *Ends) Resize(gen uint64, p unsafe.Pointer, old, size uint64) Code {
	return Code(moved(e.moves(), C.upfront_ends_resize_at(e.c(), C.uint64_t(gen), C.uintptr_t(uintptr(p)),
		C.uint64_t(old), C.uint64_t(size))))
}

// Reset is upfront_ends_reset.
func (e *Ends) Reset() {
	moved(e.moves(), C.upfront_ends_reset(e.c()))
}
