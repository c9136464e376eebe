package main

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
)

var workM = work{
	letter: "M", title: "10,000 things of 1 to 64 bytes aligned to 1, 2, 4, 8 or 16: bytes lost in the order declared",
	absent: "It is about alignment in an arena; the Go heap's classes are there for comparison.",
	parts:  []part{{name: "M", measure: func(*harness) ([]series, error) { return measureM(), nil }}},
}

type thingM struct{ size, align uint64 }

func thingsM() (list []thingM) {
	r := rand.New(rand.NewPCG(16, 1))
	for range 10_000 {
		align := uint64(1) << r.Uint32N(5)
		list = append(list, thingM{align * (1 + r.Uint64N(64/align)), align}) // a size is a multiple of its align, as in Go and C
	}
	return list
}

func measureM() []series {
	things := thingsM()
	asked := uint64(0)
	for _, x := range things {
		asked += x.size
	}
	percent := func(who string, lost uint64) series {
		x := newSeries("M in the order declared", "% lost", who)
		x.values = []float64{100 * float64(lost) / float64(asked)}
		return x
	}
	return []series{percent(library, usedBy(things)-asked), percent(goHeap, roundingOf(things)-asked)}
}

// usedBy is how many bytes a scratch arena uses that holds the things.
func usedBy(list []thingM) uint64 {
	b, end := scratches(1, budget.MiB)
	defer end()
	s := b.Scratch(0, 0).Open("things")
	for _, x := range list {
		s.AllocUnzeroed(x.size, x.align)
	}
	return b.Report().Beside[0].Used
}

var keptM []unsafe.Pointer

// roundingOf is the bytes that the Go heap took.
func roundingOf(list []thingM) uint64 {
	keptM = make([]unsafe.Pointer, len(list))
	runtime.ReadMemStats(&before)
	for i, x := range list {
		keptM[i] = unsafe.Pointer(unsafe.SliceData(make([]byte, x.size)))
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
