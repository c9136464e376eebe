package budget_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func leasePlan(workers int) budget.Plan {
	return budget.Plan{Name: "lease", Scratch: budget.ScratchPlan{Workers: workers, Size: 64 * budget.KiB},
		Pages: budget.Pages{Prefault: budget.Off}}
}

// TestAGoroutineFindsItsScratchAgain: a goroutine gets the scratch arenas that it had last, which
// its processor's caches hold. With one goroutine that is certain, however its stack moves.
func TestAGoroutineFindsItsScratchAgain(t *testing.T) {
	b := open(t, leasePlan(4))
	lease := func() budget.Lease { return take(t, b) }
	place := func(l budget.Lease) any {
		s := l.Scratch(0).Open("place")
		header, _ := s.C()
		if err := s.Close(); err != nil {
			panic(err)
		}
		return header
	}
	var at [4]any
	for round := range 20 {
		var held []budget.Lease
		for i := range round%4 + 1 {
			l := lease()
			if round < 4 && i == round {
				at[i] = place(l)
			}
			assert.Equal(t, at[i], place(l))
			held = append(held, l)
		}
		for _, l := range held { // the oldest first
			assert.NoError(t, l.Release())
		}
	}
}

// TestNobodyWaitsForWhatIsFree: goroutines come, borrow, give up and release at once, as fast as
// they can. No goroutine waits forever, no scratch is lost, and no two goroutines share a scratch
// arena.
func TestNobodyWaitsForWhatIsFree(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		b := open(t, leasePlan(workers))
		w := watchScratch(t, b, workers)
		var all sync.WaitGroup
		for me := range uint64(6) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(me, uint64(workers)))
				for range 300 {
					if me%3 == 2 { // most often it gives up
						ctx, cancel := context.WithTimeout(background, time.Duration(random.IntN(20))*time.Microsecond)
						if l, err := b.Lease(ctx); err == nil {
							assert.NoError(t, l.Release())
						}
						cancel()
						continue
					}
					l, err := b.Lease(background)
					if !assert.NoError(t, err) || !w.use(l.Scratches) || !assert.NoError(t, l.Release()) {
						return
					}
				}
			})
		}
		all.Wait()
		var lent []budget.Lease
		for range workers { // no worker is lost
			lent = append(lent, take(t, b))
		}
		for _, l := range lent {
			require.NoError(t, l.Release())
		}
		require.NoError(t, b.Close())
	}
}

// TestReleasePublishesWhatChanged: the published figures of released scratch equal the arenas' own.
func TestReleasePublishesWhatChanged(t *testing.T) {
	nothing := func(scope.Scope) error { return nil }
	var b *budget.Budget
	works := []func(s, u scope.Scope, n int){
		func(s, _ scope.Scope, n int) { s.Bytes(n) },
		func(_, u scope.Scope, n int) {
			_ = u.Do("deep", func(s scope.Scope) error { return s.Do("deeper", nothing) })
			u.Bytes(n / 8)
		},
		func(s, _ scope.Scope, n int) {
			_ = scope.Label(s, "sound", func() error { s.Bytes(n); return nil })
		},
		func(s, _ scope.Scope, n int) { frogs.Pool(s, n/100+1).Get() },
		func(_, u scope.Scope, n int) { frogs.Slice(u.Temp(8*n+4096), 3) },
		func(s, _ scope.Scope, n int) { newMark(s, int64(n), 0) },
		func(s, _ scope.Scope, _ int) {
			pool := marks.Pool(s, 2)
			_ = pool.Put(pool.Get())
		},
		func(s, _ scope.Scope, n int) { s.Keep(&n) },
		func(s, _ scope.Scope, n int) { s.Keep(&n); s.Keep(&n).Cancel() },
		func(s, _ scope.Scope, _ int) { _ = s.Defer(func() {}).CloseNow() },
		func(s, _ scope.Scope, _ int) { s.TryAllocUnzeroed(budget.GiB, 8) },
		func(s, _ scope.Scope, _ int) { s.TryAllocUnzeroed(budget.GiB, 8); _ = s.Err() },
		func(scope.Scope, scope.Scope, int) {},
	}
	ends := []func(s, u scope.Scope){
		func(s, u scope.Scope) { _, _ = u.Close(), s.Close() },
		func(s, u scope.Scope) { _, _ = u.Close(), s.Close(); b.Report() },
		func(s, u scope.Scope) { _ = u.Close() },
		func(scope.Scope, scope.Scope) {}, // Release closes them
	}
	for seed := range uint64(400) {
		var err error
		b, err = budget.Open(leasePlan(1))
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(seed, 3))
		for range random.IntN(8) + 1 {
			l := take(t, b)
			if seed%2 == 0 { // the peaks stay
				_ = l.Scratch(0).Do("one", func(s scope.Scope) error { s.Bytes(2500); return nil })
				_ = l.Scratch(1).Do("two", func(s scope.Scope) error { s.Bytes(2500); return nil })
			}
			s, u := l.Scratch(0).Open("one"), l.Scratch(1).Open("two")
			for range random.IntN(3) {
				works[random.IntN(len(works))](s, u, random.IntN(2000)+1)
			}
			ends[random.IntN(len(ends))](s, u)
			_ = l.Release() // its error names the open scopes
		}
		published := b.Published()
		_ = b.Close()
		require.Equal(t, beside(b.Report()), beside(published), "seed %d", seed)
	}
}
