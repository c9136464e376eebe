package main

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
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
	b, end := scratches(1, million*littleSize+budget.MiB)
	s, scratch := b.Scratch(0, 0).Open("objects"), b.Scratch(0, 1)
	t := scratch.Open("temporaries")
	return []contestant{
		walked(library, func(size int) unsafe.Pointer { return t.AllocUnzeroed(uint64(size), 8) }, func(unsafe.Pointer) {},
			func() *little {
				_ = t.Close()
				t = scratch.Open("temporaries")
				return littles.New(s)
			}, func([]*little) { end() }),
		walked(goHeap, func(size int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]byte, size))) },
			func(unsafe.Pointer) {}, func() *little { return new(little) }, func([]*little) {}),
		walked(glibc, cfloor.Malloc, cfloor.Free, func() *little { return (*little)(cfloor.Calloc(littleSize)) },
			func(list []*little) {
				for _, p := range list {
					cfloor.Free(unsafe.Pointer(p))
				}
			}),
	}
}

// walked makes the objects, three temporaries before each, of which the newest 48 live at a time; in a scope they are all gone
// before the object is made.
//
//go:noinline
func walked(who string, get func(size int) unsafe.Pointer, put func(unsafe.Pointer), object func() *little,
	end func([]*little)) contestant {
	runtime.LockOSThread() // glibc has an arena for each thread
	defer runtime.UnlockOSThread()
	list := make([]*little, million)
	var live [48]unsafe.Pointer
	k := 0
	for i := range list {
		for range 3 {
			put(live[k%len(live)])
			live[k%len(live)] = get(int(temporaries[k%len(temporaries)]))
			*(*byte)(live[k%len(live)]) = 1
			k++
		}
		list[i] = object()
		list[i][0] = uint64(i)
	}
	for _, p := range live {
		put(p)
	}
	return contestant{who: who, before: sweepCache, run: func(int) uint64 { return walk(list) }, end: func() { end(list) }}
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
