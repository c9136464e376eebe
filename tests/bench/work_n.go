package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

var workN = work{
	letter: "N", title: "the end of a frame of two buffers, without finalizers; and the time of a timeline of 84 " +
		"arenas in each frame",
	absent: "C's is a scope of work D, with 8 objects and 2 clean-ups. A timeline is the library's alone.",
	loops: []loop{
		{name: "N next frame", unit: "frame", units: 1, enter: enterFrame},
		{name: "N next frame, with a timeline", unit: "frame", units: 1, enter: enterRecordedFrame},
		{name: "N sample", unit: "cell", units: arenasN, enter: enterSample},
	},
}

// arenasN is the number of arenas of a server of 64 rooms. A sample of a timeline has a cell for
// each.
const arenasN = 84

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

//go:noinline
func enterRecordedFrame() []contestant {
	b, end := open(budget.Plan{Frame: budget.FramePlan{Buffers: 2, Size: budget.MiB}})
	timeline.Start(b, 0)
	return []contestant{{who: library, end: end, run: func(n int) uint64 {
		for range n {
			if err := b.NextFrame(); err != nil {
				panic(err)
			}
		}
		return 0
	}}}
}

//go:noinline
func enterSample() []contestant {
	b, end := open(budget.Plan{Regions: []budget.RegionPlan{{Name: "init", Size: budget.KiB},
		{Name: "systems", Size: budget.KiB}, {Name: "level", Size: budget.KiB, Slots: 64}},
		Frame:   budget.FramePlan{Buffers: 2, Size: budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 8, Size: budget.KiB}})
	line := timeline.Start(b, 0)
	if n := len(line.Read().Arenas); n != arenasN {
		panic(n)
	}
	return []contestant{{who: library, end: end, run: func(n int) uint64 {
		for range n {
			line.Sample()
		}
		return 0
	}}}
}
