package budget_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestFailureClosesThePadScopesThatFnOpened(t *testing.T) {
	for _, name := range []string{"error", "panic", "Goexit", "New", "ignored"} {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			outer := b.Pad(0, 0).Open("open before")
			newMark(outer, 1, 0)
			worker := b.Pad(1, 0)
			attempt(func() error {
				_, err := load(b, "level", func(s scope.Scope) error {
					newMark(s, 2, 0)
					newMark(b.Pad(0, 0).Open("in fn"), 3, 0)
					b.Pad(0, 0).Open("deeper")
					newMark(b.Pad(0, 1).Open("in fn"), 4, 0)
					attempt(func() error { newMark(worker.Open("a worker's"), 5, 0); return nil })
					return failures[name].end(b, s)
				})
				return err
			})
			assert.Equal(t, []int64{3, 4, 2}, ran, "the worker's scope stays")
			assert.Equal(t, 1, b.Pad(0, 0).Depth())
			assert.Zero(t, b.Pad(0, 1).Depth())
			assert.Equal(t, 1, worker.Depth())
			frogs.New(outer)
			require.NoError(t, outer.Close())
		})
	}
}

func TestSuccessLeavesPadsAlone(t *testing.T) {
	b := open(t, small())
	var in scope.Scope
	mustLoad(t, b, "level", func(scope.Scope) {
		in = b.Pad(0, 0).Open("in fn")
		newMark(in, 1, 0)
	})
	assert.Empty(t, ran)
	frogs.New(in)
	assert.NoError(t, in.Close())
	assert.Equal(t, []int64{1}, ran)
}

func TestPadsOfANestedLoadBelongToTheOuterOneToo(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "systems", func(scope.Scope) error {
		mustLoad(t, b, "level", func(scope.Scope) {
			b.Pad(0, 0).Open("left open")
			require.NoError(t, b.Pad(1, 1).Open("closed").Close())
		})
		assert.Equal(t, 1, b.Pad(0, 0).Depth())
		return errLoader
	})
	require.EqualError(t, err, errLoader.Error())
	assert.Zero(t, b.Pad(0, 0).Depth())

	_, err = load(b, "systems", func(scope.Scope) error {
		b.Pad(0, 0).Open("the outer one's")
		_, err := load(b, "level", func(scope.Scope) error {
			b.Pad(0, 0).Open("the inner one's")
			return errLoader
		})
		assert.Equal(t, 1, b.Pad(0, 0).Depth())
		return err
	})
	require.EqualError(t, err, errLoader.Error())
	assert.Zero(t, b.Pad(0, 0).Depth())
}

func TestPadHandedOnInsideFnIsTheNewOwners(t *testing.T) {
	b := open(t, small())
	pad := b.Pad(0, 0)
	_, err := load(b, "level", func(scope.Scope) error {
		require.NoError(t, pad.Open("mine").Close())
		attempt(func() error { newMark(pad.Open("a worker's"), 1, 0); return nil })
		return errLoader
	})
	require.EqualError(t, err, errLoader.Error())
	assert.Empty(t, ran)
	assert.Equal(t, 1, pad.Depth(), "fn didn't open it")
}

func TestErrorsOfPadsAreInTheVerdict(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "level", func(s scope.Scope) error {
		newMark(b.Pad(0, 0).Open("in fn"), 1, doFail)
		newMark(s, 2, doPanic)
		return errLoader
	})
	assert.ErrorIs(t, err, errLoader)
	assert.ErrorIs(t, err, errMark)
	assert.ErrorContains(t, err, "finalizer of budget_test.mark panicked: mark panics")
	assert.Zero(t, b.Report().ErrorCount, "what a load itself says is not reported twice")
	assert.Equal(t, 2, b.Report().Leaks.Finalizers)
}

