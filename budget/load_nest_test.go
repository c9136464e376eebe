package budget_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// refused touches the regions in every way during a load, and returns the errors.
func refused(b *budget.Budget, regions ...budget.Region) (errs []error) {
	for _, r := range regions {
		_, err := loadRegion(r, func(scope.Scope) error { panic("it should be refused") })
		errs = append(errs, err, r.Rewind(background))
	}
	return append(errs, b.Close())
}

func regionsOf(b *budget.Budget) (regions []budget.Region) {
	for _, name := range []string{"init", "systems", "level"} {
		regions = append(regions, b.Region(name))
	}
	return regions
}

// inAll returns the regions for a caller that claims to be inside the load of that scope.
func inAll(regions []budget.Region, s scope.Scope) (in []budget.Region) {
	for _, r := range regions {
		in = append(in, r.In(s))
	}
	return in
}

func TestSameLowerAndThoseBesideAreRefused(t *testing.T) {
	b := open(t, small())
	regions := regionsOf(b)
	first := mustLoad(t, b, "init", func(s scope.Scope) { newMark(s, 1, 0) })
	var stale scope.Scope
	mustLoad(t, b, "systems", func(s scope.Scope) { stale = s })
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 2, 0)
		above := mustLoadRegion(t, regions[2].In(s), nil)
		before := quiet(b)
		for _, err := range refused(b, inAll(regions[:2], s)...)[:4] {
			assert.ErrorIs(t, err, budget.ErrLoading)
			assert.ErrorContains(t, err, "refused inside a Load of region systems: only regions that stand on "+
				"systems may be touched")
		}
		for _, err := range refused(b, regions...) {
			assert.ErrorIs(t, err, budget.ErrLoading)
			assert.ErrorContains(t, err, "during a Load of region systems")
		}
		attempt(func() error {
			assert.Len(t, refused(b, regions...), 7)
			for _, err := range refused(b, regions...) {
				assert.ErrorIs(t, err, budget.ErrLoading)
			}
			return nil
		})
		inner := s.Open("inner")
		for what, s := range map[string]scope.Scope{"zero": {}, "stale": stale, "inside": inner,
			"a scratch's": b.Scratch(0, 0).Open("x")} {
			errs := refused(b, inAll(regions, s)...)
			for _, err := range errs[:6] {
				assert.ErrorIs(t, err, budget.ErrLoading, what)
				assert.ErrorContains(t, err, "refused: In needs the scope that a running Load passed to its function",
					what)
			}
		}
		require.NoError(t, inner.Close())
		after := quiet(b)
		// a scratch arena's scope is open there
		copy(after.Arenas[len(after.Arenas)-len(beside(after)):], beside(before))
		after.Arenas[1].Scopes, after.Arenas[1].MostOpen = before.Arenas[1].Scopes, before.Arenas[1].MostOpen
		assert.Equal(t, before, after, "nothing changed")
		assert.Empty(t, ran)
		assert.NotNil(t, above.Get())
		require.NoError(t, regions[2].In(s).Rewind(background), "above may be rewound")
		assert.Nil(t, above.Get())
	})
	assert.NotNil(t, first.Get())
	o := attempt(func() error { _, err := load(b, "systems", nil); return err })
	assert.Equal(t, outcome{}, o, "another goroutine may, when nothing loads")
	assert.Equal(t, []int64{2}, ran)
}

// TestForgottenIn: the error has the call to write.
func TestForgottenIn(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "systems", func(scope.Scope) {
		_, err := load(b, "level", nil)
		assert.EqualError(t, err,
			`budget "small": Load of region level refused during a Load of region systems, on which level `+
				`stands; in the function of that load call Load(ctx, level.In(s), ...) with its scope s, elsewhere wait: `+
				budget.ErrLoading.Error())
		assert.EqualError(t, b.Region("level").Rewind(background),
			`budget "small": Rewind of region level refused during a Load of region systems, on which level `+
				`stands; in the function of that load call level.In(s).Rewind(ctx) with its scope s, elsewhere wait: `+
				budget.ErrLoading.Error())
		_, err = load(b, "systems", nil)
		assert.EqualError(t, err,
			`budget "small": Load of region systems refused during a Load of region systems; call it when that has `+
				`returned: upfront: a load, rewind or close is at work`)
	})
	b = open(t, rooms(false))
	room := acquire(t, b)
	mustLoad(t, b, "systems", func(s scope.Scope) {
		assert.ErrorContains(t, room.Release(background),
			"in the function of that load call room.In(s).Release(ctx) with its scope s")
		require.NoError(t, room.In(s).Release(background))
	})
	assert.ErrorIs(t, room.Rewind(background), budget.ErrClosed)
}

