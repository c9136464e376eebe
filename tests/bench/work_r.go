package main

import (
	"context"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
)

const ownScratch = "upfront, own scratch"

var workR = work{
	letter: "R", title: "scratch on loan: a lease and its Release on one goroutine, with nothing between them or a scope of 16 objects; " +
		"and two goroutines that lease 64 times and make 16 objects each time",
	absent: "Hand-written Go lends its arenas through a channel. sync.Pool lends an object, or 16. Own scratch is never given back.",
	loops: []loop{
		{name: "R lease", unit: "lease", units: batchesG, enter: enterLease},
		{name: "R lease, 16 objects", unit: "lease", units: batchesG, enter: enterLeaseAndFill},
		{name: "R two lessees", unit: "object", units: workersG * batchesG * batchG, enter: enterLessees},
	},
}

// leased returns scratch that two goroutines can have at a time, and a place for each.
func leased() (*budget.Budget, func()) { return scratches(2*workersG, budget.MiB) }

// lend lends arenas by hand: who comes waits in turn.
func lend() chan *bump.Arena {
	free := make(chan *bump.Arena, 2*workersG)
	for range cap(free) {
		free <- bump.NewGo(4096)
	}
	return free
}

func fillLease(s scope.Scope, list *[batchG]*object) {
	for i := range list {
		p := objects.New(s)
		p[0] = uint64(i)
		list[i] = p //upfront:keeps the next batch is written over it, and nobody looks
	}
}

func fillBatch(a *bump.Arena, list *[batchG]*object) {
	for i := range list {
		p := bump.New[object](a)
		p[0] = uint64(i)
		list[i] = p
	}
}

// fillShared puts what the list holds first: at the end another would take what is still to be looked at.
func fillShared(shared *sync.Pool, list *[batchG]*object) {
	for _, p := range list {
		if p != nil {
			shared.Put(p)
		}
	}
	for i := range list {
		p := shared.Get().(*object)
		*p = object{}
		p[0] = uint64(i)
		list[i] = p
	}
}

//go:noinline
func enterLease() []contestant {
	b, end := leased()
	ctx, shared, free := context.Background(), objectsInPool(), lend()
	times := func(who string, do func()) contestant {
		return contestant{who: who, run: func(n int) uint64 {
			for range n {
				do()
			}
			return 0
		}}
	}
	return []contestant{
		times(library, func() {
			for range batchesG {
				l, err := b.Lease(ctx)
				if err != nil {
					panic(err)
				}
				if err := l.Release(); err != nil {
					panic(err)
				}
			}
		}).ending(end),
		times(byHand, func() {
			for range batchesG {
				a := <-free
				free <- a
			}
		}),
		times(syncPool, func() {
			for range batchesG {
				shared.Put(shared.Get())
			}
		}),
	}
}

//go:noinline
func enterLeaseAndFill() []contestant {
	b, end := leased()
	ctx, shared, free, own := context.Background(), objectsInPool(), lend(), b.Scratch(0, 0)
	times := func(who string, fill func(list *[batchG]*object)) contestant {
		list := new([batchG]*object)
		return again(who, func() {
			for range batchesG {
				fill(list)
			}
		}, func() uint64 { return inspect(pointers(list[:])) }, nil)
	}
	return []contestant{
		times(library, func(list *[batchG]*object) {
			l, err := b.Lease(ctx)
			if err != nil {
				panic(err)
			}
			s := l.Scratch(0).Open("lessee")
			fillLease(s, list)
			_ = s.Close()
			_ = l.Release()
		}).ending(end),
		times(ownScratch, func(list *[batchG]*object) {
			s := own.Open("lessee")
			fillLease(s, list)
			_ = s.Close()
		}),
		times(byHand, func(list *[batchG]*object) {
			a := <-free
			fillBatch(a, list)
			a.Reset()
			free <- a
		}),
		times(syncPool, func(list *[batchG]*object) { fillShared(shared, list) }),
	}
}

//go:noinline
func enterLessees() []contestant {
	b, end := leased()
	ctx, shared, free := context.Background(), objectsInPool(), lend()
	own := [workersG]scope.Scratch{b.Scratch(0, 0), b.Scratch(1, 0)}
	return []contestant{
		inTwo(library, func(_ int, held *heldG) {
			for range batchesG {
				l, err := b.Lease(ctx)
				if err != nil {
					panic(err)
				}
				s := l.Scratch(0).Open("lessee")
				fillLease(s, &held.list)
				_ = s.Close()
				_ = l.Release()
			}
		}).ending(end),
		inTwo(ownScratch, func(g int, held *heldG) {
			for range batchesG {
				s := own[g].Open("lessee")
				fillLease(s, &held.list)
				_ = s.Close()
			}
		}),
		inTwo(byHand, func(_ int, held *heldG) {
			for range batchesG {
				a := <-free
				fillBatch(a, &held.list)
				a.Reset()
				free <- a
			}
		}),
		inTwo(syncPool, func(_ int, held *heldG) {
			for range batchesG {
				fillShared(shared, &held.list)
			}
		}),
	}
}
