package arena

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Heap allocates blocks of any size and frees them in any order. It is for C libraries, and for
// values of different sizes that come and go. HeapOf and NewString make values, slices and texts on
// a Heap. A heap fragments: LargestFree may be far below Stats.Free, and no bound limits the
// difference. Alloc and Free are O(1), but an Alloc for which no free block is large enough merges
// all parked blocks. The call into C is a good part of the time.
//
// A block costs 16 bytes of header. Its size with the header is rounded up to a multiple of 16, and
// is at least 32. A sealed header before each block detects misuse; arena_c/heap.h names the misuse
// that stays undetected. After a stray write of up to 64 bytes into free memory all other blocks
// stay usable, and Err reports the write once a call has found it. In checked builds the method
// that finds the damage returns an error or panics.
//
// One goroutine at a time uses a heap. Several goroutines, or a C library, use a heap through its
// [Shared]. The race detector reports two calls at once. Checked builds refuse the second call: its
// method returns an error or panics. A Heap holds no addresses, so it may be part of a level's
// state (budget/save) if it is made before the state is complete.
type Heap struct{ header *arena_c.Heap }

var _ Reallocator = Heap{}

// NewHeap makes a Heap on the block, whose contents are lost. The block must begin at a multiple of
// 64 and have at least 496 bytes. In a scope, allocate it with BytesUnzeroed(n, 64). Blocks that
// are live when the scope closes are a leak, unless MayLive was called.
//
// The heap keeps up to `parked` freed blocks of 1 KiB or less unmerged, for requests of the same
// rounded size. The lists of parked blocks need 512 bytes more. With parked blocks an Alloc and a
// Free in C take a third of the time among a thousand small blocks. In a mix of sizes up to 4 KiB,
// or among 100,000 blocks, they save little or cost time. The heaps of Lua and SQLite in arena/with
// park 256 blocks. Park more if the program frees more than 256 blocks before it allocates new
// ones. Before the heap refuses a request, it merges all parked blocks, in the same call.
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
		return Heap{}, fmt.Errorf("arena: a Heap needs a block of at least %d bytes, this one has %d", least,
			len(block))
	}
	return Heap{header}, nil
}

// Alloc returns size bytes aligned to align and at least to 16, not zeroed, or nil when the heap is
// full. For size 0 it returns an address that no other live block has.
func (h Heap) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Heap", size, align)
	was := seen(h.its())
	p := h.header.Alloc(size, align)
	if p == nil || arena_c.Checked {
		h.tell("Heap.Alloc", was)
	}
	return p
}

type heapSeen struct{ raced, damaged uint64 }

func seen(h *arena_c.Heap) heapSeen { return heapSeen{h.Raced, h.Damaged} }

// tell panics in checked builds if the call found damage, or was refused because another call was
// inside.
func (h Heap) tell(what string, was heapSeen) { was.tell(what, seen(h.header), h.Err) }

func (was heapSeen) tell(what string, is heapSeen, err func() error) {
	if is.raced != was.raced {
		panic(refused(what, arena_c.Raced).Error())
	}
	if arena_c.Checked && is.damaged != was.damaged {
		panic(fmt.Sprintf("arena: BUG: %s: %v", what, err()))
	}
}

// Err returns an error if a call found that a stray write had hit free memory or went past a
// block's end. The error has the number of findings and the address of the last one. The block that
// was hit is out of service; Alloc still uses all other blocks. Err returns nil while no call has
// reached the damage. Of 1 + blocks/64 refused calls of Alloc, one checks all blocks.
func (h Heap) Err() error {
	x := h.its()
	return damage("Heap", unsafe.Pointer(x), x.Damaged, x.Where,
		fmt.Sprintf("; %d bytes are out of service", x.LostBytes))
}

