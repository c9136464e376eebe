package malloc

import (
	"io"

	"github.com/upfront-mem/upfront/arena_c"
)

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

// WriteProfile writes a profile of C's heap in the format of go tool pprof: the live blocks of
// c_heap, and all that were allocated since Open, by call stack. It also has the blocks of each
// arena.Shared in a budget that was made after Open, from C and from Go. Such a sample has the
// label "arena": the names of the budget and of the arena in it, such as a region. A stack has
// C's functions, and the lines of Go that called C. The profile is sampled: CHeapPlan.Profile is
// the average distance of samples in bytes, and the sums are estimates, as those of Go's heap
// profile. If the table of samples was full, a comment in the profile has the number of lost
// samples.
//
// With package platform/symbolize C's functions have their file and line, if the program has debug
// information. Otherwise they have the names of exported symbols, and go tool pprof looks for the
// others in the files of the program and its libraries.
//
// WriteProfile returns an error before Open, if the plan has no profile, in a build that doesn't
// define malloc, and if w fails. Cost: O(stacks), and Go allocations. C's malloc waits for the copy
// of one stack at a time, so the sums are of slightly different moments. Any goroutine may call it.
func WriteProfile(w io.Writer) error { return process.WriteProfile(w) }

var _ arena_c.ProcessHeap = &process
