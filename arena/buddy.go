package arena

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Buddy allocates blocks of 2^k bytes, aligned to their size up to 1 MiB, and frees them in any
// order. It is for pages for other arenas, chunks of a world, or textures. It rounds a request up
// to the next power of two and takes the lowest address that fits. Each block except the largest is
// one half of a larger block, and the other half is its buddy. A freed block merges at once with
// its buddy, if the buddy is free. Alloc and Free are O(log n) for n smallest blocks; LargestFree
// is O(1).
//
// Blocks have no headers. A Buddy needs 208 bytes, and about one byte for each smallest block.
// Every build detects foreign and interior frees, and a double free unless a new block begins
// there.
//
// Don't use a Buddy for arbitrary sizes: requests of 16 to 4096 bytes take 1.41 times their size in
// a Buddy, and 1.04 times in a Heap. For many small values of one size use a BlockPool.
//
// A Buddy may be large enough for each request of a program. Its blocks then need this number of
// bytes in all, if the live blocks of the program have at most `live` bytes, a multiple of
// 2*largest, and each has `smallest` to `largest` bytes:
//
//	live * (1 + log2(largest/smallest)/2)
//
// A Buddy whose first block doesn't begin at a multiple of `largest` needs `largest` bytes more.
// The bound holds for Alloc and Free, but not for Realloc; arena_c/buddy.h has the proof.
//
// The rules of a [Heap] for goroutines, for a level's state and for live blocks also hold for a
// Buddy.
type Buddy struct{ header *arena_c.Buddy }

var _ Reallocator = Buddy{}

// NewBuddy makes a Buddy on the memory `block`, which begins at a multiple of 64 and whose contents
// are lost. The Buddy's smallest blocks have `smallest` bytes, a power of two from 64 bytes to 1
// MiB. It has as many of them as fit, at most 2^30. BuddySize returns the size of memory to pass.
//
// The addresses of a Buddy's blocks are aligned, up to 1 MiB. So the offsets and the number of
// blocks depend on the address of the memory, which checked and asan builds change. A state, or a
// plan measured to the byte, needs the same offsets everywhere. Then take memory that begins at a
// multiple of 1 MiB: in a scope, BytesUnzeroed(n, 1<<20). Cost: O(smallest blocks).
func NewBuddy(block []byte, smallest uint64) (Buddy, error) {
	if smallest < arena_c.BuddyLeast || smallest > arena_c.AlignMax || smallest&(smallest-1) != 0 {
		return Buddy{}, fmt.Errorf("arena: a Buddy's smallest block is a power of two from %d to %d, not %d",
			arena_c.BuddyLeast, arena_c.AlignMax, smallest)
	}
	room, err := roomIn(block, "Buddy", arena_c.RoomBuddy, arena_c.LineSize)
	if err != nil {
		return Buddy{}, err
	}
	header := arena_c.BuddyInit(room, smallest)
	if header == nil {
		return Buddy{}, fmt.Errorf(
			"arena: NewBuddy needs %d bytes or more for one smallest block of %d, and has at most %d such blocks; "+
				"this memory has %d bytes", BuddySize(1, smallest), smallest, arena_c.BuddyMost, len(block))
	}
	return Buddy{header}, nil
}

// BuddySize returns the size of memory for a Buddy whose blocks have this number of bytes in all,
// wherever the memory begins. It returns 0 if NewBuddy refuses such a smallest block, or if no
// block has so many bytes: 2^38 or more.
func BuddySize(bytes, smallest uint64) uint64 { return arena_c.BuddySize(bytes, smallest) }

// Alloc returns a block of size bytes or more, aligned to its size, not zeroed, or nil when no free
// block is large enough. If align is above size, the block has align bytes or more. A request of
// size 0 takes a smallest block.
func (b Buddy) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Buddy", size, align)
	was := b.seen()
	p := b.header.Alloc(size, align)
	if p == nil || arena_c.Checked {
		b.tell("Buddy.Alloc", was)
	}
	return p
}

func (b Buddy) seen() heapSeen { return heapSeen{b.its().Raced, b.header.Damaged} }

func (b Buddy) tell(what string, was heapSeen) { was.tell(what, b.seen(), b.Err) }

// Err returns an error if a call found that the table of free blocks was overwritten. The error has
// the number of findings and the address of the last one. Afterwards Alloc may return blocks that
// are live, so Reset the buddy. Err returns nil while no call has reached the damage.
func (b Buddy) Err() error {
	x := b.its()
	return damage("Buddy", unsafe.Pointer(x), x.Damaged, x.Where, "")
}

