package main

import (
	"sync"
	"unsafe"

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
	return append([]contestant{
		{who: floor, run: func(n int) uint64 {
			for range n {
				a.Struct64(unsafe.SliceData(out), objectCount)
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
		objectsUpfront(), objectsGoHeap(), objectsSyncPool(), objectsModernc(),
	}, arenaObjects()...)
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

//go:noinline
func objectsModernc() contestant {
	var heap memory.Allocator
	return contestant{who: modernc, end: func() { _ = heap.Close() }, run: func(n int) (sum uint64) {
		for round := range n {
			for i := range kept {
				b, _ := heap.Calloc(64)
				p := (*object)(unsafe.Pointer(unsafe.SliceData(b)))
				p[0] = uint64(i)
				kept[i] = p
			}
			if round == n-1 {
				sum = inspect(pointers(kept[:]))
			}
			for _, p := range kept {
				_ = heap.UnsafeFree(unsafe.Pointer(p))
			}
		}
		return sum
	}}
}

func objectsInPool() *sync.Pool { return &sync.Pool{New: func() any { return new(object) }} }
