package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Ring is first in, first out, over a block: for streams and commands. It begins again at the start of the block when
// its end is reached; no allocation straddles the end. Each costs 8 bytes beside its own, and is aligned to 8 at least.
// It is a small value; copies are the same ring.
type Ring struct {
	header *arena_c.Ring
	gen    uint64
}

var _ Freer = Ring{}

// NewRing makes a ring of the block, which has at least 192 bytes: the header takes 128. What was in the block is lost.
func NewRing(block []byte) (Ring, error) {
	room, err := roomIn(block, "Ring", arena_c.RoomRing, 2*arena_c.LineSize)
	if err != nil {
		return Ring{}, err
	}
	header := arena_c.RingInit(room)
	return Ring{header, header.Gen}, nil
}

// Alloc gives size bytes aligned to align, not zeroed, as the newest; nil when the ring is full. It succeeds exactly when
// the bytes fit, in one piece, behind the newest or at the start before the oldest; whatever happened before, it does
// when free >= 2*(size+align+7), and in an empty ring when free >= size+align+7, with an align of at least 8. Cost:
// O(1), one call into C a lap. The bytes live until Free, or Reset.
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

// Overwrite is Alloc that finds room: it frees the oldest blocks until there is some. It gives up that a block lives until
// Free: who still reads the oldest reads what is new, and who frees it then is refused, unless the oldest begins there
// now. So it is for what may be lost, the last events before a crash, and for one goroutine that writes and reads. Nil:
// size bytes don't fit in the empty ring either, and nothing was freed; or a stray write hit the word before an allocation,
// which Free says, and Reset mends. Cost: O(blocks freed).
func (r Ring) Overwrite(size, align uint64) unsafe.Pointer {
	size, mask := asked("Ring", size, align)
	return r.its().Overwrite(r.gen, size, mask|arena_c.RingMask)
}

// Oldest is what was allocated first of what is live, and its size; nil when the ring is empty. Where a stray write hit the
// word before it, so that it would end behind the newest, it has 0 bytes, and Free says "corrupt table".
func (r Ring) Oldest() (p unsafe.Pointer, size uint64) { return r.its().Front() }

// Free frees the oldest, and no other: anything else is refused and changes nothing. An error that says "corrupt table"
// tells of a stray write into the word before an allocation; Reset makes the ring whole. Cost: O(1), when refused O(blocks).
func (r Ring) Free(oldest unsafe.Pointer) error {
	if r.its().Pop(r.gen, oldest) {
		return nil
	}
	return refused("Ring.Free", r.header.Find(r.gen, oldest))
}

// Reset frees everything.
func (r Ring) Reset() { r.its().Reset(r.gen) }

// MustEmpty says that nothing may be live in the ring when its memory ends, as where each message must be read: what is, is
// a leak then, as a block of a Heap is. Else a ring ends with what is in it. On memory of no budget it does nothing, as
// Heap.MayLive.
func (r Ring) MustEmpty() {
	arena_c.SayOfRoom(arena_c.RoomRing, unsafe.Pointer(r.its()), arena_c.RoomMustEmpty)
}

// Len is the number of live allocations.
func (r Ring) Len() int { return int(r.its().Count) }

// Room is the largest size that Alloc gives now at an align of 8 or less.
func (r Ring) Room() uint64 { return r.its().Room() }

// Stats counts as used what lies between the oldest and the newest, with the tail that was skipped.
func (r Ring) Stats() Stats {
	size, used := r.its().Size(), r.header.Used()
	if used > size { // the oldest would begin behind the newest: a stray write
		used = 0
	}
	return Stats{Size: size, Used: used, Free: size - used, Peak: r.header.Peak()}
}

func (r Ring) its() *arena_c.Ring { return made(r.header, "Ring") }
