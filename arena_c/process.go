package arena_c

import (
	"io"
	"sync/atomic"
	"time"
	"unsafe"
)

// ProcessHeap is C's malloc of the whole process. Package arena/with/malloc provides it; package
// budget plans it.
type ProcessHeap interface {
	// Begin makes size bytes the heap of C's malloc, for the life of the process. Another call with
	// an equal plan, or one without its Prefault or Lock, changes nothing. With another plan it
	// returns an error that names the wrong value, without a key of the plan. If the system refuses
	// to make pages present, or to keep them, page is "prefault" or "lock", and Begin has changed
	// nothing.
	Begin(p ProcessPlan) (page string, err error)
	// Watch calls crossed, on a separate goroutine, when the heap's use reaches `at` bytes. It
	// calls crossed again only after the use was below `again`. A Watch replaces the earlier one; a
	// nil crossed ends it.
	Watch(at, again uint64, crossed func(used uint64)) error
	// Counts reads the counts under the heap's lock. It makes no Go allocation.
	Counts() ProcessCounts
	// Trim returns whole free pages to the system. The result is the bytes of those that were
	// present.
	Trim() uint64
	// WriteProfile writes the profile of live blocks. Without one it returns an error.
	WriteProfile(w io.Writer) error
	// Sampler returns the functions (upfront_sampler) that put the blocks of a Shared into the
	// profile, and the number of the arena around the Shared, by its name. Without a profile
	// functions is nil.
	Sampler(arena string) (functions unsafe.Pointer, number uint32)
}

// ProcessPlan is the plan of C's malloc.
type ProcessPlan struct {
	Size           uint64 // bytes
	Reserve        uint64 // of Size
	Runtime        uint64 // of Size, for Go's runtime; 0: the default
	Fronts         int
	Trim           time.Duration // 0: never
	Profile        uint64        // bytes between sample points, on average; 0: no profile
	Prefault, Lock bool          // make all pages present; keep them present
}

// Samples returns the part of Size for the samples of the profile: some 640 bytes for each of four
// times as many samples as a full heap has on average.
func (p ProcessPlan) Samples() uint64 {
	if p.Profile == 0 {
		return 0
	}
	return max(8, 4*(p.Size/p.Profile))*640 + 2048
}

// ProcessCounts has the counts of C's malloc. Sizes are bytes.
type ProcessCounts struct {
	Base uintptr // of the range of Size bytes, 0 before Begin
	// Used and Peak include the headers of blocks. Peak may count freed blocks in fronts.
	Size, Used, Peak, Reserve uint64
	Live                      uint64 // blocks

	// The part of Size for Go's runtime isn't in Used and Peak.
	Runtime, RuntimeUsed, RuntimePeak uint64
	Samples                           uint64 // the part of Size for the profile

	Fulls              uint64 // refused requests, but for those larger than the heap
	FullSize, FullUsed uint64 // size of the last one; bytes in use then
	FullRuntime        bool   // the last one was for Go's runtime; FullUsed is of its part
	FullCaller         uintptr
	// FullGo has the return addresses of the Go frames above it, innermost first, then 0.
	FullGo [8]uintptr
	// FullHolders has the return addresses of the lines of Go, or callers in C, that had the most
	// bytes then by the profile; FullHeld has the bytes. 0: there are fewer.
	FullHolders [3]uintptr
	FullHeld    [3]uint64

	Larges, LargeSize uint64 // refused requests larger than the heap, and the size of the last one

	Warnings, Warned uint64 // crossings since Watch, and the use at the last one

	Static, StaticUsed uint64 // the heap that serves until Begin
	Trimmed            uint64 // bytes that went back to the system, since the start
}

var processHeap atomic.Pointer[ProcessHeap]

// SetProcessHeap registers C's malloc of the process.
func SetProcessHeap(h ProcessHeap) { processHeap.Store(&h) }

// ProcessHeapOf returns C's malloc of the process, or nil if no package provides it.
func ProcessHeapOf() ProcessHeap {
	if h := processHeap.Load(); h != nil {
		return *h
	}
	return nil
}
