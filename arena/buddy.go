package arena

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Buddy gives blocks of 2^k bytes that are aligned to their size, in any order, and takes them
// back: pages that other arenas are made on, chunks of a world, textures. A request is rounded up
// to the next power of two, and lies at the lowest address where there is room; a block that is
// freed melts at once with its other half. Each operation is O(log n) for n smallest blocks,
// LargestFree O(1).
//
// There is no header in a block: all of its bytes are the caller's, and neighbours begin where it
// ends. Beside the blocks there are 208 bytes, and one for each smallest block. Double, foreign and
// interior frees are told in every build.
//
// Don't take it for odd sizes: those from 16 to 4096 cost 1.41 times their bytes, where a Heap
// takes 1.04; nor for many small things of one size, which a BlockPool holds without waste. How
// much is enough so that nothing is ever refused says RobsonBound.
//
// It is a small value; copies are the same buddy, and one goroutine at a time may use it: a Shared
// is for more, and for C libraries. The race detector reports two; checked builds refuse who comes
// second, with an error or, where a method has none, a panic. It lives as long as its block. It
// holds no address, so a level's state may have one (budget/save): made before the state is whole.
type Buddy struct{ header *arena_c.Buddy }

var _ Reallocator = Buddy{}

// NewBuddy makes a buddy of the block, of as many smallest blocks as fit: a power of two from 64
// bytes to 1 MiB, at most 2^30 of them. BuddySize is the size of a block that has room for so many
// bytes. The block begins at a multiple of 64. What was in it is lost. Blocks that are live when
// its scope closes are a leak, unless MayLive was said.
//
// The blocks are aligned as addresses, up to 1 MiB. So where they lie in the block, and how many
// there are, depends on where that begins, and in checked and asan builds it begins elsewhere. Take
// one that begins at a multiple of 1 MiB, in a scope BytesUnzeroed(n, 1<<20), to have the same
// offsets everywhere: in a state, or where a plan is measured to the byte.
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
		return Buddy{}, fmt.Errorf("arena: a Buddy has 1 to %d smallest blocks; of %d bytes a block of %d "+
			"has not: %d are enough for one", arena_c.BuddyMost, smallest, len(block), BuddySize(1, smallest))
	}
	return Buddy{header}, nil
}

// BuddySize is how many bytes a block must have, wherever it lies, so that a Buddy on it has blocks
// of so many bytes: what RobsonBound says, for instance. It doesn't look whether there may be such.
func BuddySize(bytes, smallest uint64) uint64 { return arena_c.BuddySize(bytes, smallest) }

// RobsonBound is how many bytes of blocks are enough so that no request is ever refused, while a
// program has at most `live` bytes of blocks at a time, each from `smallest` to `largest`, both
// powers of two. It counts blocks, not what was asked for; it holds for Alloc and Free, and not for
// Realloc; the first block must begin at a multiple of `largest`, or `largest` bytes more be there.
// It is exact: with one smallest block less, there is a program that is refused. About live * (1 +
// log2(largest/smallest) / 2); 0 where a size is no power of two, or live is above 256 GiB.
//
// Source: Robson, "An Estimate of the Store Size Necessary for Dynamic Storage Allocation";
// arena_c/buddy.h has the proof.
func RobsonBound(live, largest, smallest uint64) uint64 {
	return arena_c.RobsonBound(live, largest, smallest)
}

// Alloc gives a block of size bytes or more, aligned to its size, not zeroed; nil when no block is
// free that is large enough. An align above the size takes a block of that size. Size 0 gives a
// smallest block.
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

// tell is that of a heap.
func (b Buddy) tell(what string, was heapSeen) { was.tell(what, b.seen(), b.Err) }

// Err says whether bytes that say which blocks are free were met overwritten: how often, and where the last was. What a
// buddy still gives then may be somebody's: Reset it. Nil also where nobody has come by yet.
func (b Buddy) Err() error {
	x := b.its()
	return damage("Buddy", unsafe.Pointer(x), x.Damaged, x.Where, "")
}

// Free takes a block back; nil is nothing to do. A double free, and an address that is no block of
// this buddy, are refused and change nothing. In a checked build an error that says "corrupt table"
// tells of a write past the block's end; the block is given back all the same.
func (b Buddy) Free(p unsafe.Pointer) error {
	return refusedOr("Buddy.Free", b.its().Free(p), b.Err)
}

