package malloc

import "github.com/upfront-mem/upfront/arena_c"

// Stats has the counts of C's malloc. Sizes are in bytes, and include a header of 16 bytes for each
// block.
type Stats struct {
	Size    uint64 // of the plan's c_heap; 0 before Open
	Used    uint64 // by live blocks
	Peak    uint64 // the highest Used; may count freed blocks that weren't merged yet
	Reserve uint64 // kept back for CleanUp
	Live    uint64 // blocks
	Fulls   uint64 // refused requests, but for those larger than the heap
	Larges  uint64 // refused requests that are larger than the heap
	Trimmed uint64 // given back to the system since the start

	Runtime, RuntimeUsed, RuntimePeak uint64 // of the part for Go's runtime, which isn't in Used

	Static, StaticUsed uint64 // of the heap that serves until Open
}

// ReadStats returns the present counts. It takes the locks of C's malloc for a moment, and
// allocates nothing. In a build that doesn't define malloc the counts are zero. Any goroutine may
// call it.
func ReadStats() Stats {
	c := process.Counts()
	return Stats{Size: c.Size, Used: c.Used, Peak: c.Peak, Reserve: c.Reserve, Live: c.Live, Fulls: c.Fulls,
		Larges:  c.Larges,
		Runtime: c.Runtime, RuntimeUsed: c.RuntimeUsed, RuntimePeak: c.RuntimePeak, Trimmed: c.Trimmed,
		Static: c.Static, StaticUsed: c.StaticUsed}
}

// Trim returns the whole free pages of C's heap to the system. Its result is the bytes of those
// that were present. The next use of each page causes a page fault. Trim returns 0 before Open, in
// a build that is checked or doesn't define malloc, and if the plan locks pages. Cost: two system
// calls for each run of free pages, while other calls of malloc wait. Any goroutine may call it.
func Trim() uint64 { return process.Trim() }

// CleanUp runs fn and returns its error. While fn runs, all C code may use the plan's reserve, if
// the build defines malloc. Memory that fn leaves allocated is missing from the reserve until it is
// freed. If several goroutines call CleanUp at once, the loan ends when the last fn returns. Cost:
// two calls into C.
func CleanUp(fn func() error) error {
	lend(1)
	defer lend(-1)
	return fn()
}

var _ arena_c.ProcessHeap = &process
