package budget_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// reportPlan is a plan with everything in it.
func reportPlan() budget.Plan {
	plan := small()
	plan.Regions = []budget.RegionPlan{{Name: "systems", Size: 256 * budget.KiB}, {Name: "match", Size: 64 * budget.KiB, Slots: 3},
		{Name: "level", Size: 256 * budget.KiB}}
	return plan
}

// requirePublished says that what is published is what is.
func requirePublished(t *testing.T, b *budget.Budget, when ...any) {
	t.Helper()
	snapshot := b.Snapshot()
	snapshot.GoHeap = budget.GoHeap{}
	require.Equal(t, quiet(b), snapshot, when...)
}

func TestSnapshotIsPublishedByWhatEnds(t *testing.T) {
	b := open(t, reportPlan())
	requirePublished(t, b)
	assert.Len(t, b.Snapshot().Regions, 5)
	assert.Len(t, b.Snapshot().Beside, 6)
	mustLoad(t, b, "systems", func(s scope.Scope) {
		s.Bytes(1000)
		assert.Zero(t, b.Snapshot().Regions[0].Used, "as of before the load")
		assert.NotZero(t, b.Report().Regions[0].Used)
		mustLoadRegion(t, b.Region("level").In(s), func(s scope.Scope) {
			require.NoError(t, s.Do("x", func(s scope.Scope) error { s.Bytes(5); return nil }))
		})
		assert.NotZero(t, b.Snapshot().Regions[4].Used, "that load is over")
		assert.Zero(t, b.Snapshot().Regions[0].Used)
	})
	requirePublished(t, b)
	_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(5000); return errLoader })
	require.ErrorIs(t, err, errLoader)
	requirePublished(t, b)

	slot, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) { newMark(s, 1, doFail); return frogs.New(s), nil })
	require.NoError(t, err)
	requirePublished(t, b)
	require.ErrorIs(t, slot.Release(background), errMark)
	requirePublished(t, b)
	require.NoError(t, b.Region("systems").Rewind(background))
	requirePublished(t, b)

	plan := b.Plan()
	plan.Regions[0].Size, plan.Regions[2].Size = 64*budget.KiB, 448*budget.KiB
	require.NoError(t, b.Reconfigure(background, plan))
	requirePublished(t, b)
	assert.Equal(t, plan, b.Snapshot().Plan)
	require.NoError(t, b.Close())
	requirePublished(t, b)
	assert.Equal(t, b.Report(), b.Snapshot(), "the last figures, of the Go heap too")
}

// TestNextFramePublishesAll: whatever was done in a frame, in whatever order, a Snapshot is as the Report of that moment.
func TestNextFramePublishesAll(t *testing.T) {
	works := map[string]func(s scope.Scope){
		"nothing": func(scope.Scope) {},
		"bytes":   func(s scope.Scope) { s.Bytes(1000) },
		"more":    func(s scope.Scope) { s.Bytes(3000) },
		"scope":   func(s scope.Scope) { x := s.Open("x"); x.Bytes(5000); _ = x.Close() },
		"full":    func(s scope.Scope) { frogs.TrySlice(s, 1<<20) },
		"mark":    func(s scope.Scope) { newMark(s, 1, 0) },
		"failing": func(s scope.Scope) { newMark(s, 1, doFail) },
		"pool":    func(s scope.Scope) { frogs.Pool(s, 9).Get() },
		"temp":    func(s scope.Scope) { s.Temp(4000) },
		"label":   func(s scope.Scope) { _ = scope.Label(s, "sound", func() error { s.Bytes(8); return nil }) },
		"owned":   func(s scope.Scope) { s.Defer(func() {}).Cancel() },
		"leak":    func(s scope.Scope) { s.Open("left open") },
		"unwound": func(s scope.Scope) { _, _ = marks.Make(s, func(*mark) error { frogs.Pool(s, 99); return errMark }) },
		"misuse":  func(s scope.Scope) { x := s.Open("x"); frogs.TryNew(s); _ = x.Close() },
	}
	for first, one := range works {
		for second, other := range works {
			b := open(t, small())
			for i := range 12 {
				switch i {
				case 3, 6:
					one(b.Frame())
				case 4, 7, 8:
					other(b.Frame())
				}
				_ = b.NextFrame()
				requirePublished(t, b, "%s, then %s: frame %d", first, second, i)
			}
		}
	}
}

func TestSnapshotOfFrameAndScratch(t *testing.T) {
	b := open(t, small())
	fixed, lender := b.Scratch(0, 0), b
	frogs.New(b.Frame())
	assert.Zero(t, b.Snapshot().Beside[0].Used)
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.NotZero(t, b.Snapshot().Beside[0].Used, "the frame that ended")

	s := fixed.Open("a")
	frogs.New(s)
	require.NoError(t, b.NextFrame())
	assert.EqualValues(t, 24, b.Snapshot().Beside[2].Used, "left open")
	assert.Equal(t, 1, b.Snapshot().Leaks.Scopes)
	frogs.New(s)
	require.NoError(t, b.NextFrame())
	assert.EqualValues(t, 48, b.Snapshot().Beside[2].Used, "and still open")
	require.NoError(t, s.Close())
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.Zero(t, b.Snapshot().Beside[2].Used)
	assert.EqualValues(t, 48, b.Snapshot().Beside[2].Peak)

	lent, err := lender.Lease(background)
	require.NoError(t, err)
	require.NoError(t, lent.Scratch(1).Do("x", func(s scope.Scope) error { frogs.New(s); return nil }))
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.Zero(t, b.Snapshot().Beside[5].Peak, "it is its borrower's")
	require.NoError(t, lent.Release())
	requirePublished(t, b)
	assert.EqualValues(t, 24, b.Snapshot().Beside[5].Peak)
	lent, err = lender.Lease(background)
	require.NoError(t, err)
	newMark(lent.Scratch(1).Open("left"), 3, doFail)
	require.ErrorIs(t, lent.Release(), errMark)
	requirePublished(t, b)
	assert.EqualValues(t, 1, b.Snapshot().Beside[5].Finalizers)
	assert.Equal(t, 1, b.Snapshot().Leaks.Finalizers)

	_, err = lender.Lease(background)
	require.NoError(t, err)
	_ = b.Close()
	assert.Equal(t, b.Report(), b.Snapshot())
}

