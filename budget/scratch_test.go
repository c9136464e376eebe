package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

func take(t testing.TB, b *budget.Budget) budget.Lease {
	t.Helper()
	lent, err := b.Lease(background)
	require.NoError(t, err)
	return lent
}

// stopped counts the goroutines that wait at a point, such as select, in a function. Only stack
// traces show them.
func stopped(at, function string) (n int) {
	all := make([]byte, 1<<20)
	for goroutine := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		head, frames, _ := strings.Cut(goroutine, "\n")
		if strings.Contains(head, "["+at) && strings.Contains(frames, function) {
			n++
		}
	}
	return n
}

func waiting() int { return stopped("select", "budget.(*leases).lease(") }

func untilWaiting(t testing.TB, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return waiting() == n }, 5*time.Minute, time.Millisecond)
}

func untilLocking(t testing.TB, n int) {
	t.Helper()
	locking := func() bool { return stopped("sync.Mutex.Lock", "budget.(*Budget).") == n }
	assert.Eventually(t, locking, 5*time.Minute, time.Millisecond)
}

// taking starts a Lease that has to wait, and returns its outcome.
func taking(t testing.TB, b *budget.Budget, ctx context.Context) <-chan error {
	t.Helper()
	before, done := waiting(), make(chan error, 1)
	go func() {
		lent, err := b.Lease(ctx)
		if err == nil {
			err = lent.Release()
		}
		done <- err
	}()
	untilWaiting(t, before+1)
	return done
}

// TestEachWorkerHasSoMany: a worker has the plan's number of scratch arenas, whether by number, on
// loan, or for Pick.
func TestEachWorkerHasSoMany(t *testing.T) {
	for _, each := range []int{1, 3, 8} {
		b, err := budget.Open(budget.Plan{Name: "each", Scratch: budget.ScratchPlan{Workers: 2, Each: each,
			Size: 4096}})
		require.NoError(t, err)
		report := b.Report()
		require.Len(t, beside(report), 2*each)
		assert.Equal(t, fmt.Sprintf("scratch 1.%d", each-1), beside(report)[2*each-1].Name)
		for _, scratches := range []scope.Scratches{take(t, b).Scratches, b.Scratches(0)} {
			var open []scope.Scope
			for range each {
				open = append(open, scratches.Pick(open...).Open("one more"))
			}
			assert.Contains(t, panics(t, func() { scratches.Pick(open...) }),
				"holds a conflicting scope; raise scratch.each in the plan")
			for _, s := range open {
				assert.NoError(t, s.Close())
			}
		}
		assert.Contains(t, panics(t, func() { b.Scratch(0, each) }),
			fmt.Sprintf("scratch %d: each worker has %[1]d, from 0", each))
		err = b.Close()
		assert.ErrorContains(t, err, "never released: scratch 1.0")
		assert.Equal(t, each-1, strings.Count(unsited(err), " and "))
	}
}

func stillWaits(t testing.TB, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.Fail(t, "it should wait", "%v", err)
	default:
	}
}

func TestTakeAndGive(t *testing.T) {
	b := budgettest.Open(t, small())
	one, two := take(t, b), take(t, b)
	s := one.Pick().Open("result")
	frogs.New(s)
	assert.NotEqual(t, one.Scratches, two.Scratches)
	assert.Equal(t, one.Scratch(1), one.Pick(s))
	assert.Equal(t, two.Scratch(0), two.Pick(s), "the other pair holds none of it")
	require.NoError(t, s.Close())
	require.NoError(t, one.Release())
	const twice = `budget "small": BUG: Release of scratch 1.0 and scratch 1.1, which were released before`
	assert.EqualError(t, one.Release(), twice)
	again := take(t, b)
	assert.Equal(t, "scope: BUG: Open on scratch 1.0, which was released",
		panics(t, func() { one.Scratch(0).Open("x") }))
	s = again.Scratch(0).Open("another's")
	assert.EqualError(t, one.Release(), twice, "it is lent to another now")
	frogs.New(s)
	require.NoError(t, s.Close())
	require.NoError(t, again.Release())
	require.NoError(t, two.Release())
	assert.NoError(t, budget.Lease{}.Release(), "of a Lease that failed")
}

