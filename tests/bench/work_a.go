package main

// #include "upfront.h"
//
// // n times: a scope, count zeroed objects of 64 bytes in it, and its end. Gives the newest object, which lies there still.
// static uint64_t floor_objects(void *row, uint64_t n, uint64_t count) {
//     uint64_t newest = 0, i;
//     while (n-- != 0) {
//         upfront_scope s = upfront_scope_open((upfront_row *)row);
//         newest = 0;
//         for (i = 0; i < count; i++) {
//             uint64_t *p = (uint64_t *)upfront_linear_bump(s.slot, s.tag + 64, 64, 7);
//             if (p == NULL)
//                 return 0;
//             memset(p, 0, 64);
//             p[0] = i;
//             p[1] = newest;
//             newest = (uint64_t)(uintptr_t)p;
//         }
//         upfront_scope_close(s);
//     }
//     return newest;
// }
// #cgo noescape floor_objects
// #cgo nocallback floor_objects
import "C"

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/bytedance/gopkg/lang/mcache"
	"github.com/dgraph-io/ristretto/v2/z"
	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var workA = work{
	letter: "A", title: "1000 zeroed objects of 64 bytes, then a rewind",
	absent: "Nobody is. Who has no rewind gives each object back.",
	loops:  []loop{{name: "A objects", unit: "object", units: objectCount, enter: enterA}},
}

func enterA() []contestant {
	c := append([]contestant{objectsC(), objectsUpfront(), objectsGoHeap(), objectsSyncPool()}, objectsPeers()...)
	return append(c, arenaObjects()...)
}

func objectsC() contestant {
	r := rowInC(budget.MiB)
	return contestant{who: floor, run: func(n int) uint64 {
		return look(uintptr(C.floor_objects(r, C.uint64_t(n), objectCount)), objectWords)
	}}
}

func objectsUpfront() contestant {
	b, end := pads(1, budget.MiB)
	pad := b.Pad(0, 0)
	return contestant{who: library, end: end, run: func(n int) (sum uint64) { return upfrontObjects(pad, n) }}
}

func upfrontObjects(pad scope.Pad, n int) (sum uint64) {
	for round := range n {
		s, newest := pad.Open("objects"), uintptr(0)
		for i := range uint64(objectCount) {
			p := objects.New(s)
			p[0], p[1] = i, uint64(newest)
			newest = uintptr(unsafe.Pointer(p))
		}
		if round == n-1 {
			sum = look(newest, objectWords)
		}
		_ = s.Close()
	}
	return sum
}

func objectsGoHeap() contestant {
	return contestant{who: goHeap, run: func(n int) uint64 { return goHeapObjects(make([]*object, objectCount), n) }}
}

func goHeapObjects(keep []*object, n int) (sum uint64) {
	for round := range n {
		newest := uintptr(0)
		for i := range uint64(objectCount) {
			p := new(object)
			p[0], p[1] = i, uint64(newest)
			newest = uintptr(unsafe.Pointer(p))
			keep[i] = p
		}
		if round == n-1 {
			sum = look(newest, objectWords)
		}
	}
	return sum
}

func objectsSyncPool() contestant {
	pool := newSyncPool()
	return contestant{who: syncPool, run: func(n int) uint64 { return syncPoolObjects(pool, make([]*object, objectCount), n) }}
}

func newSyncPool() *sync.Pool { return &sync.Pool{New: func() any { return new(object) }} }

func syncPoolObjects(pool *sync.Pool, keep []*object, n int) (sum uint64) {
	for round := range n {
		newest := uintptr(0)
		for i := range uint64(objectCount) {
			p := pool.Get().(*object)
			*p = object{}
			p[0], p[1] = i, uint64(newest)
			newest = uintptr(unsafe.Pointer(p))
			keep[i] = p
		}
		if round == n-1 {
			sum = look(newest, objectWords)
		}
		for _, p := range keep {
			pool.Put(p)
		}
	}
	return sum
}

// objectsPeers are the libraries: each gives zeroed bytes, or has them zeroed, and takes them back one by one, but z, which resets.
func objectsPeers() []contestant {
	linear := z.NewAllocator(budget.MiB, "bench")
	list := []contestant{
		objectsFrom(ristretto, func() []byte { return linear.AllocateAligned(objectSize) }, nil, linear.Reset),
		objectsFrom(mcached, func() []byte {
			b := mcache.Malloc(objectSize)
			clear(b)
			return b
		}, mcache.Free, nil),
	}
	list[0].end = linear.Release
	heap, from := &memory.Allocator{}, mallocator.NewMallocator()
	own := objectsFrom(modernc, func() []byte {
		b, _ := heap.Calloc(objectSize)
		return b
	}, func(b []byte) { _ = heap.Free(b) }, nil)
	own.end = func() { _ = heap.Close() }
	return append(list, own, objectsFrom(arrow, func() []byte { return from.Allocate(objectSize) }, from.Free, nil))
}

// objectsFrom costs its calls through a variable, 1 or 2 ns each, which is little beside what they do.
func objectsFrom(who string, get func() []byte, put func([]byte), reset func()) contestant {
	keep := make([][]byte, objectCount)
	return contestant{who: who, run: func(n int) (sum uint64) {
		for round := range n {
			newest := uintptr(0)
			for i := range uint64(objectCount) {
				keep[i] = get()
				p := (*object)(unsafe.Pointer(unsafe.SliceData(keep[i])))
				p[0], p[1] = i, uint64(newest)
				newest = uintptr(unsafe.Pointer(p))
			}
			if round == n-1 {
				sum = look(newest, objectWords)
			}
			for i := range keep {
				if put != nil {
					put(keep[i])
				}
			}
			if reset != nil {
				reset()
			}
		}
		return sum
	}}
}
