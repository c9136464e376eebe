package main

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/upfront-mem/upfront/budget"
)

var workG = work{
	letter: "G", title: "work A on as many goroutines as there are cores, each with an arena of its own",
	absent: "The other libraries lock, or crossed into C already in A.",
	loops:  []loop{{name: "G all cores", unit: "object", units: objectCount * cores, enter: func() []contestant { return enterG(cores) }}},
}

const oneGoroutine = "upfront, one goroutine"

var cores = runtime.GOMAXPROCS(0)

func enterG(workers int) []contestant {
	b, end := pads(workers+1, budget.MiB)
	pool := newSyncPool()
	return []contestant{
		each(floor, workers, func(int) func(int) uint64 { return objectsC().run }),
		each(library, workers, func(worker int) func(int) uint64 {
			pad := b.Pad(worker, 0)
			return func(n int) uint64 { return upfrontObjects(pad, n) }
		}).ending(end),
		{who: oneGoroutine, run: func(n int) uint64 { return upfrontObjects(b.Pad(workers, 0), n*workers) }},
		each(goHeap, workers, func(int) func(int) uint64 { return objectsGoHeap().run }),
		each(syncPool, workers, func(int) func(int) uint64 {
			keep := make([]*object, objectCount)
			return func(n int) uint64 { return syncPoolObjects(pool, keep, n) }
		}),
		each(ristretto, workers, func(int) func(int) uint64 {
			linear := z.NewAllocator(budget.MiB, "bench")
			return objectsFrom(ristretto, func() []byte { return linear.AllocateAligned(objectSize) }, nil, linear.Reset).run
		}),
	}
}

func (c contestant) ending(end func()) contestant {
	c.end = end
	return c
}

// each has so many goroutines do the work n times; the sum is one's if all agree.
func each(who string, workers int, of func(worker int) func(n int) uint64) contestant {
	runs := make([]func(int) uint64, workers)
	for i := range runs {
		runs[i] = of(i)
	}
	return contestant{who: who, run: func(n int) uint64 {
		sums := make([]struct {
			sum uint64
			_   [64 - unsafe.Sizeof(uint64(0))]byte // a line each
		}, workers)
		var done sync.WaitGroup
		for i, run := range runs {
			done.Go(func() { sums[i].sum = run(n) })
		}
		done.Wait()
		for _, s := range sums {
			if s.sum != sums[0].sum {
				return 0
			}
		}
		return sums[0].sum
	}}
}