func TestTakeWaitsUntilItsContextEnds(t *testing.T) {
	b := budgettest.Open(t, small())
	b.Scratches(0)
	one := take(t, b)
	ctx, cancel := context.WithCancel(background)
	done := taking(t, b, ctx)
	stillWaits(t, done)
	cancel()
	err := <-done
	assert.EqualError(t, err,
		`budget "small": Lease of scratch: 1 of 2 workers are lent, 1 taken by number; Release a Lease, or raise scratch.workers in the plan: context canceled`)
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, one.Release())
	for range 20 {
		_, err = b.Lease(ctx)
		assert.ErrorIs(t, err, context.Canceled, "a ctx that has ended is refused, though a pair is free")
	}
	again := take(t, b)
	require.NoError(t, again.Release(), "nothing was lost")
}

func TestTakeWaitsAndTheBudgetCloses(t *testing.T) {
	b := open(t, small())
	one, two := take(t, b), take(t, b)
	newMark(one.Scratch(1).Open("left"), 1, 0)
	first, second := taking(t, b, background), taking(t, b, background)
	stillWaits(t, first)
	assert.Equal(t,
		`budget "small": scratch 1.1: left open at NextFrame, Release or Close: scope "left"; close each where it `+
			"is opened\n"+`budget "small": never released: scratch 0.0 and scratch 0.1, scratch 1.0 and scratch 1.1; `+
			`call Release on each Lease`, unsited(b.Close()))
	assert.Equal(t, []int64{1}, ran)
	assert.Equal(t, budget.Leaks{Scopes: 1, Scratch: 2}, b.Report().Leaks)
	for _, err := range []error{<-first, <-second, func() error { _, err := b.Lease(background); return err }()} {
		assert.EqualError(t, err, `budget "small": Lease of scratch: upfront: closed`)
		assert.ErrorIs(t, err, budget.ErrClosed)
	}
	for _, lent := range []budget.Lease{one, two} {
		err := lent.Release()
		assert.EqualError(t, err, `budget "small": Release of scratch: upfront: closed`)
		assert.ErrorIs(t, err, budget.ErrClosed)
	}
	assert.Equal(t, "scope: BUG: Open on scratch 1.0, whose budget is closed",
		panics(t, func() { one.Scratch(0).Open("x") }))
	assert.Equal(t, "scope: BUG: Open on scratch 1.0, whose budget is closed",
		panics(t, func() { b.Scratch(1, 0).Open("x") }))
}

func TestScratchByNumber(t *testing.T) {
	b := budgettest.Open(t, small())
	one := take(t, b) // of worker 1: workers that are taken by number count from 0
	fixed := b.Scratches(0)
	assert.Equal(t, fixed, b.Scratches(0))
	assert.Equal(t, b.Scratch(0, 1), fixed.Scratch(1))
	const lent = "budget: BUG: the scratch of worker 1 of plan \"small\" is taken by number while it is lent; " +
		"call Scratches at set-up, before the first Lease"
	assert.Equal(t, lent, panics(t, func() { b.Scratches(1) }))
	assert.Equal(t, lent, panics(t, func() { b.Scratch(1, 0) }))
	require.NoError(t, one.Release())
	for _, worker := range []int{-1, 2} {
		assert.Contains(t, panics(t, func() { b.Scratches(worker) }), `plan "small" has scratch for 2 workers`)
	}
	s := fixed.Scratch(0).Open("the worker's")
	for range 3 {
		again := take(t, b)
		assert.NotEqual(t, fixed, again.Scratches)
		require.NoError(t, again.Release())
	}
	require.NoError(t, s.Close())
	assert.Equal(t, panics(t, func() { one.Scratch(1).Open("x") }),
		"scope: BUG: Open on scratch 1.1, which was released")
	require.NoError(t, b.Scratch(1, 1).Open("x").Close(), "asked for by number, after it was lent")
	_, err := b.Lease(background)
	assert.EqualError(t, err,
		`budget "small": BUG: Lease of scratch: all 2 workers are taken by number and never lent; `+
			`raise scratch.workers in the plan`)
	plan := small()
	plan.Scratch = budget.ScratchPlan{}
	none := budgettest.Open(t, plan)
	assert.Equal(t, `budget: BUG: plan "small" has no scratch; give it scratch.workers and scratch.size`,
		panics(t, func() { _, _ = none.Lease(background) }))
	assert.Equal(t, `budget: BUG: scratch of worker 0: plan "small" has scratch for 0 workers`,
		panics(t, func() { none.Scratches(0) }))
}

