package main

// #include "upfront.h"
//
// // n times: a scope, and in it a list of ints that grows one by one to count; the last is summed up.
// static uint64_t floor_list(void *row, uint64_t n, uint64_t count) {
//     uint64_t sum = 0, i;
//     while (n-- != 0) {
//         upfront_scope s = upfront_scope_open((upfront_row *)row);
//         uint64_t *list = (uint64_t *)upfront_linear_bump(s.slot, s.tag + 8, 8, 7), *p;
//         if (list == NULL)
//             return 0;
//         list[0] = 0;
//         for (i = 1; i < count; i++) {
//             if ((p = (uint64_t *)upfront_linear_grow(s.slot, s.tag + 8, 8)) == NULL)
//                 return 0;
//             *p = i;
//         }
//         for (i = 0; n == 0 && i < count; i++)
//             sum = sum * 31 + list[i];
//         upfront_scope_close(s);
//     }
//     return sum;
// }
// #cgo noescape floor_list
// #cgo nocallback floor_list
import "C"

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const countF = 4096

var workF = work{
	letter: "F", title: "a slice that grows one by one to 4096 ints",
	absent: "sync.Pool would give a slice that has grown already; z, mcache and the arena experiment don't grow one.",
	loops:  []loop{{name: "F append", unit: "int", units: countF, enter: enterF}},
}

var ints = scope.Plain[uint64]()

func enterF() []contestant {
	r := rowInC(budget.MiB)
	b, end := pads(1, budget.MiB)
	pad, heap, from := b.Pad(0, 0), &memory.Allocator{}, mallocator.NewMallocator()
	return []contestant{
		{who: floor, run: func(n int) uint64 { return uint64(C.floor_list(r, C.uint64_t(n), countF)) }},
		{who: library, end: end, run: func(n int) (sum uint64) {
			for round := range n {
				s := pad.Open("list")
				var list []uint64
				for i := range uint64(countF) {
					list = ints.Append(s, list, i)
				}
				if round == n-1 {
					sum = sumList(list)
				}
				_ = s.Close()
			}
			return sum
		}},
		{who: goHeap, run: func(n int) (sum uint64) {
			for range n {
				var list []uint64
				for i := range uint64(countF) {
					list = append(list, i)
				}
				keptList = list
			}
			return sumList(keptList)
		}},
		listFrom(modernc, func(b []byte, size int) []byte {
			b, _ = heap.Realloc(b, size)
			return b
		}, func(b []byte) { _ = heap.Free(b) }, func() { _ = heap.Close() }),
		listFrom(arrow, func(b []byte, size int) []byte {
			if b == nil {
				return from.Allocate(size)
			}
			return from.Reallocate(size, b)
		}, from.Free, nil),
	}
}

var keptList []uint64

func sumList(list []uint64) (sum uint64) {
	for _, x := range list {
		sum = sum*31 + x
	}
	return sum
}

// listFrom doubles the bytes when they are full, as append does.
func listFrom(who string, grow func([]byte, int) []byte, put func([]byte), end func()) contestant {
	return contestant{who: who, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			var bytes []byte
			var list []uint64
			for i := range uint64(countF) {
				if len(list) == cap(list) {
					bytes = grow(bytes, max(8, 16*len(list)))
					list = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/8)[:len(list)]
				}
				list = append(list, i)
			}
			if round == n-1 {
				sum = sumList(list)
			}
			put(bytes)
		}
		return sum
	}}
}
