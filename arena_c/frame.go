package arena_c

// #include "frame.h"
// #cgo noescape upfront_frame_size
// #cgo nocallback upfront_frame_size
// #cgo nocallback upfront_frame_init
// #cgo noescape upfront_frame_next
// #cgo nocallback upfront_frame_next
import "C"

import "unsafe"

// Frame is the header of buffers that take turns (frame.h).
type Frame struct {
	Header
	Buffers, Current, Size, Count, _, _, _, _ uint64
}

var _ [unsafe.Sizeof(Frame{})]byte = [unsafe.Sizeof(C.upfront_frame{})]byte{}

// FrameMin and FrameMax bound the number of buffers.
const (
	FrameMin = C.UPFRONT_FRAME_MIN
	FrameMax = C.UPFRONT_FRAME_MAX
)

// Used returns the used bytes of the current buffer.
func (f *Frame) Used() uint64 { return f.Cursor - f.Start }

// Peak returns the highest use of a buffer in bytes.
func (f *Frame) Peak() uint64 { return f.Size - min(f.Limit-f.Cursor, f.Least) }

// Padding returns the padding bytes in the current buffer; 0 in builds that aren't checked.
func (f *Frame) Padding() uint64 {
	if !Checked {
		return 0
	}
	return f.Used() - f.Count
}

// Push is upfront_frame_bump.
func (f *Frame) Push(gen, size, mask uint64) unsafe.Pointer {
	p, ok := f.Bump(gen, size, mask)
	if Checked && ok {
		f.Count += size
	}
	return p
}

// Live reports whether the objects of the frame with that generation are alive.
func (f *Frame) Live(gen uint64) bool { return f.Gen-gen < f.Buffers }

// FrameSize is upfront_frame_size.
func FrameSize(size, buffers uint64) uint64 {
	return uint64(C.upfront_frame_size(C.uint64_t(size), C.uint64_t(buffers)))
}

// FrameInit is upfront_frame_init.
func FrameInit(r Room, buffers uint64) *Frame {
	f := C.upfront_frame_init(r.of(RoomFrame), C.uint64_t(r.Size), C.uint64_t(buffers))
	return made[Frame](r, unsafe.Pointer(f))
}

// Next is upfront_frame_next.
func (f *Frame) Next() {
	crossed(writes(&f.Cursor), C.upfront_frame_next((*C.upfront_frame)(unsafe.Pointer(f))))
	if Race {
		raceDead(f.At(f.Cursor), uintptr(f.Limit-f.Cursor))
	}
}
