package main

import (
	"sync"
	"unsafe"

	"modernc.org/memory"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

var workA = work{
	letter: "A", title: "1000 zeroed objects of 64 bytes, then a rewind",
	absent: "No contestant is absent. One without a rewind frees each object.",
	loops:  []loop{{name: "A objects", unit: "object", units: objectCount, enter: enterA}},
}

//go:noinline
func enterA() []contestant {
	a, out, hand := cfloor.NewArena(budget.MiB), cfloor.List(objectCount), bump.NewGo(budget.MiB)
	pool := objectsInPool()
	var heap memory.Allocator
	look := func() uint64 { return inspect(pointers(kept[:])) }
	return append([]contestant{
		again(floor, func() { a.Struct64(out) }, func() uint64 { return inspect(out) }, nil),
		again(byHand, func() {
			for i := range kept {
				p := bump.New[object](hand)
				p[0] = uint64(i)
				kept[i] = p
			}
		}, look, hand.Reset),
		inScope(library, func(s scope.Scope) {
			for i := range kept {
				p := objects.New(s)
				p[0] = uint64(i)
				kept[i] = p
			}
		}, look),
		again(goHeap, func() {
			for i := range kept {
				p := new(object)
				p[0] = uint64(i)
				kept[i] = p
			}
		}, look, nil),
		again(syncPool, func() {
			for i := range kept {
				p := pool.Get().(*object)
				*p = object{}
				p[0] = uint64(i)
				kept[i] = p
			}
		}, look, func() {
			for _, p := range kept {
				pool.Put(p)
			}
		}),
		again(modernc, func() {
			for i := range kept {
				b, _ := heap.Calloc(64)
				p := (*object)(unsafe.Pointer(unsafe.SliceData(b)))
				p[0] = uint64(i)
				kept[i] = p
			}
		}, look, func() {
			for _, p := range kept {
				_ = heap.UnsafeFree(unsafe.Pointer(p))
			}
		}).ending(func() { _ = heap.Close() }),
	}, arenaObjects(look)...)
}

func objectsInPool() *sync.Pool { return &sync.Pool{New: func() any { return new(object) }} }
