package arena

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Shared is an arena with a lock around each call: for any goroutine, and for C libraries on any thread, which take its
// Functions as their malloc, calloc, realloc, free and size. It is a small value; copies are the same.
//
// The lock and the counts lie in the arena's block, at the start of a block of their own, which counts as live. The lock is
// C's: no call waits for Go's scheduler or its collector while it holds it, but for Locked. From when it is made all use of
// the arena goes through it, or happens in Locked. It lives as long as the arena's block, which may not be saved and put
// back in another process, as it holds addresses: in a level's state it is for Take and Restore alone, while no call is
// inside (budget/save); a Reset of the arena ends it. Make one for an arena: a second has a lock of its own. C knows no
// lifetimes: a library that goes on after the block ended writes to what is another's by then, so end the library first; a
// scope's Defer does it. A block from NewBlock is the collector's: hold it until the library has ended.
//
// Cost: a call from Go is one call into C, and takes some 15 ns more than the arena's own; one from C some 5 ns, while nobody
// else holds the lock. The race detector takes each call from Go for synchronization, as it is.
type Shared struct{ header *arena_c.Shared }

var _ Reallocator = Shared{}

// Shared puts a lock before the heap. It takes a block of it; an error says that the heap is too full for that.
func (h Heap) Shared() (Shared, error) {
	return shared(h, arena_c.SharedHeap, unsafe.Pointer(h.its()))
}

// Shared puts a lock before the buddy. It takes a block of it; an error says that the buddy is too full for that.
func (b Buddy) Shared() (Shared, error) {
	return shared(b, arena_c.SharedBuddy, unsafe.Pointer(b.its()))
}

func shared(a Freer, kind arena_c.SharedKind, header unsafe.Pointer) (Shared, error) {
	size := uint64(unsafe.Sizeof(arena_c.Shared{}))
	p := a.Alloc(size, arena_c.HeapAlign)
	if p == nil {
		return Shared{}, fmt.Errorf("arena: %T has no %d bytes left for a lock", a, size)
	}
	room := arena_c.RoomOf(arena_c.RoomShared, p, size)
	if err := room.Err(); err != nil {
		return Shared{}, errors.Join(err, a.Free(p))
	}
	s := Shared{arena_c.SharedInit(room, kind, header)}
	s.header.SayOfRoom(arena_c.RoomHasLock)
	return s, nil
}

// Alloc is that of the arena: size bytes aligned to align, not zeroed; nil when it is full.
func (s Shared) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Shared", size, align)
	return s.its().Alloc(size, align)
}

// Free takes a block back, also one that C allocated. An address that is no live block is refused with an error, and
// nothing has changed.
func (s Shared) Free(p unsafe.Pointer) error {
	return refused("Shared.Free", s.its().Free(p))
}

// Realloc is that of the arena: nil and no error when it is full, and p is as it was. A nil p is Alloc aligned to 16.
func (s Shared) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	q := s.its().Realloc(p, size)
	if q == nil {
		return nil, refused("Shared.Realloc", s.header.Check(p))
	}
	return q, nil
}

// SizeOf is that of the arena. An address that is no live block is refused with an error.
func (s Shared) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := s.its().SizeOf(p)
	return size, refused("Shared.SizeOf", code)
}

// Locked holds the lock while fn uses the arena itself, whose methods a Shared doesn't have: Stats, LargestFree, what lifts a
// reserve. All others wait, C's threads too, so fn is short; and fn doesn't use the Shared, which would wait for itself.
func (s Shared) Locked(fn func()) {
	runtime.LockOSThread() // a lock of C's is given back by the thread that took it
	defer runtime.UnlockOSThread()
	s.its().Lock()
	defer s.header.Unlock()
	fn()
}

// CFunctions are a context and C functions, which take it as their first argument, for a library on any thread. They
// promise what C says of malloc and its like; arena_c/callbacks.h says it in full. A package with cgo passes them to its C
// code as void *, and needs no header of ours.
type CFunctions struct {
	Context unsafe.Pointer
	Malloc  unsafe.Pointer // void *(*)(void *context, size_t size)
	Calloc  unsafe.Pointer // void *(*)(void *context, size_t count, size_t size)
	Realloc unsafe.Pointer // void *(*)(void *context, void *p, size_t size)
	Free    unsafe.Pointer // void (*)(void *context, void *p)
	Size    unsafe.Pointer // size_t (*)(void *context, void *p)
}

// MayLive says that blocks of the arena may be live when its memory ends: see Heap.MayLive. That of the lock never counts.
func (s Shared) MayLive() { s.its().SayOfRoom(arena_c.RoomMayLive) }

// Functions are C's way into the arena. They are good as long as the Shared is.
func (s Shared) Functions() CFunctions { return CFunctions(s.its().Functions()) }

// Err says whether C gave an address that is no live block: of all such calls how many, and of the last which it was. They
// changed nothing, and the library went on; so ask when it has ended. Calls that met what a stray write had overwritten
// are counted, too. In checked builds it also says whether somebody used
// the arena beside the lock: a call that met another inside was refused, an Alloc or a malloc as if it were full.
func (s Shared) Err() error {
	if raced := s.its().Raced(); raced != 0 {
		return fmt.Errorf("arena: BUG: %s refused: %v, the Shared's", callsOf(raced), arena_c.Raced)
	}
	calls, call, address, code := s.its().Misuse()
	if calls == 0 {
		return s.damage()
	}
	if code == arena_c.Corrupt {
		return fmt.Errorf("arena: BUG: %s from C refused or beside damage; the last: %s, which met the block at %#x: %v", callsOf(calls), call,
			address, code)
	}
	return fmt.Errorf("arena: BUG: %s from C refused; the last: %s of %#x: %v", callsOf(calls), call, address, code)
}

// damage is that which calls from Go met.
func (s Shared) damage() error {
	if s.header.Smallest() != 0 {
		return Buddy{(*arena_c.Buddy)(s.header.Arena())}.Err()
	}
	return Heap{(*arena_c.Heap)(s.header.Arena())}.Err()
}

func callsOf(n uint64) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// sizeFor is the size that SizeOf says of what Alloc gives.
func (s Shared) sizeFor(size, align uint64) uint64 {
	if smallest := s.its().Smallest(); smallest != 0 {
		return buddySize(size, align, smallest)
	}
	return size
}

func (s Shared) its() *arena_c.Shared { return made(s.header, "Shared") }
