package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Frame is N equal buffers over a block that take turns: what was made in frame n lives until the end of frame n+N-1,
// with two buffers to the end of the next, with one until Next. Nothing is freed one by one. It is a small value; copies are the same arena.
type Frame struct{ header *arena_c.Frame }

// FrameHandle is one frame of a Frame. It allocates until the frame turns, and tells whether what was made in it is
// still there.
type FrameHandle struct {
	header *arena_c.Frame
	gen    uint64
}

var (
	_ Allocator = Frame{}
	_ Allocator = FrameHandle{}
)

// NewFrame makes buffers buffers, from 1 to 8, of the block. Their size is a multiple of 64; what is left over by the
// division isn't used. What was in the block is lost.
func NewFrame(block []byte, buffers int) (Frame, error) {
	if buffers < arena_c.FrameMin || buffers > arena_c.FrameMax {
		return Frame{}, fmt.Errorf("arena: a Frame has %d to %d buffers, not %d", arena_c.FrameMin, arena_c.FrameMax, buffers)
	}
	if least := arena_c.FrameSize(1, uint64(buffers)); uint64(len(block)) < least {
		return Frame{}, fmt.Errorf("arena: a Frame of %d buffers needs a block of at least %d bytes, this one has %d", buffers, least,
			len(block))
	}
	room, err := roomIn(block, "Frame", arena_c.RoomFrame, arena_c.LineSize)
	if err != nil {
		return Frame{}, err
	}
	return Frame{arena_c.FrameInit(room, uint64(buffers))}, nil
}

// Alloc gives size bytes of the current buffer aligned to align, not zeroed; nil when the buffer is full. They live until
// the buffer's turn comes again, Buffers turns from now. Cost: that of Linear.
func (f Frame) Alloc(size, align uint64) unsafe.Pointer {
	return f.Now().Alloc(size, align)
}

// Next ends the frame: the oldest buffer dies and becomes the current one. Checked builds catch a read of what died.
// Cost: one call into C.
func (f Frame) Next() { f.its().Next() }

// Now is the current frame.
func (f Frame) Now() FrameHandle { return FrameHandle{f.header, f.its().Gen} }

// Alloc is Frame.Alloc while h's frame is the current one; nil after it has turned, as when the buffer is full.
func (h FrameHandle) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Frame", size, align)
	return made(h.header, "FrameHandle").Push(h.gen, size, mask)
}

// Live says whether what was made in h's frame is still there. The zero handle is not.
func (h FrameHandle) Live() bool { return h.header != nil && h.header.Live(h.gen) }

// Buffers is how many there are, Current the index of the one that allocates.
func (f Frame) Buffers() int { return int(f.its().Buffers) }
func (f Frame) Current() int { return int(f.its().Current) }

// Stats is that of the current buffer; Peak is that of any frame.
func (f Frame) Stats() Stats {
	h := f.its()
	return Stats{Size: h.Size, Used: h.Used(), Free: h.Limit - h.Cursor, Peak: h.Peak()}
}

// Padding is the bytes of Used that nobody asked for. Checked builds count them; others, in which Alloc does nothing that
// it needn't, don't know them, and say false.
func (f Frame) Padding() (bytes uint64, known bool) { return f.its().Padding(), arena_c.Checked }

func (f Frame) its() *arena_c.Frame { return made(f.header, "Frame") }