// damage returns the error for an arena that found overwritten bytes, and nil if it found them 0
// times.
func damage(what string, header unsafe.Pointer, times, where uint64, lost string) error {
	if times == 0 {
		return nil
	}
	at, had := "at an unknown place", ""
	if where != 0 {
		p := unsafe.Add(header, where)
		at, had = fmt.Sprintf("the last at %p, offset %d", p, where), arena_c.Had(p)
	}
	return fmt.Errorf("arena: BUG: %s: a write past a block or into freed memory was found %s, %s%s%s", what,
		timesOf(times), at, lost, had)
}

func timesOf(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Free frees a block; for nil it does nothing. If p isn't a live block of this heap, Free returns
// an error and changes nothing. An error with "write past" reports a write past the block's end or
// into a free block next to it. The block is freed nevertheless.
func (h Heap) Free(p unsafe.Pointer) error {
	return refusedOr("Heap.Free", h.its().Free(p), h.Err)
}

// refusedOr returns the error of refused, or for a code for damage the error of err.
func refusedOr(what string, code arena_c.Code, err func() error) error {
	if code == arena_c.Corrupt {
		if damage := err(); damage != nil {
			return fmt.Errorf("arena: BUG: %s: %s", what, strings.TrimPrefix(damage.Error(), "arena: BUG: "))
		}
	}
	return refused(what, code)
}

// Realloc changes the size of a block and keeps its contents and its alignment. The block shrinks
// in place. It grows in place if enough bytes after it are free. Otherwise it grows down into free
// bytes before it, or moves. When the heap is full, Realloc returns nil and no error, and p is
// unchanged. For a nil p it is Alloc aligned to 16. Realloc returns an error for any other address
// that isn't a live block's.
func (h Heap) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	was := seen(h.its())
	q, err := h.resized(h.header.Realloc(p, size), was)
	if q == nil && err == nil {
		err = refused("Heap.Realloc", h.header.Check(p))
	}
	return q, err
}

func (h Heap) freeSized(p unsafe.Pointer, size uint64) (freed bool, err error) {
	code, freed := h.its().FreeSized(p, size)
	if !freed {
		return false, nil
	}
	return true, refusedOr("Heap.Free", code, h.Err)
}

func (h Heap) reallocSized(p unsafe.Pointer, had, size uint64) (unsafe.Pointer, error) {
	was := seen(h.its())
	return h.resized(h.header.ReallocSized(p, had, size), was)
}

// resized returns the result of a Realloc. p is nil if the heap is full, or refused the call.
func (h Heap) resized(p unsafe.Pointer, was heapSeen) (unsafe.Pointer, error) {
	if p != nil {
		if arena_c.Checked {
			h.tell("Heap.Realloc", was)
		}
		return p, nil
	}
	if h.header.Raced != was.raced {
		return nil, refused("Heap.Realloc", arena_c.Raced)
	}
	return nil, nil
}

// SizeOf returns the requested size in bytes. It returns an error for an address that isn't a live
// block's.
func (h Heap) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := h.its().SizeOf(p)
	return size, refused("Heap.SizeOf", code)
}

// Reset frees all blocks. The lock of a Shared is in one of them, so the Shared ends. The heap
// refuses an old address until a new block begins there. The reserve, the peaks and the counts of
// refusals stay.
func (h Heap) Reset() {
	was := seen(h.its())
	h.header.Reset()
	h.tell("Heap.Reset", was)
	arena_c.RoomHasLock(arena_c.RoomHeap, unsafe.Pointer(h.header), false)
}

// MayLive permits blocks to be live when the heap's memory is freed with its level, match or
// request. Call MayLive if freeing the memory is meant to free the blocks: for an interpreter that
// is dropped whole, or for values that own only memory. The permission holds until the heap ends,
// also for a Shared of the heap.
//
// Without MayLive live blocks are a leak. The call that frees them (Close of the scope, Rewind of
// the region or Close of the budget) returns an error with the number of blocks. In checked builds
// the error adds the lines that made the heap and allocated each block.
//
// On a heap outside a budget, such as one on NewBlock, MayLive does nothing, because the collector
// frees the memory without a check. A heap in a block of another arena isn't checked either. There
// the block itself must be freed, or is a leak. Any goroutine may call MayLive. Cost: a search for
// the arena that contains the heap.
func (h Heap) MayLive() {
	arena_c.RoomMayLive(arena_c.RoomHeap, h.Block(), true)
}

