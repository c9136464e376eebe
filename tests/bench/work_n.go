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
	c := scopesC()
	c.units, c.other = depthD, true
	b, end := open(budget.Plan{Frame: budget.FramePlan{Buffers: 2, Size: budget.MiB}})
	return []contestant{c, {who: library, end: end, run: func(n int) uint64 {
		for range n {
			if err := b.NextFrame(); err != nil {
				panic(err)
			}
		}
		return 0
	}}}
}