// TestReportsShareNothing: who gets one may write to it.
func TestReportsShareNothing(t *testing.T) {
	plan := small()
	plan.Pages.Lock = budget.Wished
	b := open(t, plan)
	mustLoad(t, b, "level", func(s scope.Scope) {
		newMark(s, 1, doFail)
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
	})
	mustLoad(t, b, "level", nil)
	spoil := func(r budget.Report) {
		r.Regions[2].Scopes[0].Name, r.Regions[2].Labels[0].Peak = "spoiled", 1
		r.Regions[0].Name, r.Beside[0].Name, r.Plan.Regions[0].Name, r.Errors[0] = "spoiled", "spoiled", "spoiled", "spoiled"
		for i := range r.NotGranted {
			r.NotGranted[i] = "spoiled"
		}
	}
	for range 2 { // before and after Close
		for _, read := range []func() budget.Report{b.Report, b.Snapshot} {
			spoil(read())
			assert.NotContains(t, read().String(), "spoiled")
			assert.NotContains(t, read().Errors, "spoiled")
			assert.NotContains(t, read().NotGranted, "spoiled")
			assert.Equal(t, "init", read().Plan.Regions[0].Name)
		}
		r := b.Region("level").Report()
		r.Scopes[0].Name = "spoiled"
		assert.Equal(t, "level", b.Region("level").Report().Scopes[0].Name)
		_ = b.Close() // the second is refused
	}
}

func TestPublishingAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate for themselves")
	}
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) {
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
	})
	scratch := b.Scratch(0, 0)
	label := func() error { return nil }
	for what, fn := range map[string]func(){
		"NextFrame, labels and scopes": func() {
			f := b.Frame()
			_ = scope.Label(f, "a", label)
			x := f.Open("x")
			y := x.Open("y")
			frogs.New(y)
			_, _ = y.Close(), x.Close()
			s := scratch.Open("s")
			_ = scope.Label(s, "b", label)
			_ = s.Close()
			_ = b.NextFrame()
		},
		"Release": func() {
			lent, _ := b.Lease(background)
			_ = lent.Scratch(0).Do("x", func(s scope.Scope) error { return nil })
			_ = lent.Release()
		},
		"regions": func() { b.PublishRegions() },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, fn), what)
	}
}

// TestSnapshotsBesideEverything reads on two goroutines while a program plays. Under the race detector it says that no
// arena is read.
func TestSnapshotsBesideEverything(t *testing.T) {
	for range 3 {
		b := open(t, reportPlan())
		b.Scratch(0, 0)
		var wait, borrower sync.WaitGroup
		var over atomic.Bool
		for range 2 {
			wait.Go(func() {
				for !over.Load() {
					r := b.Snapshot()
					for _, x := range append(r.Regions, r.Beside...) {
						if x.Used+x.Free != x.Size || x.Peak < x.Used || len(x.Scopes) > 0 && x.Scopes[0].Name == "" {
							t.Error("torn", x)
						}
					}
					_ = r.String()
				}
			})
		}
		borrower.Go(func() {
			for range 300 {
				lent, err := b.Lease(background)
				assert.NoError(t, err)
				assert.NoError(t, lent.Scratch(0).Do("x", func(s scope.Scope) error { frogs.New(s); return nil }))
				assert.NoError(t, lent.Release())
			}
		})
		playBeside(t, b)
		borrower.Wait()
		_ = b.Close() // beside those who read
		over.Store(true)
		wait.Wait()
	}
}

func playBeside(t *testing.T, b *budget.Budget) {
	for i := range 60 {
		for range 3 {
			frogs.TryNew(b.Frame())
			s := b.Scratch(0, 0).Open("x")
			frogs.New(s)
			require.NoError(t, s.Close())
			require.NoError(t, b.NextFrame())
		}
		mustLoad(t, b, "level", func(s scope.Scope) {
			s.Temp(10)
			require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
		})
		_ = b.Report() // beside the goroutine that borrows
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) { newMark(s, 1, doFail); return frogs.New(s), nil })
		require.NoError(t, err)
		_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
		require.NoError(t, err)
		require.NoError(t, slot.Release(context.Background()))
		if i%10 == 0 {
			require.NoError(t, b.Region("systems").Rewind(background))
			plan := b.Plan()
			plan.Regions[0].Size, plan.Regions[2].Size = plan.Regions[2].Size-64*budget.KiB, plan.Regions[0].Size+64*budget.KiB
			require.NoError(t, b.Reconfigure(background, plan))
		}
	}
}
