package main

import (
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	workersG = 2
	batchesG = 64
	batchG   = 16 // objects
)

var workG = work{
	letter: "G", title: "two goroutines, each with an arena of its own: 64 times 16 zeroed objects of 64 bytes and a rewind",
	absent: "The other libraries lock, or crossed into C already in A.",
	loops: []loop{{name: "G two workers", unit: "object", units: workersG * batchesG * batchG,
		enter: enterG}},
}

// heldG is what a worker holds; they don't share a cache line.
type heldG struct {
	list [batchG]*object
	_    [64]byte
}

//go:noinline
func enterG() []contestant {
	b, end := scratches(workersG, budget.MiB)
	inC := [workersG]*cfloor.Arena{cfloor.NewArena(budget.MiB), cfloor.NewArena(budget.MiB)}
	hand := [workersG]*bump.Arena{bump.NewGo(4096), bump.NewGo(4096)}
	shared := objectsInPool()
	list := []contestant{
		inTwo(byHand, func(g int, held *heldG) {
			for range batchesG {
				for i := range held.list {
					p := bump.New[object](hand[g])
					p[0] = uint64(i)
					held.list[i] = p
				}
				hand[g].Reset()
			}
		}),
		inTwo(library, func(g int, held *heldG) {
			scratch := b.Scratch(g, 0)
			for range batchesG {
				s := scratch.Open("worker")
				for i := range held.list {
					p := objects.New(s)
					p[0] = uint64(i)
					held.list[i] = p //upfront:keeps the next batch is written over it, and nobody looks
				}
				_ = s.Close()
			}
		}),
		inTwo(goHeap, func(_ int, held *heldG) {
			for range batchesG {
				for i := range held.list {
					p := new(object)
					p[0] = uint64(i)
					held.list[i] = p
				}
			}
		}),
		inTwo(syncPool, func(_ int, held *heldG) {
			for range batchesG {
				for _, p := range held.list { // not at the end: the other would take what is still to be looked at
					if p != nil {
						shared.Put(p)
					}
				}
				for i := range held.list {
					p := shared.Get().(*object)
					*p = object{}
					p[0] = uint64(i)
					held.list[i] = p
				}
			}
		}),
		inTwo(floor, func(g int, _ *heldG) { inC[g].Scratch(batchesG, batchG) }),
	}
	list[1].end = end
	list[4].other = true // it doesn't tell what it took
	return list
}

// inTwo has two goroutines do the work n times; what they hold in the end is what was left.
//
//go:noinline
func inTwo(who string, batches func(g int, held *heldG)) contestant {
	held := new([workersG]heldG)
	return contestant{who: who, run: func(n int) (sum uint64) {
		for range n {
			var wait sync.WaitGroup
			for g := range held {
				wait.Go(func() { batches(g, &held[g]) })
			}
			wait.Wait()
		}
		for g := range held {
			for _, p := range held[g].list {
				if p != nil {
					sum = sum*31 + p[0] + uint64(uintptr(unsafe.Pointer(p))&7)
				}
			}
		}
		return sum
	}}
}
