package main

// #include "upfront.h"
//
// #define ALWAYS static inline __attribute__((always_inline))
//
// // A chunk, zeroed. bare is a pool without a check: a list through the free chunks and no more. size and bare are constants.
// ALWAYS uint64_t *take(void *pool, uint64_t tag, uint64_t size, int bare) {
//     uint64_t *p;
//     if (bare) {
//         p = *(uint64_t **)pool;
//         *(uint64_t **)pool = (uint64_t *)(uintptr_t)*p;
//     } else if ((p = (uint64_t *)upfront_pool_get((upfront_pool *)pool, tag)) == NULL)
//         return NULL;
//     return (uint64_t *)memset(p, 0, size);
// }
//
// ALWAYS void put(void *pool, uint64_t tag, uint64_t *p, int bare) {
//     if (bare) {
//         *p = (uint64_t)(uintptr_t)*(uint64_t **)pool;
//         *(uint64_t **)pool = p;
//     } else
//         upfront_pool_put((upfront_pool *)pool, tag, p);
// }
//
// ALWAYS uint64_t tag_of(void *pool, int bare) { return bare ? 0 : ((upfront_pool *)pool)->free & ~UPFRONT_OFFSETS; }
//
// // n * count times a chunk is taken, written to, and put back. One more is taken, and left to be looked at.
// ALWAYS uint64_t lifo(void *pool, uint64_t n, uint64_t count, uint64_t size, int bare) {
//     uint64_t tag = tag_of(pool, bare), i, *p;
//     while (n-- != 0)
//         for (i = 0; i < count; i++) {
//             if ((p = take(pool, tag, size, bare)) == NULL)
//                 return 0;
//             p[0] = p[size / 8 - 1] = i;
//             put(pool, tag, p, bare);
//         }
//     if ((p = take(pool, tag, size, bare)) != NULL)
//         p[0] = count;
//     return (uint64_t)(uintptr_t)p;
// }
//
// // n times all of count chunks are taken and written to, and put back in an order of their own; the last time they are left to be
// // looked at.
// ALWAYS uint64_t shuffled(void *pool, uint64_t n, uint64_t count, const uint32_t *order, uint64_t **keep, uint64_t size, int bare) {
//     uint64_t tag = tag_of(pool, bare), i, newest = 0, *p;
//     for (; n-- != 0;) {
//         for (newest = 0, i = 0; i < count; i++) {
//             if ((p = take(pool, tag, size, bare)) == NULL)
//                 return 0;
//             p[0] = i;
//             p[1] = newest;
//             newest = (uint64_t)(uintptr_t)p;
//             keep[i] = p;
//         }
//         for (i = 0; i < count && n != 0; i++)
//             put(pool, tag, keep[order[i]], bare);
//     }
//     return newest;
// }
//
// static uint64_t floor_lifo(void *pool, uint64_t n, uint64_t count, uint64_t size, int bare) {
//     if (size == 64)
//         return bare ? lifo(pool, n, count, 64, 1) : lifo(pool, n, count, 64, 0);
//     return bare ? lifo(pool, n, count, 256, 1) : lifo(pool, n, count, 256, 0);
// }
//
// static uint64_t floor_shuffled(void *pool, uint64_t n, uint64_t count, const uint32_t *order, void *keep, uint64_t size, int bare) {
//     uint64_t **k = (uint64_t **)keep;
//     if (size == 64)
//         return bare ? shuffled(pool, n, count, order, k, 64, 1) : shuffled(pool, n, count, order, k, 64, 0);
//     return bare ? shuffled(pool, n, count, order, k, 256, 1) : shuffled(pool, n, count, order, k, 256, 0);
// }
//
// static void floor_put(void *pool, uint64_t chunk, int bare) {
//     put(pool, tag_of(pool, bare), (uint64_t *)(uintptr_t)chunk, bare);
// }
//
// static void floor_put_all(void *pool, uint64_t count, const uint32_t *order, void *keep, int bare) {
//     uint64_t i;
//     for (i = 0; i < count; i++)
//         put(pool, tag_of(pool, bare), ((uint64_t **)keep)[order[i]], bare);
// }
// #cgo noescape floor_lifo
// #cgo nocallback floor_lifo
// #cgo noescape floor_shuffled
// #cgo nocallback floor_shuffled
// #cgo noescape floor_put
// #cgo nocallback floor_put
// #cgo noescape floor_put_all
// #cgo nocallback floor_put_all
import "C"

import (
	"math/rand/v2"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/bytedance/gopkg/lang/mcache"
	"modernc.org/memory"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var workC = work{
	letter: "C", title: "pool: get a zeroed chunk, and put it; the newest first (LIFO), or 1000 taken and put in another order (random)",
	absent: "z and the arena experiment give nothing back alone.",
	loops: []loop{
		{name: "C pool 64 LIFO", unit: "get+put", units: objectCount, enter: enterC(objects, false)},
		{name: "C pool 64 random", unit: "get+put", units: objectCount, enter: enterC(objects, true)},
		{name: "C pool 256 LIFO", unit: "get+put", units: objectCount, enter: enterC(larges, false)},
		{name: "C pool 256 random", unit: "get+put", units: objectCount, enter: enterC(larges, true)},
	},
}

// order is how the chunks of a random round are put.
var order = func() (list [objectCount]uint32) {
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(objectCount) {
		list[i] = uint32(k)
	}
	return
}()

type chunk interface{ object | large }

func enterC[T chunk](maker scope.Maker[T], random bool) func() []contestant {
	return func() []contestant {
		size := int(unsafe.Sizeof(*new(T)))
		heap, from := &memory.Allocator{}, mallocator.NewMallocator()
		list := append([]contestant{poolC(floor, size, random, false), poolC(unchecked, size, random, true)}, poolsGo(maker, random)...)
		return append(list,
			poolFrom[T](modernc, random, func() []byte {
				b, _ := heap.Calloc(size)
				return b
			}, func(b []byte) { _ = heap.Free(b) }, func() { _ = heap.Close() }),
			poolFrom[T](mcached, random, func() []byte {
				b := mcache.Malloc(size)
				clear(b)
				return b
			}, mcache.Free, nil),
			poolFrom[T](arrow, random, func() []byte { return from.Allocate(size) }, from.Free, nil))
	}
}

func poolC(who string, size int, random, bare bool) contestant {
	block, keep, is := arena.NewBlock(budget.MiB, 64), make([]uintptr, objectCount), C.int(0)
	pool := unsafe.Pointer(arena_c.PoolMake(unsafe.Pointer(&block[0]), budget.MiB, uint64(size), 8))
	if bare {
		is, pool = 1, unsafe.Pointer(&block[0])
		for i := range uintptr(objectCount + 1) { // the list: word 0 is its head
			at := (*uintptr)(unsafe.Pointer(&block[64+int(i)*size]))
			*(*uintptr)(pool), *at = uintptr(unsafe.Pointer(at)), *(*uintptr)(pool)
		}
	}
	return contestant{who: who, run: func(n int) uint64 {
		if !random {
			p := C.floor_lifo(pool, C.uint64_t(n), objectCount, C.uint64_t(size), is)
			defer C.floor_put(pool, p, is)
			return look(uintptr(p), size/8)
		}
		p := C.floor_shuffled(pool, C.uint64_t(n), objectCount, (*C.uint32_t)(&order[0]), unsafe.Pointer(&keep[0]), C.uint64_t(size), is)
		defer C.floor_put_all(pool, objectCount, (*C.uint32_t)(&order[0]), unsafe.Pointer(&keep[0]), is)
		return look(uintptr(p), size/8)
	}}
}
