package budget_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestScratchOfALoadNeverLeaksInSilence: Do closes it whatever happens; what is opened otherwise
// stays when the load fails, is its worker's to close, and is named at the next NextFrame, Release or
// Close.
func TestScratchOfALoadNeverLeaksInSilence(t *testing.T) {
	for _, name := range []string{"error", "panic", "Goexit", "New", "ignored"} {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			fixed, lent := b.Scratch(0, 0), take(t, b)
			attempt(func() error {
				_, err := load(b, "level", func(s scope.Scope) error {
					newMark(s, 1, 0)
					return fixed.Do("scratch", func(scratch scope.Scope) error {
						newMark(scratch, 2, 0)
						return failures[name].end(b, s)
					})
				})
				return err
			})
			assert.Equal(t, []int64{2, 1}, ran)
			assert.Zero(t, fixed.Depth())
			require.NoError(t, b.NextFrame())
			require.Zero(t, b.Report().Leaks)

			ran = nil
			attempt(func() error {
				_, err := load(b, "level", func(s scope.Scope) error {
					newMark(s, 1, 0)
					newMark(fixed.Open("forgotten"), 2, 0)
					newMark(lent.Scratch(1).Open("forgotten too"), 3, 0)
					return failures[name].end(b, s)
				})
				return err
			})
			assert.Equal(t, []int64{1}, ran, "it stays")
			require.NoError(t, b.NextFrame())
			assert.Equal(t, 1, b.Report().Leaks.Scopes)
			assert.ErrorContains(t, lent.Release(), `scope "forgotten too" of scratch 1.1 was left open`)
			assert.Equal(t, 2, b.Report().Leaks.Scopes)
			err := b.Close()
			assert.ErrorContains(t, err, `scratch 0.0: left open at NextFrame, Release or Close: scope "forgotten"; close each`)
			assert.ErrorContains(t, err, `scratch 1.1: left open at NextFrame, Release or Close: scope "forgotten too"`)
			assert.Equal(t, []int64{1, 3, 2}, ran, "nothing is lost")
		})
	}
}

func TestSuccessLeavesScratchAlone(t *testing.T) {
	b := open(t, small())
	var in scope.Scope
	mustLoad(t, b, "level", func(scope.Scope) {
		in = b.Scratch(0, 0).Open("in fn")
		newMark(in, 1, 0)
	})
	assert.Empty(t, ran)
	frogs.New(in)
	assert.NoError(t, in.Close())
	assert.Equal(t, []int64{1}, ran)
}

func TestErrorsOfTheUnwindingAreInTheVerdict(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "systems", func(s scope.Scope) error {
		mustLoadRegion(t, b.Region("level").In(s), func(s scope.Scope) { newMark(s, 1, doFail) })
		newMark(s, 2, doPanic)
		return errLoader
	})
	assert.EqualError(t, err, errLoader.Error()+"\nregion level, scope \"level\": finalizer of budget_test.mark: mark failed\n"+
		"region systems, scope \"systems\": finalizer of budget_test.mark panicked: mark panics")
	assert.ErrorIs(t, err, errLoader)
	assert.ErrorIs(t, err, errMark)
	assert.Zero(t, b.Report().ErrorCount, "what a load itself says is not reported twice")
	assert.Equal(t, 2, b.Report().Leaks.Finalizers)
}

// TestErrorsAreOneFlatList: the text of nested ones costs the square of their number.
func TestErrorsAreOneFlatList(t *testing.T) {
	const slots = 100
	plan := small()
	plan.Regions[2] = budget.RegionPlan{Name: "level", Size: budget.KiB, Slots: slots}
	plan.Pages.Prefault = budget.Off
	b := open(t, plan)
	var rooms []*budget.Region
	for range slots {
		room, err := b.Slots("level").Acquire()
		require.NoError(t, err)
		rooms = append(rooms, room)
	}
	fill := func(in func(*budget.Region) *budget.Region) {
		for i, room := range rooms {
			mustLoadRegion(t, in(room), func(s scope.Scope) { newMark(s, int64(i), doFail) })
		}
	}
	flat := func(what string, err error, more int) {
		t.Helper()
		joined, ok := err.(interface{ Unwrap() []error })
		require.True(t, ok, what)
		assert.Len(t, joined.Unwrap(), slots+more, what)
	}
	itself := func(room *budget.Region) *budget.Region { return room }
	fill(itself)
	flat("Rewind", b.Region("systems").Rewind(background), 0)
	_, err := load(b, "systems", func(s scope.Scope) error {
		fill(func(room *budget.Region) *budget.Region { return room.In(s) })
		return errLoader
	})
	flat("Load", err, 1)
	fill(itself)
	mustLoad(t, b, "systems", nil)
	errs := b.Report().Errors
	require.Len(t, errs, 1)
	assert.Equal(t, slots-1, strings.Count(errs[0], "\n"))
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
		s.Temp(100_000)
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

func TestOpeningBesideALoadAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the instrumented build allocates on its own")
	}
	b := open(t, small())
	_, err := load(b, "level", func(scope.Scope) error {
		done := make(chan float64)
		go func() {
			done <- testing.AllocsPerRun(100, func() { _ = b.Scratch(1, 0).Open("work").Close() })
		}()
		assert.Zero(t, <-done)
		return nil
	})
	require.NoError(t, err)
}

// TestWorkersUseTheirScratchWhileLevelsLoad is for the race detector, and for a load that fails:
// workers' scopes are none of its business.
func TestWorkersUseTheirScratchWhileLevelsLoad(t *testing.T) {
	plan := small()
	plan.Scratch.Workers = 3
	b := open(t, plan)
	var stop atomic.Bool
	var workers sync.WaitGroup
	for w := 1; w < 3; w++ {
		workers.Go(func() {
			for n := int64(0); !stop.Load(); n++ {
				s := b.Scratch(w, 0).Open("work")
				f := frogs.New(s)
				inner := b.Scratch(w, 0).Open("deeper")
				frogs.Slice(inner, 10)[9].X = n
				assert.NoError(t, inner.Close())
				f.X = n
				assert.NoError(t, s.Close())
				runtime.Gosched()
			}
		})
	}
	for range 200 {
		_, err := load(b, "systems", func(s scope.Scope) error {
			return b.Scratch(0, 0).Do("in fn", func(scope.Scope) error {
				_, err := loadRegion(b.Region("level").In(s), func(scope.Scope) error {
					return b.Scratch(0, 1).Do("in fn", func(scope.Scope) error { return errLoader })
				})
				return err
			})
		})
		require.ErrorIs(t, err, errLoader)
	}
	stop.Store(true)
	workers.Wait()
	for w := range 3 {
		assert.Zero(t, b.Scratch(w, 0).Depth()+b.Scratch(w, 1).Depth())
	}
}
