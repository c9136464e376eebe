package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Ring frees its blocks in the order in which it allocated them. It is for streams, and for queues
// of commands. At the end of its memory it wraps to the start; no block straddles the end. A block
// costs 8 bytes of header and is aligned to at least 8.
type Ring struct {
	header *arena_c.Ring
	gen    uint64
}

var _ Freer = Ring{}

// NewRing makes a Ring on the block, whose contents are lost. The block has at least 192 bytes; the
// header takes 128 of them.
func NewRing(block []byte) (Ring, error) {
	room, err := roomIn(block, "Ring", arena_c.RoomRing, 2*arena_c.LineSize)
	if err != nil {
		return Ring{}, err
	}
	header := arena_c.RingInit(room)
	return Ring{header, header.Gen}, nil
}

// Alloc returns size bytes aligned to align, not zeroed, as the newest block, or nil when the ring
// is full. The block lives until Free, Reset or an Overwrite that needs its bytes.
//
// Alloc succeeds exactly when the bytes fit in one piece, after the newest block or at the start
// before the oldest. With an align of at least 8 it therefore always succeeds when free >=
// 2*(size+align+7). In an empty ring it succeeds when free >= size+align+7. Cost: O(1), and one
// call into C when the ring wraps or is full.
func (r Ring) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Ring", size, align)
	mask |= arena_c.RingMask
	if !arena_c.Checked {
		if p := r.its().Push(r.gen, size, mask); p != nil {
			return p
		}
	}
	return r.its().Alloc(r.gen, size, mask)
}

// Overwrite is an Alloc that first frees as many of the oldest blocks as it needs. So a block may
// end before the caller frees it. A reader of the block may then read new bytes, and a Free of the
// block returns an error, unless the oldest block now begins at the same address. Use Overwrite for
// data that may be lost, like the last events before a crash. One goroutine must both write and
// read.
//
// Overwrite returns nil, and frees no block, if size bytes don't fit even in the empty ring. It may
// also return nil after a stray write to a block's header; Reset repairs the ring. Cost: O(blocks
// freed).
func (r Ring) Overwrite(size, align uint64) unsafe.Pointer {
	size, mask := asked("Ring", size, align)
	return r.its().Overwrite(r.gen, size, mask|arena_c.RingMask)
}

// Oldest returns the oldest live block and its size in bytes, or nil when the ring is empty. If a
// stray write moved the block's end past the newest block, the size is 0 and Free reports
// "overwritten words".
func (r Ring) Oldest() (p unsafe.Pointer, size uint64) { return r.its().Front() }

// Free frees the oldest block. For any other address it returns an error and changes nothing. An
// error with "write past" means that a stray write has hit a block's header; Reset repairs the
// ring. Cost: O(1), and O(blocks) for an error.
func (r Ring) Free(oldest unsafe.Pointer) error {
	if r.its().Pop(r.gen, oldest) {
		return nil
	}
	return refused("Ring.Free", r.header.Find(r.gen, oldest))
}

// Reset frees all blocks.
func (r Ring) Reset() { r.its().Reset(r.gen) }

// MustEmpty makes the ring report leaks as a Heap does: each block that is still live when the
// ring's memory is freed is a leak. Call it if all messages must be read. Without it a ring may end
// with live blocks. On memory outside a budget it does nothing, like [Heap.MayLive].
func (r Ring) MustEmpty() {
	arena_c.RoomMayLive(arena_c.RoomRing, r.Block(), false)
}

// Len returns the number of live blocks.
func (r Ring) Len() int { return int(r.its().Count) }

// Room returns the largest size in bytes that Alloc can serve now, for an align of 8 or less.
func (r Ring) Room() uint64 { return r.its().Room() }

// Stats returns the counts. Used counts all bytes from the oldest block to the newest, a skipped
// tail included.
func (r Ring) Stats() Stats {
	size, used := r.its().Size(), r.header.Used()
	if used > size { // the oldest would begin after the newest: a stray write
		used = 0
	}
	return Stats{Size: size, Used: used, Free: size - used, Peak: r.header.Peak()}
}

// Block returns the first byte of the ring's block.
func (r Ring) Block() unsafe.Pointer { return unsafe.Pointer(r.its()) }

func (r Ring) its() *arena_c.Ring { return made(r.header, "Ring") }
