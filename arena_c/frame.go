package arena_c

// #include "frame.h"
// #cgo noescape upfront_frame_size
// #cgo nocallback upfront_frame_size
// #cgo noescape upfront_frame_init
// #cgo nocallback upfront_frame_init
// #cgo noescape upfront_frame_turn
// #cgo nocallback upfront_frame_turn
import "C"

import "unsafe"

// Frame is the header of buffers that take turns: frame.h.
type Frame struct {
	Buffers, Current, Size, Turns, TopUsed, _, _, _ uint64
}

// How many buffers a frame arena may have.
const (
	FrameMin = 2
	FrameMax = 8
)

// Buffer is the header of the n-th buffer.
func (f *Frame) Buffer(n uint64) *Linear {
	return (*Linear)(unsafe.Add(unsafe.Pointer(f), (n+1)*LineSize))
}

// Now is the header of the current buffer.
func (f *Frame) Now() *Linear { return f.Buffer(f.Current) }

// Used is the bytes in the current buffer.
func (f *Frame) Used() uint64 { return f.Now().Cursor - f.Now().Start }

// Peak is the most that one buffer held.
func (f *Frame) Peak() uint64 { return max(f.TopUsed, f.Used()) }

// FrameSize is upfront_frame_size.
func FrameSize(size, buffers uint64) uint64 {
	return uint64(C.upfront_frame_size(C.uint64_t(size), C.uint64_t(buffers)))
}

// FrameInit is upfront_frame_init.
func FrameInit(block unsafe.Pointer, size, buffers uint64) *Frame {
	return (*Frame)(unsafe.Pointer(C.upfront_frame_init(block, C.uint64_t(size), C.uint64_t(buffers))))
}

// Turn is upfront_frame_turn.
func (f *Frame) Turn() {
	next := f.Buffer((f.Current + 1) % f.Buffers)
	was := next.Cursor
	crossed(writes(&f.Current), C.upfront_frame_turn((*C.upfront_frame)(unsafe.Pointer(f))))
	next.dead(was, OK)
}