// TestKeptProof: a region that was kept with its proof otherwise works as before. Calls that need
// the proof are refused: see TestLoadsInsideFail.
func TestKeptProof(t *testing.T) {
	b := open(t, small())
	var kept budget.Region
	mustLoad(t, b, "systems", func(s scope.Scope) { kept = b.Region("level").In(s) })
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(100) })
	assert.Equal(t, b.Region("level").Report(), kept.Report())
	assert.Equal(t, b.Region("level").Base(), kept.Base())
	reader := kept.Reader("anna")
	require.True(t, reader.Pin())
	assert.ErrorContains(t, b.Close(), `"anna" has pinned region level`)
	reader.Unpin()
}

// innerLoad is a load of a region on a goroutine of its own; its function runs until leave.
type innerLoad struct {
	leave  chan bool
	done   chan error
	loaded budget.Loaded[frog] // after the load
}

func startInner(r budget.Region) *innerLoad {
	inside, l := make(chan bool), &innerLoad{leave: make(chan bool), done: make(chan error, 1)}
	go func() {
		loaded, err := loadRegion(r, func(scope.Scope) error {
			inside <- true
			<-l.leave
			return nil
		})
		l.loaded = loaded
		l.done <- err
	}()
	<-inside
	return l
}

// TestProofIsHandedOn: each goroutine that has the load's scope may call inside the load, one at a
// time.
func TestProofIsHandedOn(t *testing.T) {
	plan := small()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "effects", Size: 64 * budget.KiB})
	b := open(t, plan)
	level, effects := b.Region("level"), b.Region("effects")
	mustLoad(t, b, "systems", func(s scope.Scope) {
		inner := startInner(level.In(s))
		_, err := loadRegion(effects.In(s), nil)
		assert.ErrorIs(t, err, budget.ErrLoading)
		assert.ErrorContains(t, err, "inside a Load of region systems, during a Load of region level there; wait "+
			"for the inner one first")
		inner.leave <- true
		require.NoError(t, <-inner.done)
		mustLoadRegion(t, effects.In(s), nil)
		assert.NotNil(t, inner.loaded.Get())
	})
	assert.Zero(t, b.Report().ErrorCount)
}

// TestLoadEndsAfterThoseInside: the load waits for the inner load and reports that its function
// didn't, even if OnError then panics.
func TestLoadEndsAfterThoseInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func() error{
			"success":        func() error { return nil },
			"error":          func() error { return errLoader },
			"panic":          func() error { panic("boom") },
			"Goexit":         func() error { runtime.Goexit(); return nil },
			"OnError panics": func() error { return nil },
		} {
			var told []error
			plan := small()
			plan.OnError = func(err error) {
				if told = append(told, err); name == "OnError panics" {
					panic("boom")
				}
			}
			b := open(t, plan)
			var over atomic.Bool
			started, ended := make(chan *innerLoad), make(chan outcome)
			go func() {
				ended <- attempt(func() error {
					defer over.Store(true)
					_, err := load(b, "systems", func(s scope.Scope) error {
						started <- startInner(b.Region("level").In(s))
						return end()
					})
					return err
				})
			}()
			inner := <-started
			synctest.Wait()
			assert.False(t, over.Load(), "%s: it waits", name)
			inner.leave <- true
			require.NoError(t, <-inner.done, name)
			o := <-ended
			require.Len(t, told, 1, name)
			assert.EqualError(t, told[0],
				`budget "small": BUG: the function of Load of region systems returned before a Load of `+
					`region level inside it; the outer load waits: upfront: a load, rewind or close is at work`)
			assert.Equal(t, name == "success", inner.loaded.Get() != nil, name)
			assert.Equal(t, name == "error", o.err != nil, name)
			assert.Equal(t, strings.HasSuffix(name, "panics") || name == "panic", o.panicked == "boom", name)
			assert.Equal(t, name == "Goexit", o.exited, name)
			requireWalk(t, b)
			mustLoad(t, b, "init", nil)
		}
	})
}

