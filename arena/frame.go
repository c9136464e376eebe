package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Frame divides a block into N equal buffers that take turns. A block allocated in frame n lives
// until the end of frame n+N-1: with one buffer until Next, with two buffers until the end of the
// next frame. A Frame doesn't free single blocks.
type Frame struct{ header *arena_c.Frame }

// FrameHandle is one frame of a Frame. Alloc works until the frame ends, and Live reports whether
// the frame's blocks still live.
type FrameHandle struct {
	header *arena_c.Frame
	gen    uint64
}

var (
	_ Allocator = Frame{}
	_ Allocator = FrameHandle{}
)

// NewFrame makes a Frame of 1 to 8 buffers on the block. The size of a buffer is a multiple of 64;
// the remainder of the block isn't used. The block's contents are lost.
func NewFrame(block []byte, buffers int) (Frame, error) {
	if buffers < arena_c.FrameMin || buffers > arena_c.FrameMax {
		return Frame{}, fmt.Errorf("arena: a Frame has %d to %d buffers, not %d", arena_c.FrameMin, arena_c.FrameMax,
			buffers)
	}
	if least := arena_c.FrameSize(1, uint64(buffers)); uint64(len(block)) < least {
		return Frame{}, fmt.Errorf("arena: a Frame of %d buffers needs a block of at least %d bytes, this one has %d",
			buffers, least, len(block))
	}
	room, err := roomIn(block, "Frame", arena_c.RoomFrame, arena_c.LineSize)
	if err != nil {
		return Frame{}, err
	}
	return Frame{arena_c.FrameInit(room, uint64(buffers))}, nil
}

// Alloc returns size bytes of the current buffer aligned to align, not zeroed, or nil when the
// buffer is full. The bytes live until the buffer is current again, after as many calls of Next as
// the Frame has buffers.
func (f Frame) Alloc(size, align uint64) unsafe.Pointer {
	return f.Now().Alloc(size, align)
}

// Next ends the frame. The oldest buffer is emptied and becomes the current one. Cost: one call
// into C.
func (f Frame) Next() { f.its().Next() }

// Now returns the current frame.
func (f Frame) Now() FrameHandle { return FrameHandle{f.header, f.its().Gen} }

// Alloc is Frame.Alloc while h's frame is the current one. Afterwards it returns nil, as when the
// buffer is full.
func (h FrameHandle) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Frame", size, align)
	return made(h.header, "FrameHandle").Push(h.gen, size, mask)
}

// Live reports whether the blocks of h's frame still live. It is false for the zero handle.
func (h FrameHandle) Live() bool { return h.header != nil && h.header.Live(h.gen) }

// Buffers returns the number of buffers. Current returns the index of the current buffer.
func (f Frame) Buffers() int { return int(f.its().Buffers) }
func (f Frame) Current() int { return int(f.its().Current) }

// Stats returns the counts of the current buffer; Peak is the highest Used of any frame.
func (f Frame) Stats() Stats {
	h := f.its()
	return Stats{Size: h.Size, Used: h.Used(), Free: h.Limit - h.Cursor, Peak: h.Peak()}
}

func (f Frame) its() *arena_c.Frame { return made(f.header, "Frame") }