// Free frees a block; for nil it does nothing. If p isn't a live block of this buddy, Free returns
// an error and changes nothing. In a checked build an error with "write past" reports a write past
// the block's end. The block is freed nevertheless.
func (b Buddy) Free(p unsafe.Pointer) error {
	return refusedOr("Buddy.Free", b.its().Free(p), b.Err)
}

// Realloc changes the size of a block and keeps its contents. The block is then aligned to its new
// size. The block shrinks in place. It grows in place if its buddies come after it and are free;
// otherwise it moves, and exists twice meanwhile. When the buddy is full, Realloc returns nil and
// no error, and p is unchanged. For a nil p it is Alloc. Realloc returns an error for any other
// address that isn't a live block's.
func (b Buddy) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	was := b.seen()
	q, err := b.resized(b.header.Realloc(p, size), was)
	if q != nil || err != nil || p == nil {
		return q, err
	}
	_, code := b.header.SizeOf(p)
	return nil, refused("Buddy.Realloc", code)
}

func (b Buddy) freeSized(p unsafe.Pointer, size uint64) (freed bool, err error) {
	code, freed := b.its().FreeSized(p, size)
	if !freed {
		return false, nil
	}
	return true, refusedOr("Buddy.Free", code, b.Err)
}

func (b Buddy) reallocSized(p unsafe.Pointer, had, size uint64) (unsafe.Pointer, error) {
	was := b.seen()
	return b.resized(b.header.ReallocSized(p, had, size), was)
}

// resized returns the result of a Realloc. p is nil if the buddy is full, or refused the call.
func (b Buddy) resized(p unsafe.Pointer, was heapSeen) (unsafe.Pointer, error) {
	if p != nil {
		if arena_c.Checked {
			b.tell("Buddy.Realloc", was)
		}
		return p, nil
	}
	if b.header.Raced != was.raced {
		return nil, refused("Buddy.Realloc", arena_c.Raced)
	}
	return nil, nil
}

// SizeOf returns the size of the block in bytes. The caller may use all of these bytes, because a
// Buddy doesn't keep the requested size. SizeOf returns an error for an address that isn't a live
// block's.
func (b Buddy) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := b.its().SizeOf(p)
	return size, refused("Buddy.SizeOf", code)
}

// Reset frees all blocks. The lock of a Shared is in one of them, so the Shared ends. The reserve,
// the peaks and the counts of refusals stay. Cost: O(smallest blocks).
func (b Buddy) Reset() {
	was := b.seen()
	b.header.Reset()
	b.tell("Buddy.Reset", was)
	arena_c.RoomHasLock(arena_c.RoomBuddy, unsafe.Pointer(b.header), false)
}

// MayLive permits blocks to be live when the buddy's memory ends: see [Heap.MayLive].
func (b Buddy) MayLive() {
	arena_c.RoomMayLive(arena_c.RoomBuddy, b.Block(), true)
}

// Reserve withholds bytes of the buddy's size. A request that needs a reserved byte is refused as
// full. Reserve(0) lifts the reserve, so that clean-up can allocate when the buddy is full. The
// reserve counts bytes, not blocks: the reserved bytes may all be in small blocks, none of them
// large enough for a large request. A reserve above the buddy's size withholds all bytes. Live
// blocks stay live.
func (b Buddy) Reserve(bytes uint64) { b.its().Reserve = bytes }

// Phase returns the highest Used since the last call of Phase, and begins a new phase.
func (b Buddy) Phase() uint64 { return b.its().TakePhase() }

// Stats returns the counts.
func (b Buddy) Stats() HeapStats {
	x := b.its()
	size := x.End - x.First
	return HeapStats{
		Stats: Stats{Size: size, Used: x.Used, Free: size - x.Used, Peak: x.Peak},
		Live:  x.Live, Reserve: min(x.Reserve, size), Failed: x.Failed,
		Given: x.Given, Internal: x.Given - x.Asked, Scattered: x.Scattered,
	}
}

// LargestFree returns the size of the largest free block in bytes. The reserve may keep Alloc from
// using it.
func (b Buddy) LargestFree() uint64 { return b.its().Largest() }

// rounds is a Reallocator that may not keep the requested size: its SizeOf may return the size of
// the block.
type rounds interface {
	sizeFor(size, align uint64) uint64
}

func (b Buddy) sizeFor(size, align uint64) uint64 {
	return buddySize(size, align, b.header.Smallest)
}

func buddySize(size, align, smallest uint64) uint64 {
	return 1 << bits.Len64(max(size, align, smallest)-1)
}

// Block returns the first byte of the buddy's block.
func (b Buddy) Block() unsafe.Pointer { return unsafe.Pointer(b.its()) }

func (b Buddy) its() *arena_c.Buddy { return made(b.header, "Buddy") }
