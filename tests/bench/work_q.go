package main

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/upfront-mem/upfront/budget"
)

// Other contestants of work Q.
const (
	twoLocks  = "sync.Mutex, two pairs"
	semaphor  = "x/sync/semaphore"
	bareLocks = "sync.Mutex"
)

var workQ = work{
	letter: "Q", title: "a reservation of a quota and its release: of two levels, in pieces of its own, and with " +
		"eight goroutines that wait in turn",
	absent: "A semaphore has one level. Two pairs of a Mutex are the least for a reservation and its release.",
	loops: []loop{
		{name: "Q reserve, two levels", unit: "reservation", units: 1, enter: enterReserve},
		{name: "Q grow in a piece", unit: "grow", units: 1, enter: enterGrow},
		{name: "Q eight waiters", unit: "reservation", units: 8 * turnsQ, enter: enterWaiters},
	},
}

func quotas() (*budget.Budget, func()) {
	b, err := budget.Open(budget.Plan{Name: "quotas", Quotas: []budget.QuotaPlan{
		{Name: "query", Size: budget.MiB, Tenants: 4, Tenant: budget.MiB / 2},
		{Name: "piece", Size: budget.MiB, Piece: 64 * budget.KiB},
	}})
	if err != nil {
		panic(err)
	}
	return b, func() {
		if err := b.Close(); err != nil {
			panic(err)
		}
	}
}

func reserveQ(q *budget.Quota, ctx context.Context, n uint64) budget.Reservation {
	r, err := q.Reserve(ctx, n)
	if err != nil {
		panic(err)
	}
	return r
}

//go:noinline
func enterReserve() []contestant {
	b, end := quotas()
	ctx := context.Background()
	q, err := b.Quota("query").Tenant("tenant")
	if err != nil {
		panic(err)
	}
	s := semaphore.NewWeighted(budget.MiB)
	var m sync.Mutex
	return []contestant{
		{who: library, end: end, run: func(n int) uint64 {
			for range n {
				r := reserveQ(q, ctx, 100)
				r.Release()
			}
			return 0
		}},
		{who: semaphor, run: func(n int) uint64 {
			for range n {
				if err := s.Acquire(ctx, 100); err != nil {
					panic(err)
				}
				s.Release(100)
			}
			return 0
		}},
		{who: twoLocks, run: func(n int) uint64 {
			for range 2 * n {
				m.Lock()
				m.Unlock() //lint:ignore SA2001 the pair is the work
			}
			return 0
		}},
	}
}

//go:noinline
func enterGrow() []contestant {
	b, end := quotas()
	r := reserveQ(b.Quota("piece"), context.Background(), 100)
	var m sync.Mutex
	return []contestant{
		{who: library, end: func() { r.Release(); end() }, run: func(n int) uint64 {
			for range n {
				if err := r.Grow(64); err != nil {
					panic(err)
				}
				r.Shrink(64)
			}
			return 0
		}},
		{who: bareLocks, run: func(n int) uint64 {
			for range n {
				m.Lock()
				m.Unlock() //lint:ignore SA2001 the pair is the work
			}
			return 0
		}},
	}
}

const turnsQ = 1000

// eight runs reserve in eight goroutines, n * turnsQ times in each.
func eight(n int, reserve func()) uint64 {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range n * turnsQ {
				reserve()
			}
		})
	}
	all.Wait()
	return 0
}

//go:noinline
func enterWaiters() []contestant {
	b, end := quotas()
	ctx, cancel := context.WithCancel(context.Background())
	q := b.Quota("query")
	s := semaphore.NewWeighted(budget.MiB)
	return []contestant{
		{who: library, end: func() { cancel(); end() }, run: func(n int) uint64 {
			return eight(n, func() {
				r := reserveQ(q, ctx, budget.MiB)
				runtime.Gosched() // the others wait
				r.Release()
			})
		}},
		{who: semaphor, run: func(n int) uint64 {
			return eight(n, func() {
				if err := s.Acquire(ctx, budget.MiB); err != nil {
					panic(err)
				}
				runtime.Gosched()
				s.Release(budget.MiB)
			})
		}},
	}
}
