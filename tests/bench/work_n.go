package main

import (
	"context"

	"github.com/upfront-mem/upfront/budget"
)

var workN = work{
	letter: "N", title: "the end of a frame of two buffers, with nothing to finalize; and scratch on loan, taken and given back",
	absent: "C's is a scope of work D, with 8 objects and 2 clean-ups.",
	loops: []loop{
		{name: "N next frame", unit: "frame", units: 1, enter: enterFrame},
		{name: "N leased scratch", unit: "lease", units: 1, enter: enterLease},
	},
}

//go:noinline
func enterFrame() []contestant {
	c := scopesC(2)
	c.units, c.other = depthD, true
	b, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: budget.MiB}})
	if err != nil {
		panic(err)
	}
	return []contestant{c, {who: library, end: func() { _ = b.Close() }, run: func(n int) uint64 {
		for range n {
			if err := b.NextFrame(); err != nil {
				panic(err)
			}
		}
		return 0
	}}}
}

//go:noinline
func enterLease() []contestant {
	b, end := scratches(2, budget.MiB)
	ctx := context.Background()
	pool := objectsInPool()
	return []contestant{
		{who: library, end: end, run: func(n int) uint64 {
			for range n {
				lent, err := b.Lease(ctx)
				if err != nil {
					panic(err)
				}
				if err := lent.Release(); err != nil {
					panic(err)
				}
			}
			return 0
		}},
		{who: syncPool, run: func(n int) uint64 {
			for range n {
				pool.Put(pool.Get())
			}
			return 0
		}},
	}
}
