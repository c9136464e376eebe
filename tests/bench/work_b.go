package main

// #include "upfront.h"
//
// // What a time leaves is a chain: the first word of each thing is where the one before lies. Counts them, and those that lie wrong.
// static uint64_t look_mixed(uint64_t newest, const uint32_t *aligns, uint64_t count) {
//     uint64_t sum = 0;
//     while (newest != 0 && count-- != 0) {
//         sum += 1 + ((newest & (aligns[count] - 1)) << 32);
//         newest = *(uint64_t *)(uintptr_t)newest;
//     }
//     return sum;
// }
//
// // n times: a scope, count things of sizes[i] bytes aligned to aligns[i] in it, and its end.
// static uint64_t floor_mixed(void *row, uint64_t n, const uint32_t *sizes, const uint32_t *aligns, uint64_t count) {
//     uint64_t newest = 0, i;
//     while (n-- != 0) {
//         upfront_scope s = upfront_scope_open((upfront_row *)row);
//         newest = 0;
//         for (i = 0; i < count; i++) {
//             uint64_t *p = (uint64_t *)upfront_scope_alloc(s, sizes[i], aligns[i]);
//             if (p == NULL)
//                 return 0;
//             *p = newest;
//             newest = (uint64_t)(uintptr_t)p;
//         }
//         upfront_scope_close(s);
//     }
//     return newest;
// }
// #cgo noescape floor_mixed
// #cgo nocallback floor_mixed
// #cgo noescape look_mixed
// #cgo nocallback look_mixed
import "C"

import (
	"math/rand/v2"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/bytedance/gopkg/lang/mcache"
	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
)

var workB = work{
	letter: "B", title: "1000 things of 8 to 256 bytes aligned to 8 or 16, not zeroed, then a rewind",
	absent: "sync.Pool has one size; z aligns to 8 only; the arena experiment can't align bytes. The Go heap zeroes, as it always does.",
	loops:  []loop{{name: "B mixed sizes", unit: "thing", units: objectCount, enter: enterB}},
}

// mixed is the sizes, multiples of 8, and aligns, those to 16 of things of 16 bytes and more.
var mixedSizes, mixedAligns = func() (sizes, aligns [objectCount]uint32) {
	r := rand.New(rand.NewPCG(8, 256))
	for i := range sizes {
		sizes[i], aligns[i] = 8*(1+r.Uint32N(32)), 8
		if sizes[i] >= 16 && r.Uint32N(2) == 0 {
			aligns[i] = 16
		}
	}
	return
}()

func lookMixed(newest uintptr) uint64 {
	return uint64(C.look_mixed(C.uint64_t(newest), (*C.uint32_t)(&mixedAligns[0]), objectCount))
}

func enterB() []contestant {
	heap, from := &memory.Allocator{}, mallocator.NewMallocatorWithAlignment(16)
	return []contestant{
		mixedC(), mixedUpfront(),
		// Sizes above 8 up to the next multiple of 16, whose classes the Go heap aligns to 16.
		mixedFrom(goHeap, func(size uint32) []byte {
			if size > 8 {
				size = (size + 15) &^ 15
			}
			return make([]byte, size)
		}, nil, nil),
		mixedFrom(modernc, func(size uint32) []byte {
			b, _ := heap.Malloc(int(size))
			return b
		}, func(b []byte) { _ = heap.Free(b) }, func() { _ = heap.Close() }),
		mixedFrom(mcached, func(size uint32) []byte { return mcache.Malloc(int(size)) }, mcache.Free, nil),
		mixedFrom(arrow, func(size uint32) []byte { return from.Allocate(int(size)) }, from.Free, nil),
	}
}

func mixedC() contestant {
	r := rowInC(budget.MiB)
	return contestant{who: floor, run: func(n int) uint64 {
		sizes, aligns := (*C.uint32_t)(&mixedSizes[0]), (*C.uint32_t)(&mixedAligns[0])
		return lookMixed(uintptr(C.floor_mixed(r, C.uint64_t(n), sizes, aligns, objectCount)))
	}}
}

func mixedUpfront() contestant {
	b, end := pads(1, budget.MiB)
	pad := b.Pad(0, 0)
	return contestant{who: library, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			s, newest := pad.Open("mixed"), uintptr(0)
			for i := range mixedSizes {
				p := s.Alloc(uint64(mixedSizes[i]), uint64(mixedAligns[i]))
				*(*uint64)(p) = uint64(newest)
				newest = uintptr(p)
			}
			if round == n-1 {
				sum = lookMixed(newest)
			}
			_ = s.Close()
		}
		return sum
	}}
}

func mixedFrom(who string, get func(uint32) []byte, put func([]byte), end func()) contestant {
	keep := make([][]byte, objectCount)
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			newest := uintptr(0)
			for i := range mixedSizes {
				keep[i] = get(mixedSizes[i])
				p := unsafe.Pointer(unsafe.SliceData(keep[i]))
				*(*uint64)(p) = uint64(newest)
				newest = uintptr(p)
			}
			if round == n-1 {
				sum = lookMixed(newest)
			}
			for i := range keep {
				if put != nil {
					put(keep[i])
				}
			}
		}
		return sum
	}}
}
