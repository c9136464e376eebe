package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Heap gives blocks of any size, in any order, and takes them back: for C libraries, and for things of different size that
// come and go. HeapOf and NewString give values, slices and texts on it. It fragments: LargestFree may be far below
// Stats.Free, and nothing bounds by how much. Each operation takes the same time however full it is; a crossing into C is a
// good part of it.
//
// A block costs 16 bytes beside its own, is rounded up to 16, and takes 32 at least. Misuse is told by a sealed header
// before each block: arena_c/heap.h says what it can't tell. A stray write into free memory puts the block out of service
// that it hit, and no other; Err tells it. In checked builds a method that meets it panics, unless it has an error. It is a small value; copies are the same heap, and one
// goroutine at a time may use it: a Shared is for more, and for C libraries. The race detector reports two; checked builds
// refuse who comes second, with an error or, where a method has none, a panic. It lives as long as its block. It holds no
// address, so a level's state may have one (budget/save): made before the state is whole.
type Heap struct{ header *arena_c.Heap }

var _ Reallocator = Heap{}

// NewHeap makes a heap of the block, which begins at a multiple of 64 and has at least 496 bytes: in a scope,
// BytesUnzeroed(n, 64). What was in the block is lost. Blocks that are live when the scope closes are a leak, unless MayLive
// was said.
//
// Of freed blocks of 1 KiB or less so many as parked says are kept as they are, and given to who asks for just that size.
// That takes C a third of the time among a thousand small blocks, two thirds among 100,000, and little less where sizes go
// to 4 KiB. A C library's heap parks 256; more are better where a program frees more before it takes them again. What would
// be refused melts them first, all in one call. They need 512 bytes more in front; 0 parks none.
func NewHeap(block []byte, parked uint64) (Heap, error) {
	room, err := roomIn(block, "Heap", arena_c.RoomHeap, arena_c.LineSize)
	if err != nil {
		return Heap{}, err
	}
	header := arena_c.HeapInit(room, parked)
	if header == nil {
		least := arena_c.HeapBlock
		if parked != 0 {
			least += arena_c.HeapFrontBytes
		}
		return Heap{}, fmt.Errorf("arena: a Heap needs a block of at least %d bytes, this one has %d", least, len(block))
	}
	return Heap{header}, nil
}

// Alloc gives size bytes aligned to align, and to 16 at least, not zeroed; nil when the heap is full. Size 0 gives an
// address of its own.
func (h Heap) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Heap", size, align)
	was := seen(h.its())
	p := h.header.Alloc(size, align)
	if p == nil || arena_c.Checked {
		h.tell("Heap.Alloc", was)
	}
	return p
}

// heapSeen is what a heap had counted before a call.
type heapSeen struct{ raced, damaged uint64 }

func seen(h *arena_c.Heap) heapSeen { return heapSeen{h.Raced, h.Damaged} }

// tell panics when somebody came while another was inside, which checked builds refuse and count, or when the call met
// damage, in checked builds.
func (h Heap) tell(what string, was heapSeen) { was.tell(what, seen(h.header), h.Err) }

func (was heapSeen) tell(what string, is heapSeen, err func() error) {
	if is.raced != was.raced {
		panic(refused(what, arena_c.Raced).Error())
	}
	if arena_c.Checked && is.damaged != was.damaged {
		panic(fmt.Sprintf("arena: BUG: %s: %v", what, err()))
	}
}

// Err says whether a stray write into free memory was met, or one past a block's end: how often, and where the last was.
// The block that it hit is out of service; Alloc gives all others. Nil also where nobody has come by yet: Alloc looks
// over the blocks before it says that the heap is full.
func (h Heap) Err() error {
	x := h.its()
	return damage("Heap", unsafe.Pointer(x), x.Damaged, x.Where, fmt.Sprintf("; %d bytes are out of service", x.LostBytes))
}

// damage is the error for so many times that an arena met something overwritten; nil for 0.
func damage(what string, header unsafe.Pointer, times, where uint64, lost string) error {
	if times == 0 {
		return nil
	}
	at, had := "at a place that nobody knows", ""
	if where != 0 {
		p := unsafe.Add(header, where)
		at, had = fmt.Sprintf("the last at %p, offset %d", p, where), arena_c.Had(p)
	}
	return fmt.Errorf("arena: BUG: %s: a write past a block or into freed memory was met %s, %s%s%s", what, timesOf(times), at, lost, had)
}

