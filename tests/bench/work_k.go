package main

// #include <stdlib.h>
// #include <stdint.h>
//
// // n objects of 32 bytes among temporaries of sizes[i % sizes_count] bytes, three to each, of which the newest 48 live at a time.
// static void made_by_malloc(void **to, uint64_t n, const uint32_t *sizes, uint64_t sizes_count) {
//     void *temporary[48] = {0};
//     uint64_t i, k = 0;
//     for (i = 0; i < n; i++) {
//         int j;
//         for (j = 0; j < 3; j++, k++) {
//             free(temporary[k % 48]);
//             temporary[k % 48] = malloc(sizes[k % sizes_count]);
//             *(char *)temporary[k % 48] = 1;
//         }
//         to[i] = calloc(1, 32);
//         *(uint64_t *)to[i] = i;
//     }
//     for (k = 0; k < 48; k++)
//         free(temporary[k]);
// }
//
// static void free_all(void **list, uint64_t n) {
//     while (n-- != 0)
//         free(list[n]);
// }
// #cgo noescape made_by_malloc
// #cgo nocallback made_by_malloc
// #cgo noescape free_all
// #cgo nocallback free_all
import "C"

import (
	"math/rand/v2"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const glibc = "glibc malloc"

var workK = work{
	letter: "K", title: "a walk over 1 million objects of 32 bytes that were made among temporaries, in the order they were made",
	absent: "It is about where the three kinds of memory lay things.",
	loops:  []loop{{name: "K walk", unit: "object", units: million, once: true, few: true, enter: enterK}},
}

// little is half a cache line.
type little [4]uint64

const littleSize = 32

var littles = scope.Plain[little]()

// temporaries are the sizes of what comes and goes: mostly small, 16 to 1024 bytes.
var temporaries = func() (sizes [4099]uint32) {
	r := rand.New(rand.NewPCG(3, 5))
	for i := range sizes {
		sizes[i] = 16 << r.Uint32N(7)
		sizes[i] -= r.Uint32N(sizes[i] / 2)
	}
	return
}()

// walk is the same for all: the objects' addresses lie in a list, the cache line of each is touched.
func walk(list []*little) (sum uint64) {
	for _, p := range list {
		sum = sum*31 + p[0]
	}
	return sum
}

//go:noinline
func enterK() []contestant {
	const n = million
	lists := [3][]*little{make([]*little, n), make([]*little, n), make([]*little, n)}
	b := madeInScope(lists[0])
	madeOnGoHeap(lists[1])
	madeByMalloc(lists[2])
	of := func(who string, i int) contestant {
		return contestant{who: who, before: func() { sweepCache() }, run: func(int) uint64 { return walk(lists[i]) }}
	}
	return []contestant{
		of(library, 0).ending(func() { _ = b.Close() }), of(goHeap, 1),
		of(glibc, 2).ending(func() { C.free_all((*unsafe.Pointer)(unsafe.Pointer(&lists[2][0])), C.uint64_t(n)) }),
	}
}

// madeInScope has its temporaries in scopes of the other scratch arena.
func madeInScope(list []*little) *budget.Budget {
	b, _ := scratches(1, uint64(len(list)*littleSize+budget.MiB))
	s := b.Scratch(0, 0).Open("objects")
	scratch := b.Scratch(0, 1)
	k := 0
	for i := range list {
		t := scratch.Open("temporaries")
		for range 3 {
			*(*byte)(t.AllocUnzeroed(uint64(temporaries[k%len(temporaries)]), 8)) = 1
			k++
		}
		list[i] = littles.New(s)
		list[i][0] = uint64(i)
		_ = t.Close()
	}
	return b
}

var garbage [48][]byte

func madeOnGoHeap(list []*little) {
	k := 0
	for i := range list {
		for range 3 {
			garbage[k%len(garbage)] = make([]byte, temporaries[k%len(temporaries)])
			k++
		}
		list[i] = new(little)
		list[i][0] = uint64(i)
	}
	clear(garbage[:])
}

func madeByMalloc(list []*little) {
	C.made_by_malloc((*unsafe.Pointer)(unsafe.Pointer(&list[0])), C.uint64_t(len(list)), (*C.uint32_t)(&temporaries[0]),
		C.uint64_t(len(temporaries)))
}

var sweep []byte // made when it is wanted: a collection of E would count it as live

// sweepCache has the caches hold something else.
func sweepCache() {
	if sweep == nil {
		sweep = make([]byte, 64*budget.MiB)
	}
	for at := 0; at < len(sweep); at += 64 {
		sweep[at]++
	}
}
