package main

// #include <stdlib.h>
// #include <stdint.h>
//
// // count objects of 64 bytes more, each with the address of the one before.
// static uint64_t chain_of_malloc(uint64_t newest, uint64_t from, uint64_t to) {
//     for (; from < to; from++) {
//         uint64_t *p = calloc(1, 64);
//         p[0] = from;
//         p[1] = newest;
//         newest = (uint64_t)(uintptr_t)p;
//     }
//     return newest;
// }
//
// // The sum of the first words along the chain.
// static uint64_t look(uint64_t newest) {
//     uint64_t sum = 0;
//     for (; newest != 0; newest = ((uint64_t *)(uintptr_t)newest)[1])
//         sum = sum * 31 + *(uint64_t *)(uintptr_t)newest;
//     return sum;
// }
import "C"

import (
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

const (
	oneSlice = "Go heap, one slice"

	manyE    = 5_000_000
	goShareE = 32 * budget.MiB
	dataE    = manyE * 64
)

var workE = work{
	letter: "E", title: "5 million live objects of 64 bytes: what a collection takes, then 1 GB of garbage; a process each",
	absent: "The others lie on the Go heap or on C's, as the rows here do. All objects are plain data, and linked: in the scope and on " +
		"C's heap by addresses that the collector doesn't see, on the Go heap by a list of pointers; one slice needs none.",
	other: func(h *harness) ([]series, error) {
		return inChildren("E", max(1, min(3, h.rounds)), []string{library, goHeap, oneSlice, glibc}, []figure{
			{"collection, 5 million live", "collection"}, {"peak RSS", "times the data"},
		})
	},
}

// live makes objects until there are n.
type live func(n int)

var (
	manyPointers []*object
	manyObjects  []object
	newestE      uintptr
)

func liveOf(who string) live {
	at := uint64(0)
	link := func(p *object) {
		p[0], p[1] = at, uint64(newestE)
		newestE = uintptr(unsafe.Pointer(p))
		at++
	}
	switch who {
	case library:
		s := scopeE()
		return func(n int) {
			for at < uint64(n) {
				link(objects.New(s))
			}
		}
	case oneSlice:
		manyObjects = make([]object, manyE)
		return func(n int) {
			for at < uint64(n) {
				link(&manyObjects[at])
			}
		}
	case glibc:
		return func(n int) {
			newestE = uintptr(C.chain_of_malloc(C.uint64_t(newestE), C.uint64_t(at), C.uint64_t(n)))
			at = uint64(n)
		}
	}
	return func(n int) {
		for at < uint64(n) {
			p := new(object)
			manyPointers = append(manyPointers, p)
			link(p)
		}
	}
}

func scopeE() scope.Scope {
	b, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}}, GoHeap: goShareE,
		Scratch: budget.ScratchPlan{Workers: 1, Size: dataE}, Pages: budget.Pages{Prefault: budget.Off}})
	if err != nil {
		panic(err)
	}
	return b.Scratch(0, 0).Open("many")
}

var churned []byte

func childE(who string) map[string]float64 {
	figures := map[string]float64{}
	liveOf(who)(manyE)
	var times []float64
	for total := time.Duration(0); len(times) < 9 || total < 50*time.Millisecond; {
		start := time.Now()
		collect()
		took := time.Since(start)
		times, total = append(times, float64(took.Nanoseconds())), total+took
	}
	figures["collection, 5 million live"] = median(times)
	for range 1_000_000 {
		churned = make([]byte, 1000)
	}
	peak, _ := platform.ResidentPeak()
	figures["peak RSS"] = float64(peak) / dataE
	figures["sum"] = float64(C.look(C.uint64_t(newestE)) >> 12) // as many bits as a figure holds
	return figures
}