func timesOf(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Free takes a block back; nil is nothing to take. A double free, and an address that is no block of this heap, are
// refused and change nothing. An error that says "corrupt table" tells of a write past the block's end or into a free
// one beside it; the block is given back all the same.
func (h Heap) Free(p unsafe.Pointer) error {
	return refusedOr("Heap.Free", h.its().Free(p), h.Err)
}

// refusedOr is refused with what err says, for a code that tells of damage.
func refusedOr(what string, code arena_c.Code, err func() error) error {
	if code == arena_c.Corrupt {
		if damage := err(); damage != nil {
			return fmt.Errorf("%w: %w", refused(what, code), damage)
		}
	}
	return refused(what, code)
}

// Realloc gives the block another size, and keeps its contents and its alignment. It shrinks in place, and grows in
// place, up or down, where there is room; otherwise the block moves. When the heap is full it gives nil and no error,
// and p is as it was. A nil p is Alloc aligned to 16. An address that is no live block is refused, with an error.
func (h Heap) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	was := seen(h.its())
	q := h.header.Realloc(p, size)
	if q != nil {
		if arena_c.Checked {
			h.tell("Heap.Realloc", was)
		}
		return q, nil
	}
	if h.header.Raced != was.raced {
		return nil, refused("Heap.Realloc", arena_c.Raced)
	}
	return nil, refused("Heap.Realloc", h.header.Check(p))
}

// SizeOf is the size that was asked for. An address that is no live block is refused, with an error.
func (h Heap) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := h.its().SizeOf(p)
	return size, refused("Heap.SizeOf", code)
}

// Reset frees everything, and ends a Shared of the heap, whose lock lies in it. Addresses from before are refused, also where
// nothing was written since. The reserve, the peaks and the counts of refusals stay.
func (h Heap) Reset() {
	was := seen(h.its())
	h.header.Reset()
	h.tell("Heap.Reset", was)
	arena_c.SayOfRoom(arena_c.RoomHeap, unsafe.Pointer(h.header), arena_c.RoomWasReset)
}

// MayLive says that blocks may be live when the memory of the heap ends: the level, the match, the request that it lies in.
// Say it where that is how they are freed, as of an interpreter that is dropped with all that it has, or of values whose
// memory alone matters. Without it live blocks are a leak: the Close of the scope, the Rewind of the region or the Close of
// the budget that ends them returns an error that says how many, and in checked builds where the heap was made and where each
// block was allocated. It ends with the heap, and holds for its Shared.
//
// A heap that lies in no budget, as one on NewBlock, ends when the collector takes it: nobody looks, and MayLive does
// nothing. Nor does anybody look at a heap in a block of another arena; that one's block is what is freed, or leaks. Any
// goroutine may say it. Cost: a search for the arena that the heap lies in.
func (h Heap) MayLive() {
	arena_c.SayOfRoom(arena_c.RoomHeap, unsafe.Pointer(h.its()), arena_c.RoomMayLive)
}

// Reserve keeps so many bytes back, or 16 fewer, blocks' headers included: a request that needs any of them is full.
// Reserve(0) lifts it, so that what a program does to get out of a full finds room: a database that is full to the brim
// can't even drop a table. More than there is keeps all; what is live stays live.
func (h Heap) Reserve(bytes uint64) { h.its().Reserve(bytes) }

// Phase gives the highest Used since the last Phase, and begins a new one: what a load, a match or a query takes at most.
func (h Heap) Phase() uint64 { return h.its().TakePhase() }

// Flush melts the parked blocks with the free ones beside them. Cost: O(parked).
func (h Heap) Flush() {
	was := seen(h.its())
	h.header.Flush()
	h.tell("Heap.Flush", was)
}

// HeapStats are those of a heap. The headers of blocks are in Used; parked blocks are in Free.
type HeapStats struct {
	Stats
	Live    uint64 // blocks
	Parked  uint64 // freed blocks in front lists, and in checked builds those that rest
	Reserve uint64 // bytes that are kept back
	Failed  uint64 // requests that were refused for want of room since NewHeap
	Bounded uint64 // of those, how many a block may have fitted that lies deeper in its list than Alloc looks
	Lost    uint64 // bytes of blocks that are out of service, because they were overwritten: in neither Used nor Free
	Damaged uint64 // how often something overwritten was met: Err says where
}

// Stats reads the counts.
func (h Heap) Stats() HeapStats {
	x := h.its()
	size := x.End - x.First
	return HeapStats{
		Stats: Stats{Size: size, Used: x.Used, Free: size - x.Used - x.LostBytes, Peak: x.Peak()},
		Live:  x.Live, Parked: x.Parked + x.Rest.Blocks, Reserve: size - x.LostBytes - x.Most, Failed: x.Failed, Bounded: x.Bounded,
		Lost: x.LostBytes, Damaged: x.Damaged,
	}
}

// LargestFree is the size of the largest free block: of what Alloc could give aligned to 16 without a reserve. Cost:
// O(blocks).
func (h Heap) LargestFree() uint64 {
	was := seen(h.its())
	largest := h.header.Largest()
	h.tell("Heap.LargestFree", was)
	return largest
}

func (h Heap) its() *arena_c.Heap { return made(h.header, "Heap") }
