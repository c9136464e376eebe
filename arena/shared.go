package arena

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Shared is a Heap or a Buddy with a lock around each call. It is for several goroutines, and for C
// libraries on any thread. A C library takes the functions of [Shared.Functions] as malloc, calloc,
// realloc, free and size.
//
// Once a Shared exists, use its arena only through the Shared, or in [Shared.Locked]. Make one
// Shared for each arena, because a second one would have a lock of its own. A Shared lives until
// the arena's block ends, or the arena is Reset. Shut a C library down before the block ends, for
// example with a scope's Defer: a late call would write to memory that has another owner. Keep a
// reference to a block from NewBlock until the library is shut down. Otherwise the collector may
// free the block.
//
// The lock and the counts are in a block of the arena that counts as live. This block holds
// addresses, so it can't be saved and restored in another process. In a level's state (budget/save)
// a Shared works only with Take and Restore. Call these while no call of the Shared runs.
//
// If C's malloc has a profile (CHeapPlan.Profile), malloc.WriteProfile also shows the lines of Go
// and the functions of C that have the blocks of a Shared in a budget. A Shared without a profile
// takes no instruction for it.
//
// The lock is C's. A call that holds the lock doesn't wait for Go's scheduler or collector, except
// in Locked and Trim. An Alloc or a Free from Go is one call into C. If no other call holds the
// lock, it adds some 15 ns to a call from Go, and some 5 ns to a call from C. The race detector
// treats each call from Go as a synchronization.
type Shared struct{ header *arena_c.Shared }

var _ Reallocator = Shared{}

// Shared puts a lock around the heap. It allocates a block from the heap, and returns an error if
// the heap is full.
func (h Heap) Shared() (Shared, error) {
	return shared(h, arena_c.RoomHeap, unsafe.Pointer(h.its()))
}

// Shared puts a lock around the buddy. It allocates a block from the buddy, and returns an error if
// the buddy is full.
func (b Buddy) Shared() (Shared, error) {
	return shared(b, arena_c.RoomBuddy, unsafe.Pointer(b.its()))
}

func shared(a Freer, kind arena_c.RoomKind, header unsafe.Pointer) (Shared, error) {
	size := uint64(unsafe.Sizeof(arena_c.Shared{}))
	p := a.Alloc(size, arena_c.HeapAlign)
	if p == nil {
		return Shared{}, fmt.Errorf("arena: %T has no %d bytes left for a lock", a, size)
	}
	room := arena_c.RoomOf(arena_c.RoomShared, p, size)
	if err := room.Err(); err != nil {
		return Shared{}, errors.Join(err, a.Free(p))
	}
	return Shared{arena_c.SharedInit(room, kind, header)}, nil
}

// Alloc returns size bytes aligned to align, not zeroed, or nil when the arena is full.
func (s Shared) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Shared", size, align)
	return s.its().Alloc(size, align)
}

// Free frees a block, allocated by Go or by C; for nil it does nothing. For any other address that
// isn't a live block's it returns an error and changes nothing.
func (s Shared) Free(p unsafe.Pointer) error {
	return refused("Shared.Free", s.its().Free(p))
}

// Realloc is the arena's Realloc. When the arena is full, it returns nil and no error, and p is
// unchanged. For a nil p it is Alloc aligned to 16.
func (s Shared) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	q := s.its().Realloc(p, size)
	if q == nil {
		return nil, refused("Shared.Realloc", s.header.Check(p))
	}
	return q, nil
}

func (s Shared) freeSized(p unsafe.Pointer, size uint64) (freed bool, err error) {
	code, freed := s.its().FreeSized(p, size)
	if !freed {
		return false, nil
	}
	return true, refused("Shared.Free", code)
}

func (s Shared) reallocSized(p unsafe.Pointer, had, size uint64) (unsafe.Pointer, error) {
	return s.its().ReallocSized(p, had, size), nil
}

// SizeOf is the arena's SizeOf. It returns an error for an address that isn't a live block's.
func (s Shared) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := s.its().SizeOf(p)
	return size, refused("Shared.SizeOf", code)
}

// Locked runs fn with the lock held. It is for methods of the arena that a Shared lacks, such as
// Stats, LargestFree and Reserve. All other callers wait, C's threads included, so keep fn short.
// fn must not use the Shared, because it would wait for itself. A profile doesn't see that fn frees
// a block.
func (s Shared) Locked(fn func()) {
	runtime.LockOSThread() // C's lock is unlocked by the thread that locked it
	defer runtime.UnlockOSThread()
	s.its().Lock()
	defer s.header.Unlock()
	fn()
}

// Trim is [Heap.Trim] with the lock held: all other callers wait, C's threads included. A Shared of
// a Buddy keeps its pages and returns 0.
func (s Shared) Trim() (bytes uint64, err error) {
	if s.its().Smallest() != 0 {
		return 0, nil
	}
	s.Locked(func() { bytes, err = Heap{(*arena_c.Heap)(s.header.Arena())}.Trim() })
	return bytes, err
}

// CFunctions has C functions for a library on any thread, and the context that each function takes
// as its first argument. The functions keep the contracts of C's malloc, calloc, realloc and free;
// arena_c/callbacks.h has the details. A package with cgo passes the fields to its C code as void
// *, without a header of this library.
type CFunctions struct {
	Context unsafe.Pointer
	Malloc  unsafe.Pointer // void *(*)(void *context, size_t size)
	Calloc  unsafe.Pointer // void *(*)(void *context, size_t count, size_t size)
	Realloc unsafe.Pointer // void *(*)(void *context, void *p, size_t size)
	Free    unsafe.Pointer // void (*)(void *context, void *p)
	Size    unsafe.Pointer // size_t (*)(void *context, void *p)
}

// MayLive permits blocks to be live when the arena's memory is freed: see [Heap.MayLive]. The
// lock's own block never counts.
func (s Shared) MayLive() { s.its().MayLive() }

// Functions returns the C functions that use the arena. The functions work as long as the Shared
// does.
func (s Shared) Functions() CFunctions {
	f := s.its().Functions()
	return CFunctions{f[0], f[1], f[2], f[3], f[4], f[5]}
}

// Err returns an error if calls from C passed addresses that aren't a live block's. The error has
// the number of these calls, and the last one. The calls changed nothing, and the library went on,
// so call Err when the library is shut down. Calls that found bytes overwritten by a stray write
// also count. In checked builds Err also reports calls that used the arena without the lock, while
// another call was inside. The arena refused these calls: an Alloc or a malloc returned nil.
func (s Shared) Err() error {
	if raced := s.its().Raced(); raced != 0 {
		return fmt.Errorf("arena: BUG: %s refused: %v, the lock of the Shared", callsOf(raced), arena_c.Raced)
	}
	calls, call, address, code := s.its().Misuse()
	if calls == 0 {
		return s.damage()
	}
	if code == arena_c.Corrupt {
		return fmt.Errorf("arena: BUG: %s from C refused, or with overwritten bytes found; the last: "+
			"%s of the block at %#x: %v", callsOf(calls), call, address, code)
	}
	return fmt.Errorf("arena: BUG: %s from C refused; the last: %s of %#x: %v", callsOf(calls), call, address, code)
}

// damage returns the error for damage that calls from Go found.
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

// sizeFor returns the size that SizeOf returns for a block from Alloc.
func (s Shared) sizeFor(size, align uint64) uint64 {
	if smallest := s.its().Smallest(); smallest != 0 {
		return buddySize(size, align, smallest)
	}
	return size
}

func (s Shared) its() *arena_c.Shared { return made(s.header, "Shared") }
