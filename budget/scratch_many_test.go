package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
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

// watched uses pairs of scratch arenas and sees two users of one at once: by a count, and, since it is plain, by the race detector.
type watched struct {
	t     *testing.T
	b     *budget.Budget
	pairs map[unsafe.Pointer]*int // users, by the header of the scope on the pair's first scratch arena
}

func watchScratch(t *testing.T, b *budget.Budget, pairs int) watched {
	w := watched{t, b, map[unsafe.Pointer]*int{}}
	for range pairs {
		lent := take(t, b)
		s := lent.Scratch(0).Open("first")
		header, _ := s.C()
		w.pairs[header] = new(int)
		require.NoError(t, s.Close())
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

// borrow takes a pair, uses it and gives it back, or gives up after a while.
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

// TestScratchAmongGoroutines lends to many: no two have the same pair, whoever comes, goes, gives up, asks by number or
// keeps what it gave back.
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
	all.Go(func() { // one that asks by number, until the pair isn't lent
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
	lent := []budget.Lease{take(t, b), take(t, b), take(t, b)} // all but the one that was asked for by number
	for _, l := range lent {
		assert.True(t, w.use(l.Scratches))
		assert.NoError(t, l.Release())
	}
}

// TestTakeAndGiveWhileTheBudgetCloses: each is served, or told that the budget is closed.
func TestTakeAndGiveWhileTheBudgetCloses(t *testing.T) {
	for range 20 {
		b := open(t, small())
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for {
					lent, err := b.Lease(background)
					if err == nil {
						err = lent.Release()
					}
					if err != nil {
						assert.ErrorIs(t, err, budget.ErrClosed)
						return
					}
				}
			})
		}
		time.Sleep(200 * time.Microsecond)
		if err := b.Close(); err != nil {
			require.ErrorContains(t, err, "never given back")
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

func TestTakeAndGiveAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate for themselves")
	}
	b := open(t, small())
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	b.Scratches(0)
	for what, fn := range map[string]func(){
		"Lease, Release": func() { lent, _ := b.Lease(ctx); _ = lent.Release() },
		"Of":             func() { b.Scratches(0); b.Scratch(0, 1) },
		"in use": func() {
			lent, _ := b.Lease(background)
			s := lent.Pick().Open("s")
			u := lent.Pick(s).Open("u")
			frogs.New(u)
			_ = lent.Scratch(1).Do("use", func(s scope.Scope) error { s.Bytes(100)[0] = 1; return nil })
			_ = u.Close()
			_ = s.Close()
			_ = lent.Release()
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, fn), what)
	}
	one := take(t, b)
	waits := make(chan budget.Lease)
	next := make(chan bool)
	go func() {
		for range next {
			lent, _ := b.Lease(ctx)
			waits <- lent
		}
	}()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		next <- true
		runtime.Gosched() // it comes to wait, mostly
		_ = one.Release()
		one = <-waits
	}), "who waits")
	close(next)
	require.NoError(t, one.Release())
}

// TestLoadsThatFailWhileOthersUseWhatTheyGaveBack: the race detector sees a load that touches a scratch arena which is another's now.
func TestLoadsThatFailWhileOthersUseWhatTheyGaveBack(t *testing.T) {
	plan := small()
	plan.Scratch.Workers = 1
	b := budgettest.Open(t, plan)
	use := func() {
		lent := take(t, b)
		s := lent.Scratch(0).Open("use")
		frogs.New(s)
		assert.NoError(t, s.Close())
		assert.NoError(t, lent.Release())
	}
	var stop atomic.Bool
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for !stop.Load() {
				use()
			}
		})
	}
	for range 300 {
		_, err := load(b, "level", func(scope.Scope) error { use(); return errLoader })
		assert.ErrorIs(t, err, errLoader)
	}
	stop.Store(true)
	workers.Wait()
}