// Reserve withholds bytes of the heap's size, headers included. A request that needs a reserved
// byte is refused as full, but rounding may use 16 of the bytes. Reserve(0) lifts the reserve, so
// that clean-up can allocate when the heap is full: a database without any free memory can't even
// drop a table. A reserve above the heap's size withholds all bytes. Live blocks stay live.
func (h Heap) Reserve(bytes uint64) { h.its().Reserve(bytes) }

// Phase returns the highest Used since the last call of Phase, and begins a new phase, such as a
// load, a match or a query.
func (h Heap) Phase() uint64 { return h.its().TakePhase() }

// Flush merges the parked blocks with their free neighbours. Cost: O(parked).
func (h Heap) Flush() {
	was := seen(h.its())
	h.header.Flush()
	h.tell("Heap.Flush", was)
}

// Trim returns the whole pages inside free blocks to the system, parked blocks included. The result
// is the bytes of the returned pages that were present, or of all returned pages on Windows. The
// next use of a returned page causes a page fault. The heap's counts and its bound stay the same.
// For several goroutines there is [Shared.Trim].
//
// Pages are returned only from a heap in a budget of Open. A heap on NewBlock, in a block of
// OpenIn, in a race build or in a checked build keeps its pages, and Trim returns 0. If pages.lock
// or a required pages.prefault of the plan keeps the pages present, Trim returns an error that
// names the key. After Trim the error for a second Free of a trimmed block speaks of a misaligned
// address. In a state of package budget/save, Trim changes the free bytes. It then also changes the
// hash, unless the heap is one of State.Heap. Cost: two system calls for each run of pages, O(free
// blocks of a page or more).
func (h Heap) Trim() (bytes uint64, err error) {
	was := seen(h.its())
	bytes, err = h.header.TrimRoom()
	h.tell("Heap.Trim", was)
	return bytes, err
}

// HeapStats counts the blocks and bytes of a Heap or a Buddy. In a Heap, Used includes the headers
// of blocks, and Free includes parked blocks.
type HeapStats struct {
	Stats
	Live    uint64 // live blocks, a Shared's lock included
	Reserve uint64 // bytes withheld
	Failed  uint64 // requests refused as full since NewHeap or NewBuddy

	// Of a Heap:

	// freed blocks that aren't merged; in checked builds also freed blocks that aren't reused for a
	// while
	Parked uint64

	// Of a Buddy:

	Given     uint64 // bytes of all blocks allocated since Reset, freed ones included
	Internal  uint64 // bytes of Given beyond the requested sizes
	Scattered uint64 // the part of Failed for which enough bytes were free, in smaller blocks
}

// Stats returns the counts.
func (h Heap) Stats() HeapStats {
	x := h.its()
	size := x.End - x.First
	return HeapStats{
		Stats: Stats{Size: size, Used: x.Used, Free: size - x.Used - x.LostBytes, Peak: x.Peak()},
		Live:  x.Live, Reserve: size - x.LostBytes - x.Most, Failed: x.Failed, Parked: x.Parked + x.Rest.Blocks,
	}
}

// LargestFree returns the size in bytes of the largest request, aligned to 16, that Alloc could
// serve without a reserve. Cost: O(blocks).
func (h Heap) LargestFree() uint64 {
	was := seen(h.its())
	largest := h.header.Largest()
	h.tell("Heap.LargestFree", was)
	return largest
}

// Block returns the first byte of the heap's block.
func (h Heap) Block() unsafe.Pointer { return unsafe.Pointer(h.its()) }

func (h Heap) its() *arena_c.Heap { return made(h.header, "Heap") }