// Realloc gives the block another size, and keeps its contents; it is aligned to its new size. It
// shrinks in place, and grows in place where its other halves lie behind it and are free; otherwise
// it moves. When the buddy is full it gives nil and no error, and p is as it was. A nil p is Alloc.
// An address that is no live block is refused, with an error.
func (b Buddy) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	was := b.seen()
	q := b.header.Realloc(p, size)
	if q != nil {
		if arena_c.Checked {
			b.tell("Buddy.Realloc", was)
		}
		return q, nil
	}
	if b.header.Raced != was.raced {
		return nil, refused("Buddy.Realloc", arena_c.Raced)
	}
	if p == nil {
		return nil, nil
	}
	_, code := b.header.SizeOf(p)
	return nil, refused("Buddy.Realloc", code)
}

// SizeOf is the size of the block, all of which is the caller's; what was asked for isn't kept. An
// address that is no live block is refused, with an error.
func (b Buddy) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := b.its().SizeOf(p)
	return size, refused("Buddy.SizeOf", code)
}

// Reset frees everything, and ends a Shared of the buddy, whose lock lies in it. The reserve, the
// peaks and the counts of refusals stay. Cost: a byte for each smallest block.
func (b Buddy) Reset() {
	was := b.seen()
	b.header.Reset()
	b.tell("Buddy.Reset", was)
	arena_c.SayOfRoom(arena_c.RoomBuddy, unsafe.Pointer(b.header), arena_c.RoomWasReset)
}

// MayLive says that blocks may be live when the memory of the buddy ends: see Heap.MayLive.
func (b Buddy) MayLive() {
	arena_c.SayOfRoom(arena_c.RoomBuddy, unsafe.Pointer(b.its()), arena_c.RoomMayLive)
}

// Reserve keeps so many bytes back: a request that needs any of them is full. Reserve(0) lifts it,
// so that clean-up after a full finds room. What is kept may lie in small blocks; more than there
// is keeps all, and what is live stays live.
func (b Buddy) Reserve(bytes uint64) { b.its().Reserve = bytes }

// Phase gives the highest Used since the last phase began, and begins another.
func (b Buddy) Phase() uint64 { return b.its().TakePhase() }

// BuddyStats are those of a buddy.
type BuddyStats struct {
	Stats
	Live      uint64 // blocks
	Reserve   uint64 // of Free, what nobody gets
	Given     uint64 // bytes of all blocks that were handed out since Reset, also of what is free again
	Internal  uint64 // of Given, what was beyond the sizes that were asked for
	External  uint64 // of Free, what lies outside of the largest free block
	Failed    uint64 // requests that were refused for want of room since NewBuddy
	Scattered uint64 // of those, how many while enough was free, in smaller blocks
	Damaged   uint64 // how often bytes that say what is free were met overwritten: see Err
}

// Stats reads the counts.
func (b Buddy) Stats() BuddyStats {
	x := b.its()
	size := x.End - x.First
	return BuddyStats{
		Stats: Stats{Size: size, Used: x.Used, Free: size - x.Used, Peak: x.Peak},
		Live:  x.Live, Reserve: min(x.Reserve, size), Given: x.Given, Internal: x.Given - x.Asked,
		External: size - x.Used - x.Largest(), Failed: x.Failed, Scattered: x.Scattered, Damaged: x.Damaged,
	}
}

// LargestFree is the size of the largest free block. The reserve may keep Alloc from giving it.
func (b Buddy) LargestFree() uint64 { return b.its().Largest() }

// rounds is a Reallocator that may not keep what was asked for: its SizeOf may be the size of the
// block that Alloc gave.
type rounds interface {
	sizeFor(size, align uint64) uint64
}

// sizeFor is the size of the block that Alloc gives.
func (b Buddy) sizeFor(size, align uint64) uint64 {
	return buddySize(size, align, b.header.Smallest)
}

func buddySize(size, align, smallest uint64) uint64 {
	return 1 << bits.Len64(max(size, align, smallest)-1)
}

func (b Buddy) its() *arena_c.Buddy { return made(b.header, "Buddy") }