func TestFinalizersMayNotLoad(t *testing.T) {
	b := open(t, small())
	regions := regionsOf(b)
	var errs []error
	tryAll := func(s scope.Scope) func() {
		return func() {
			errs = append(errs,
				refused(b, slices.Concat(regions, inAll(regions, s), inAll(regions, scope.Scope{}))...)...)
			before := quiet(b)
			assert.Equal(t, before, quiet(b), "a report may be asked for")
			assert.EqualValues(t, before.Arenas[1], regionReport(b, "systems"))
		}
	}
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll(s)) })
	require.NoError(t, b.Region("systems").Rewind(background))
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Temp(64).Defer(tryAll(s)) })
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll(s)) })
	_, err := load(b, "systems", func(s scope.Scope) error { s.Defer(tryAll(s)); return errLoader })
	require.EqualError(t, err, errLoader.Error())
	mustLoad(t, b, "init", func(s scope.Scope) { // the region that is rewound inside
		mustLoadRegion(t, regions[1].In(s), func(scope.Scope) { regions[2].Reader("nobody") })
		mustLoadRegion(t, regions[1].In(s), func(inner scope.Scope) { inner.Defer(tryAll(s)) })
		require.NoError(t, regions[1].In(s).Rewind(background))
	})
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll(s)) })
	require.NoError(t, b.Close())
	assert.Len(t, errs, 6*19)
	for _, err := range errs {
		assert.ErrorIs(t, err, budget.ErrLoading)
	}
	assert.Zero(t, b.Report().Leaks)
}

func TestCancelledBeforeChangesNothing(t *testing.T) {
	b := open(t, small())
	l := mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 1, 0) })
	before := quiet(b)
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := budget.Load(ctx, b.Region("level"), func(scope.Scope) (*frog, error) { panic("it should not run") })
	assert.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, `budget "small": Load of region level: context canceled`)
	assert.ErrorIs(t, b.Region("init").Rewind(ctx), context.Canceled)
	assert.Equal(t, before, quiet(b))
	assert.NotNil(t, l.Get())
	assert.Empty(t, ran)
}

// TestScratchOfALoadNeverLeaksInSilence: Do always closes its scope. A scope opened without Do
// stays when the load fails; its worker must close it, and the next NextFrame, Release or Close
// names it. The frame is unchanged.
func TestScratchOfALoadNeverLeaksInSilence(t *testing.T) {
	for _, name := range []string{"error", "panic", "Goexit", "New", "ignored"} {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			fixed, lent := b.Scratch(0, 0), take(t, b)
			frame := newMark(b.Frame(), 9, 0)
			inner, before := b.Frame().Open("inner"), beside(b.Report())[:2]
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
			assert.Equal(t, before, beside(b.Report())[:2])
			assert.EqualValues(t, 9, frame.ID)
			frogs.New(inner)
			require.NoError(t, inner.Close())
			require.NoError(t, b.NextFrame())
			require.Zero(t, b.Report().Leaks)

			require.NoError(t, b.NextFrame())
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
			assert.ErrorContains(t, err,
				`scratch 0.0: left open at NextFrame, Release or Close: scope "forgotten"; close each`)
			assert.ErrorContains(t, err, `scratch 1.1: left open at NextFrame, Release or Close: scope "forgotten too"`)
			assert.Equal(t, []int64{1, 3, 2}, ran, "nothing is lost")
		})
	}
}

func TestErrorsOfTheUnwindingAreInTheVerdict(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "systems", func(s scope.Scope) error {
		mustLoadRegion(t, b.Region("level").In(s), func(s scope.Scope) { newMark(s, 1, doFail) })
		newMark(s, 2, doPanic)
		return errLoader
	})
	assert.EqualError(t, err, errLoader.Error()+"\nbudget \"small\": region level, scope \"level\": finalizer of "+
		"budget_test.mark: mark failed\nbudget \"small\": region systems, scope \"systems\": finalizer of "+
		"budget_test.mark panicked: mark panics")
	assert.ErrorIs(t, err, errLoader)
	assert.ErrorIs(t, err, errMark)
	assert.Zero(t, b.Report().ErrorCount, "what a load itself says is not reported twice")
	assert.Equal(t, 2, b.Report().Leaks.Finalizers)
}

// TestErrorsAreOneFlatList: the text of nested errors would cost the square of their number.
func TestErrorsAreOneFlatList(t *testing.T) {
	const slots = 100
	plan := small()
	plan.Regions[2] = budget.RegionPlan{Name: "level", Size: budget.KiB, Slots: slots}
	plan.Pages.Prefault = budget.Off
	b := open(t, plan)
	var rooms []budget.Region
	for range slots {
		room, err := b.Slots("level").Acquire()
		require.NoError(t, err)
		rooms = append(rooms, room)
	}
	fill := func(in func(budget.Region) budget.Region) {
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
	itself := func(room budget.Region) budget.Region { return room }
	fill(itself)
	flat("Rewind", b.Region("systems").Rewind(background), 0)
	_, err := load(b, "systems", func(s scope.Scope) error {
		fill(func(room budget.Region) budget.Region { return room.In(s) })
		return errLoader
	})
	flat("Load", err, 1)
	fill(itself)
	mustLoad(t, b, "systems", nil)
	errs := b.Report().Errors
	require.Len(t, errs, 1)
	assert.Equal(t, slots-1, strings.Count(errs[0], "\n"))
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
