package main

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/bytedance/gopkg/lang/mcache"
	"github.com/dgraph-io/ristretto/v2/z"
	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

var workA = work{
	letter: "A", title: "1000 zeroed objects of 64 bytes, then a rewind",
	absent: "Nobody is. Who has no rewind gives each object back.",
	loops:  []loop{{name: "A objects", unit: "object", units: objectCount, enter: enterA}},
}

//go:noinline
func enterA() []contestant {
	a, out, hand := cfloor.NewArena(budget.MiB), listInC(objectCount), bump.NewGo(budget.MiB)
	c, end := newCore()
	return append([]contestant{
		{who: floor, run: func(n int) uint64 {
			for range n {
				a.Struct64(unsafe.SliceData(out), objectCount)
			}
			return inspect(out)
		}},
		{who: ownCore, end: end, run: func(n int) uint64 {
			for range n {
				c.objects(out)
			}
			return inspect(out)
		}},
		{who: byHand, run: func(n int) uint64 {
			for range n {
				for i := range kept {
					p := bump.New[object](hand)
					p[0] = uint64(i)
					kept[i] = p
				}
				hand.Reset()
			}
			return inspect(pointers(kept[:]))
		}},
		objectsUpfront(), objectsGoHeap(), objectsSyncPool(),
	}, objectsPeers()...)
}

//go:noinline
func objectsUpfront() contestant {
	b, end := scratches(1, budget.MiB)
	scratch := b.Scratch(0, 0)
	return contestant{who: library, end: end, run: func(n int) (sum uint64) {
		for round := range n {
			s := scratch.Open("objects")
			for i := range kept {
				p := objects.New(s)
				p[0] = uint64(i)
				kept[i] = p
			}
			if round == n-1 {
				sum = inspect(pointers(kept[:]))
			}
			_ = s.Close()
		}
		return sum
	}}
}

//go:noinline
func objectsGoHeap() contestant {
	return contestant{who: goHeap, run: func(n int) uint64 {
		for range n {
			for i := range kept {
				p := new(object)
				p[0] = uint64(i)
				kept[i] = p
			}
		}
		return inspect(pointers(kept[:]))
	}}
}

//go:noinline
func objectsSyncPool() contestant {
	pool := objectsInPool()
	return contestant{who: syncPool, run: func(n int) (sum uint64) {
		for round := range n {
			for i := range kept {
				p := pool.Get().(*object)
				*p = object{}
				p[0] = uint64(i)
				kept[i] = p
			}
			if round == n-1 {
				sum = inspect(pointers(kept[:]))
			}
			for _, p := range kept {
				pool.Put(p)
			}
		}
		return sum
	}}
}

// objectsPeers are the libraries: each gives zeroed bytes, or has them zeroed, and takes them back
// one by one, but z, which resets, and the arena experiment, which is freed.
//
//go:noinline
func objectsPeers() []contestant {
	linear := z.NewAllocator(budget.MiB, "bench")
	z := objectsFrom(ristretto, func() []byte { return linear.AllocateAligned(64) }, nil, linear.Reset)
	z.end = linear.Release
	heap, from := &memory.Allocator{}, mallocator.NewMallocator()
	own := objectsFrom(modernc, func() []byte {
		b, _ := heap.Calloc(64)
		return b
	}, func(b []byte) { _ = heap.Free(b) }, nil)
	own.end = func() { _ = heap.Close() }
	return append([]contestant{z, own,
		objectsFrom(mcached, func() []byte {
			b := mcache.Malloc(64)
			clear(b)
			return b
		}, mcache.Free, nil),
		objectsFrom(arrow, func() []byte { return from.Allocate(64) }, from.Free, nil),
	}, arenaObjects()...)
}

// objectsFrom costs its calls through a variable, 1 or 2 ns each, which is little beside what they do.
//
//go:noinline
func objectsFrom(who string, get func() []byte, put func([]byte), reset func()) contestant {
	keep := make([][]byte, objectCount)
	return contestant{who: who, run: func(n int) (sum uint64) {
		for round := range n {
			for i := range keep {
				keep[i] = get()
				p := (*object)(unsafe.Pointer(unsafe.SliceData(keep[i])))
				p[0] = uint64(i)
				kept[i] = p
			}
			if round == n-1 {
				sum = inspect(pointers(kept[:]))
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

func objectsInPool() *sync.Pool { return &sync.Pool{New: func() any { return new(object) }} }