// TestTakeThatWaitsForWhatIsAskedForByNumber: the last free worker is taken by number while others
// wait.
func TestTakeThatWaitsForWhatIsAskedForByNumber(t *testing.T) {
	for range 20 {
		b := budgettest.Open(t, small())
		b.Scratches(0)
		one := take(t, b)
		waiting := []<-chan error{taking(t, b, background), taking(t, b, background)}
		require.NoError(t, one.Release())
		// a waiting goroutine may be faster
		lost := attempt(func() error { b.Scratches(1); return nil }).panicked
		for _, done := range waiting {
			if err := <-done; lost == nil && err != nil {
				assert.ErrorContains(t, err, "never lent")
			} else {
				assert.NoError(t, err)
			}
		}
	}
}

func TestGiveClosesAndNamesWhatWasLeftOpen(t *testing.T) {
	b := open(t, small())
	one := take(t, b)
	s := one.Scratch(0).Open("a")
	newMark(s, 1, doFail)
	inner := s.Open("b")
	newMark(inner, 2, doPanic)
	frogs.TrySlice(inner, 1<<20)
	newMark(one.Scratch(1).Open("c"), 3, 0)
	err := one.Release()
	assert.Equal(t, []int64{3, 2, 1}, ran)
	assert.ErrorContains(t, err,
		`scope: BUG: scope "c" of scratch 1.1 was left open; close it in the function that opens it`)
	assert.ErrorContains(t, err,
		`scope: BUG: 2 scopes of scratch 1.0 were left open: "a", "b"; close each in the function that opens it`)
	assert.ErrorIs(t, err, errMark)
	assert.ErrorContains(t, err, "mark panics")
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.ErrorIs(t, s.Close(), budget.ErrClosed)
	assert.Equal(t, budget.Leaks{Scopes: 3, Finalizers: 2}, b.Report().Leaks)
	two, three := take(t, b), take(t, b)
	assert.Zero(t, three.Scratch(0).Depth()+three.Scratch(1).Depth())
	require.NoError(t, two.Release())
	require.NoError(t, three.Release())
	assert.ErrorContains(t, b.Close(), `scratch 1.0: left open at NextFrame, Release or Close: scope "a", "b"`,
		"deferred Releases drop their errors")
}

func TestGiveWhoseFinalizerMisbehaves(t *testing.T) {
	b := open(t, small())
	one := take(t, b)
	var given, closed error
	var opened any
	s := one.Scratch(0).Open("a")
	newMark(s, 1, 0)
	s.Defer(runtime.Goexit)
	s.Defer(func() {
		given, closed = one.Release(), b.Close()
		opened = attempt(func() error { one.Scratch(1).Open("x"); return nil }).panicked
	})
	newMark(one.Scratch(1).Open("b"), 2, 0)
	assert.True(t, attempt(one.Release).exited)
	assert.Equal(t, []int64{2, 1}, ran)
	assert.ErrorContains(t, given, "which were released before")
	assert.EqualError(t, closed, `budget "small": Close while finalizers of scratch 1.0 and scratch 1.1 run; `+
		`nothing has changed: call Close again: upfront: a load, rewind or close is at work`)
	assert.ErrorContains(t, opened.(error), "which was released")
	three, two := take(t, b), take(t, b) // it is free all the same

	s = three.Scratch(1).Open("a")
	s.Defer(func() { given, closed = three.Release(), b.Close() })
	require.NoError(t, s.Close())
	assert.EqualError(t, given,
		`budget "small": BUG: Release of scratch 1.0 and scratch 1.1 from a finalizer of scratch 1.1`)
	assert.ErrorIs(t, closed, budget.ErrLoading)
	const inside = `budget "small": BUG: Release of scratch 1.0 and scratch 1.1 while a Do or a Make is at work on scratch 1.0`
	require.NoError(t, three.Scratch(0).Do("do", func(s scope.Scope) error {
		assert.EqualError(t, three.Release(), inside)
		return nil
	}))
	made := three.Scratch(0).Open("made")
	require.NoError(t, scope.Label(made, "label", func() error {
		assert.ErrorContains(t, three.Release(), "at work")
		return nil
	}))
	_, err := marks.Make(made, func(*mark) error { return three.Release() })
	assert.EqualError(t, err, inside)
	require.NoError(t, made.Close())
	require.NoError(t, three.Release())
	require.NoError(t, two.Release())
}

