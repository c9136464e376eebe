package main

import (
	"context"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
)

const (
	ownScratch = "upfront, own scratch"

	lessees = 2
	leases  = 64 // of each lessee
	batch   = 16 // objects
)

var workR = work{
	letter: "R", title: "scratch on loan: a lease and its Release on one goroutine, with nothing between them or a " +
		"scope of 16 objects; and two goroutines that lease 64 times and make 16 objects each time",
	absent: "Hand-written Go lends its arenas through a channel. sync.Pool lends an object, or 16. Own scratch is " +
		"never returned.",
	loops: []loop{
		{name: "R lease", unit: "lease", units: leases, enter: enterLease},
		{name: "R lease, 16 objects", unit: "lease", units: leases, enter: enterLeaseAndFill},
		{name: "R two lessees", unit: "object", units: lessees * leases * batch, enter: enterLessees},
	},
}

// held are the objects of a lessee; two lessees don't share a cache line.
type held struct {
	list [batch]*object
	_    [64]byte
}

// leased opens a budget with scratch arenas for two goroutines at a time.
func leased() (*budget.Budget, func()) { return scratches(2*lessees, budget.MiB) }

// lend returns a channel with the free arenas, from which lessees take turns: the lease of
// hand-written Go.
func lend() chan *bump.Arena {
	free := make(chan *bump.Arena, 2*lessees)
	for range cap(free) {
		free <- bump.NewGo(4096)
	}
	return free
}

func fillLease(s scope.Scope, list *[batch]*object) {
	for i := range list {
		p := objects.New(s)
		p[0] = uint64(i)
		list[i] = p //upfront:keeps the next batch overwrites it unread
	}
}

func fillBatch(a *bump.Arena, list *[batch]*object) {
	for i := range list {
		p := bump.New[object](a)
		p[0] = uint64(i)
		list[i] = p
	}
}

// fillShared puts the objects of the last batch before it gets new ones, not after use. Otherwise
// another goroutine would overwrite the last batch before its inspection.
func fillShared(shared *sync.Pool, list *[batch]*object) {
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
			for range leases {
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
			for range leases {
				a := <-free
				free <- a
			}
		}),
		times(syncPool, func() {
			for range leases {
				shared.Put(shared.Get())
			}
		}),
	}
}

//go:noinline
func enterLeaseAndFill() []contestant {
	b, end := leased()
	ctx, shared, free, own := context.Background(), objectsInPool(), lend(), b.Scratch(0, 0)
	times := func(who string, fill func(list *[batch]*object)) contestant {
		list := new([batch]*object)
		return again(who, func() {
			for range leases {
				fill(list)
			}
		}, func() uint64 { return inspect(pointers(list[:])) }, nil)
	}
	return []contestant{
		times(library, func(list *[batch]*object) {
			l, err := b.Lease(ctx)
			if err != nil {
				panic(err)
			}
			s := l.Scratch(0).Open("lessee")
			fillLease(s, list)
			_ = s.Close()
			_ = l.Release()
		}).ending(end),
		times(ownScratch, func(list *[batch]*object) {
			s := own.Open("lessee")
			fillLease(s, list)
			_ = s.Close()
		}),
		times(byHand, func(list *[batch]*object) {
			a := <-free
			fillBatch(a, list)
			a.Reset()
			free <- a
		}),
		times(syncPool, func(list *[batch]*object) { fillShared(shared, list) }),
	}
}

//go:noinline
func enterLessees() []contestant {
	b, end := leased()
	ctx, shared, free := context.Background(), objectsInPool(), lend()
	own := [lessees]scope.Scratch{b.Scratch(0, 0), b.Scratch(1, 0)}
	return []contestant{
		inTwo(library, func(_ int, h *held) {
			for range leases {
				l, err := b.Lease(ctx)
				if err != nil {
					panic(err)
				}
				s := l.Scratch(0).Open("lessee")
				fillLease(s, &h.list) //upfront:keeps the next batch overwrites it unread
				_ = s.Close()
				_ = l.Release()
			}
		}).ending(end),
		inTwo(ownScratch, func(g int, h *held) {
			for range leases {
				s := own[g].Open("lessee")
				fillLease(s, &h.list) //upfront:keeps the next batch overwrites it unread
				_ = s.Close()
			}
		}),
		inTwo(byHand, func(_ int, h *held) {
			for range leases {
				a := <-free
				fillBatch(a, &h.list)
				a.Reset()
				free <- a
			}
		}),
		inTwo(syncPool, func(_ int, h *held) {
			for range leases {
				fillShared(shared, &h.list)
			}
		}),
	}
}

// inTwo runs the work n times in two goroutines and inspects the objects that they hold at the end.
//
//go:noinline
func inTwo(who string, batches func(g int, h *held)) contestant {
	both := new([lessees]held)
	return contestant{who: who, run: func(n int) (sum uint64) {
		for range n {
			var wait sync.WaitGroup
			for g := range both {
				wait.Go(func() { batches(g, &both[g]) })
			}
			wait.Wait()
		}
		for g := range both {
			for _, p := range both[g].list {
				if p != nil {
					sum = sum*31 + p[0] + uint64(uintptr(unsafe.Pointer(p))&7)
				}
			}
		}
		return sum
	}}
}
