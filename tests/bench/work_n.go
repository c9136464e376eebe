package main

import (
	"github.com/upfront-mem/upfront/budget"
)

var workN = work{
	letter: "N", title: "the end of a frame of two buffers, with nothing to finalize",
	absent: "C's is a scope of work D, with 8 objects and 2 clean-ups.",
	loops:  []loop{{name: "N next frame", unit: "frame", units: 1, enter: enterFrame}},
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