// watched uses pairs of scratch arenas and finds two users of one at once: by a count, and, because
// the count is plain, by the race detector.
type watched struct {
	t *testing.T
	b *budget.Budget
	// users, by the header of the scope on the pair's first scratch arena
	pairs map[unsafe.Pointer]*int
}

func watchScratch(t *testing.T, b *budget.Budget, pairs int) watched {
	w := watched{t, b, map[unsafe.Pointer]*int{}}
	var all []budget.Lease // at once: leases in turn would be of the same pair
	for range pairs {
		lent := take(t, b)
		all = append(all, lent)
		s := lent.Scratch(0).Open("first")
		header, _ := s.C()
		w.pairs[header] = new(int)
		require.NoError(t, s.Close())
	}
	for _, lent := range all {
		require.NoError(t, lent.Release())
	}
	require.Len(t, w.pairs, pairs)
	return w
}

func (w watched) use(scratches scope.Scratches) (fine bool) {
	s, u := scratches.Scratch(0).Open("use"), scratches.Scratch(1).Open("too")
	f := frogs.New(s)
	header, _ := s.C()
	users := w.pairs[header]
	*users++
	runtime.Gosched()
	frogs.New(u).X = f.X
	fine = assert.Equal(w.t, 1, *users)
	*users--
	return assert.NoError(w.t, errors.Join(u.Close(), s.Close())) && fine
}

// borrow takes a pair, uses it and releases it, or gives up after a while.
func (w watched) borrow(patience time.Duration) (fine bool) {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	lent, err := w.b.Lease(ctx)
	if err != nil {
		return assert.ErrorIs(w.t, err, context.DeadlineExceeded)
	}
	if !w.use(lent.Scratches) || !assert.NoError(w.t, lent.Release()) {
		return false
	}
	stale := attempt(func() error { lent.Scratch(0).Open("stale"); return nil }).panicked
	return assert.Error(w.t, lent.Release()) && assert.ErrorIs(w.t, stale.(error), scope.ErrClosed)
}

// TestScratchAmongGoroutines lends to many goroutines. No two have the same pair, while they come,
// leave, give up, take by number or use a released lease.
func TestScratchAmongGoroutines(t *testing.T) {
	plan := small()
	plan.Scratch.Workers = 4
	b := budgettest.Open(t, plan)
	w := watchScratch(t, b, 4)
	var all sync.WaitGroup
	for me := range uint64(12) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(me, 7))
			for range 100 {
				patience := time.Duration(random.IntN(300)+1) * time.Microsecond
				if me < 3 {
					patience = time.Minute
				}
				if !w.borrow(patience) {
					return
				}
			}
		})
	}
	all.Go(func() { // takes by number, once the pair isn't lent
		var mine scope.Scratches
		for attempt(func() error { mine = b.Scratches(2); return nil }).panicked != nil {
			runtime.Gosched()
		}
		for range 100 {
			if !w.use(mine) {
				return
			}
		}
	})
	all.Wait()
	lent := []budget.Lease{take(t, b), take(t, b), take(t, b)} // all but the one by number
	for _, l := range lent {
		assert.True(t, w.use(l.Scratches))
		assert.NoError(t, l.Release())
	}
}

// TestTakeAndGiveWhileTheBudgetCloses: each goroutine is served, or gets a closed error.
func TestTakeAndGiveWhileTheBudgetCloses(t *testing.T) {
	for range 20 {
		b := open(t, small())
		var all sync.WaitGroup
		var lent atomic.Int64
		for range 6 {
			all.Go(func() {
				for {
					lease, err := b.Lease(background)
					if err == nil {
						lent.Add(1)
						err = lease.Release()
					}
					if err != nil {
						assert.ErrorIs(t, err, budget.ErrClosed)
						return
					}
				}
			})
		}
		for lent.Load() < 20 {
			runtime.Gosched()
		}
		if err := b.Close(); err != nil {
			require.ErrorContains(t, err, "never released")
		}
		all.Wait()
	}
}

func TestWhoWaitsIsServedInTurn(t *testing.T) {
	b := budgettest.Open(t, small())
	b.Scratches(0)
	one := take(t, b)
	var served []int // guarded by the only pair
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			lent := take(t, b)
			served = append(served, i)
			assert.NoError(t, lent.Release())
		})
		untilWaiting(t, i+1)
	}
	require.NoError(t, one.Release())
	all.Wait()
	assert.Equal(t, []int{0, 1, 2, 3, 4}, served)
}
