package main

import (
	"math"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var workT = work{
	letter: "T", title: "one call at a time, a million of each: the slowest, and the slowest of all but 100",
	absent: "Each time has one of the clock's own in it: its row is two readings with nothing between them.",
	other:  measureTails,
}

const theClock = "the clock"

// since is nanoseconds, what fits into 32 bits.
func since(start time.Time) uint32 {
	return uint32(min(time.Since(start).Nanoseconds(), math.MaxUint32))
}

// tails are calls of one kind, each timed alone.
type tails struct {
	who  string
	call func(took []uint32)
}

func measureTails(h *harness) ([]series, error) {
	b, end := scratches(1, budget.MiB)
	defer end()
	pool := objects.Pool(b.Scratch(0, 0).Open("pool"), objectCount)
	calls := []tails{{theClock, tailsOfNothing}, {goHeap + ", new", tailsOfHeap}, tailsOfNew(b.Scratch(0, 1)),
		tailsOfAlloc(b.Scratch(0, 1)),
		tailsOfGet(pool)}
	took := make([]uint32, million)
	var late, latest []series
	for _, c := range calls {
		x, y := newSeries("T p99.99", "call", c.who), newSeries("T max", "call", c.who)
		for range max(1, min(5, h.rounds)) {
			for at := 0; at < million; at += objectCount {
				c.call(took[at : at+objectCount])
			}
			slices.Sort(took)
			x.values = append(x.values, float64(took[million-million/10_000-1]))
			y.values = append(y.values, float64(took[million-1]))
		}
		late, latest = append(late, x), append(latest, y)
	}
	return append(late, latest...), nil
}

func tailsOfNothing(took []uint32) {
	for i := range took {
		start := time.Now()
		took[i] = since(start)
	}
}

func tailsOfHeap(took []uint32) {
	for i := range took {
		start := time.Now()
		kept[i] = new(object)
		took[i] = since(start)
	}
}

//go:noinline
func tailsOfNew(scratch scope.Scratch) tails {
	return tails{library + ", New", func(took []uint32) {
		s := scratch.Open("tail")
		for i := range took {
			start := time.Now()
			kept[i] = objects.New(s)
			took[i] = since(start)
		}
		_ = s.Close()
	}}
}

//go:noinline
func tailsOfAlloc(scratch scope.Scratch) tails {
	return tails{library + ", Alloc", func(took []uint32) {
		s := scratch.Open("tail")
		for i := range took {
			start := time.Now()
			keptRaw[i] = s.AllocUnzeroed(64, 16)
			took[i] = since(start)
		}
		_ = s.Close()
	}}
}

//go:noinline
func tailsOfGet(pool scope.Pool[object]) tails {
	return tails{library + ", Get", func(took []uint32) {
		for i := range took {
			start := time.Now()
			kept[i] = pool.Get()
			took[i] = since(start)
		}
		for i := range took {
			pool.Put(kept[i])
		}
	}}
}