func TestLoadDoesntMoveTheFrame(t *testing.T) {
	for name, f := range failures {
		b := open(t, small())
		s := b.Frame()
		before := newMark(s, 1, 0)
		inner := s.Open("inner")
		report := b.Report().Beside[:2]
		if name != "the frame" {
			attempt(func() error { _, err := load(b, "level", func(s scope.Scope) error { return f.end(b, s) }); return err })
		}
		mustLoad(t, b, "level", nil)
		assert.Equal(t, report, b.Report().Beside[:2])
		assert.Equal(t, s, b.Frame())
		assert.EqualValues(t, 1, before.ID)
		frogs.New(inner)
		require.NoError(t, inner.Close())
		frogs.New(s)
		assert.Empty(t, ran)
	}
}

func TestLoadInTheEyesOfTheReport(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "level", func(s scope.Scope) error {
		s.Bytes(300_000)
		s.Temp().Bytes(100_000)
		return errLoader
	})
	require.Error(t, err)
	r := regionReport(b, "level")
	assert.Zero(t, r.Used)
	assert.GreaterOrEqual(t, r.Peak, uint64(400_000), "how far a load came that failed")
	mustLoad(t, b, "level", func(s scope.Scope) { frogs.Pool(s, 10).Get() })
	r = regionReport(b, "level")
	assert.GreaterOrEqual(t, r.Peak, uint64(400_000))
	assert.Less(t, r.LoadPeak, uint64(4*budget.KiB))
	assert.EqualValues(t, 10, r.PoolCap)
	assert.EqualValues(t, 1, r.PoolPeak)
	assert.Equal(t, r.Size-r.Used, r.Free)
	assert.EqualValues(t, 512*budget.KiB+100, r.Size)
}

// TestWorkersUseTheirPadsWhileLevelsLoad is for the race detector, and for a load that fails: workers' scopes are none
// of its business.
// BenchmarkOpenBesideALoad is what a worker pays for a scope on its pad while something loads on another goroutine.
func BenchmarkOpenBesideALoad(b *testing.B) {
	all := open(b, small())
	pad, begun, end := all.Pad(0, 0), make(chan bool), make(chan bool)
	var loads sync.WaitGroup
	loads.Go(func() {
		_, _ = load(all, "level", func(scope.Scope) error {
			begun <- true
			<-end
			return nil
		})
	})
	<-begun
	b.ReportAllocs()
	for b.Loop() {
		_ = pad.Open("work").Close()
	}
	close(end)
	loads.Wait()
}

func TestOpeningBesideALoadAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the instrumented build allocates on its own")
	}
	b := open(t, small())
	_, err := load(b, "level", func(scope.Scope) error {
		done := make(chan float64)
		go func() {
			done <- testing.AllocsPerRun(100, func() { _ = b.Pad(1, 0).Open("work").Close() })
		}()
		assert.Zero(t, <-done)
		return nil
	})
	require.NoError(t, err)
}

func TestWorkersUseTheirPadsWhileLevelsLoad(t *testing.T) {
	plan := small()
	plan.Pads.Workers = 3
	b := open(t, plan)
	var stop atomic.Bool
	var workers sync.WaitGroup
	for w := 1; w < 3; w++ {
		workers.Go(func() {
			for n := int64(0); !stop.Load(); n++ {
				s := b.Pad(w, 0).Open("work")
				f := frogs.New(s)
				inner := b.Pad(w, 0).Open("deeper")
				frogs.Slice(inner, 10)[9].X = n
				assert.NoError(t, inner.Close())
				f.X = n
				assert.NoError(t, s.Close())
				runtime.Gosched()
			}
		})
	}
	for range 200 {
		_, err := load(b, "systems", func(scope.Scope) error {
			b.Pad(0, 0).Open("in fn")
			_, err := load(b, "level", func(scope.Scope) error {
				b.Pad(0, 1).Open("in fn")
				return errLoader
			})
			return err
		})
		require.ErrorIs(t, err, errLoader)
	}
	stop.Store(true)
	workers.Wait()
	for w := range 3 {
		assert.Zero(t, b.Pad(w, 0).Depth()+b.Pad(w, 1).Depth())
	}
}
