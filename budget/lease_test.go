package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
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

// borrower is a goroutine that leases scratch.
type borrower struct {
	*rand.Rand
	t      *testing.T
	b      *budget.Budget
	w      watched
	closes bool          // the budget, meanwhile; so scratch isn't used
	kept   *atomic.Int64 // leases that Close ended
}

// errBorrower is the cause of the contexts that end.
var errBorrower = errors.New("the borrower gives up")

// step leases once, and reports whether it may again.
func (r *borrower) step() bool {
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	switch r.IntN(6) {
	case 0:
		cancel(errBorrower)
	case 1:
		go cancel(errBorrower)
	case 2:
		time.AfterFunc(time.Duration(r.IntN(20))*time.Microsecond, func() { cancel(errBorrower) })
	}
	l, err := r.b.Lease(ctx)
	switch {
	case r.closes && errors.Is(err, budget.ErrClosed):
		return false
	case err != nil:
		return assert.ErrorIs(r.t, err, context.Canceled) && assert.Equal(r.t, errBorrower, context.Cause(ctx))
	case r.IntN(40) == 0: // another one, while it has this one
		more, end := context.WithTimeout(background, 10*time.Microsecond)
		defer end()
		if l, err := r.b.Lease(more); err == nil {
			r.release(l)
		}
	}
	if !r.closes {
		return r.w.use(l.Scratches) && r.release(l)
	}
	for range r.IntN(8) {
		runtime.Gosched()
	}
	return r.release(l)
}

func (r *borrower) release(l budget.Lease) bool {
	err := l.Release()
	if r.closes && errors.Is(err, budget.ErrClosed) {
		r.kept.Add(1)
		return false
	}
	return assert.NoError(r.t, err) && assert.Error(r.t, l.Release())
}

// TestNobodyWaitsForWhatIsFree: goroutines come, borrow, give up and release at once, as fast as
// they can. No goroutine waits forever, no scratch is lost, and no two goroutines share a scratch
// arena. In every other round a Close fails while finalizers of lent scratch run, and the next one
// succeeds: then each call returns, and Close counts the leases that weren't released.
func TestNobodyWaitsForWhatIsFree(t *testing.T) {
	for round := range step.Pick(6, 24, 1200) {
		workers, closes := 1+round%3, round%2 == 1
		b := open(t, leasePlan(workers))
		w := watchScratch(t, b, workers)
		var kept atomic.Int64
		var all sync.WaitGroup
		for me := range uint64(6) {
			r := &borrower{rand.New(rand.NewPCG(me, uint64(round))), t, b, w, closes, &kept}
			all.Go(func() {
				for i := 0; (i < 300 || closes) && r.step(); i++ {
				}
			})
		}
		if closes {
			text := closeLate(t, b)
			all.Wait()
			require.EqualValues(t, kept.Load(), b.Report().Leaks.Scratch)
			require.Equal(t, kept.Load() != 0, strings.Contains(text, "never released"), text)
			continue
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

// closeLate closes b while other goroutines lease, and returns the text of the error. Before, a
// Close fails because a finalizer runs that waits for it.
func closeLate(t *testing.T, b *budget.Budget) string {
	inside, failed := make(chan bool), make(chan bool)
	l := take(t, b)
	l.Scratch(0).Open("left").Defer(func() {
		close(inside)
		<-failed
	})
	var released sync.WaitGroup
	released.Go(func() { assert.ErrorContains(t, l.Release(), "left") })
	<-inside
	assert.ErrorIs(t, b.Close(), budget.ErrLoading)
	close(failed)
	released.Wait()
	err := b.Close()
	require.ErrorContains(t, err, `left open at NextFrame, Release or Close: scope "left"`)
	return err.Error()
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
