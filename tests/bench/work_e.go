package main

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	oneSlice = "Go heap, one slice"

	manyE    = 5_000_000
	goShareE = 32 * budget.MiB
	dataE    = manyE * 64
)

var workE = work{
	letter: "E", title: "5 million live objects of 64 bytes: the time of a collection, then 1 GB of garbage; a " +
		"process each",
	absent: "Other libraries use the Go heap or C's, as the rows here do. All objects are plain data, and linked: " +
		"in the scope and on C's heap by addresses that the collector doesn't see, on the Go heap by a list of " +
		"pointers; one slice needs none.",
	parts: []part{{name: "E", measure: func(h *harness) ([]series, error) {
		return inChildren("E", max(1, min(3, h.rounds)), []string{library, goHeap, oneSlice, glibc}, []figure{
			{"collection, 5 million live", "collection"}, {"peak RSS", "times the data"},
		})
	}}},
}

var (
	manyPointers []*object
	manyObjects  []object
)

// liveOf returns the maker of objects that stay.
func liveOf(who string) func() *object {
	switch who {
	case library:
		b, _ := open(budget.Plan{GoHeap: goShareE, Scratch: budget.ScratchPlan{Workers: 1, Size: dataE},
			Pages: budget.Pages{Prefault: budget.Off}})
		s := b.Scratch(0, 0).Open("many")
		return func() *object { return objects.New(s) }
	case oneSlice:
		manyObjects = make([]object, 0, manyE)
		return func() *object {
			manyObjects = manyObjects[:len(manyObjects)+1]
			return &manyObjects[len(manyObjects)-1]
		}
	case glibc:
		return func() *object { return (*object)(cfloor.Calloc(64)) }
	}
	return func() *object {
		p := new(object)
		manyPointers = append(manyPointers, p)
		return p
	}
}

func childE(who string) map[string]float64 {
	runtime.LockOSThread() // glibc has an arena for each thread
	figures := map[string]float64{}
	live := liveOf(who)
	newest := uintptr(0)
	for i := range uint64(manyE) {
		p := live()
		p[0], p[1] = i, uint64(newest)
		newest = uintptr(unsafe.Pointer(p))
	}
	var times []float64
	for total := time.Duration(0); len(times) < 9 || total < 50*time.Millisecond; {
		start := time.Now()
		runtime.GC()
		took := time.Since(start)
		times, total = append(times, float64(took.Nanoseconds())), total+took
	}
	figures["collection, 5 million live"] = median(times)
	for range 1_000_000 {
		keptRaw[0] = unsafe.Pointer(unsafe.SliceData(make([]byte, 1000)))
	}
	peak, _ := platform.ResidentPeak()
	figures["peak RSS"] = float64(peak) / dataE
	sum := uint64(0)
	for at := newest; at != 0; {
		p := *(**object)(unsafe.Pointer(&at)) // its maker keeps the object alive
		sum = sum*31 + p[0]
		at = uintptr(p[1])
	}
	figures["sum"] = float64(sum >> 12) // a float64 has no more bits
	return figures
}
