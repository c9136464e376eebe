package budget_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestNestedLoad(t *testing.T) {
	b := open(t, small())
	var level budget.Loaded[frog]
	systems := mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 1, 0)
		level = mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 2, 0) })
		newMark(s, 3, 0)
	})
	assert.NotNil(t, systems.Get())
	assert.NotNil(t, level.Get(), "a level that fn loaded stays")
	require.NoError(t, b.Region("systems").Rewind(background))
	assert.Equal(t, []int64{2, 3, 1}, ran, "level, then systems")
	assert.Nil(t, systems.Get())
	assert.Nil(t, level.Get())
}

func TestNestedFailureIsTheInnerVerdictOnly(t *testing.T) {
	for name, f := range failures {
		if f.exited || f.panicked != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			systems := mustLoad(t, b, "systems", func(s scope.Scope) {
				newMark(s, 1, 0)
				_, err := load(b, "level", func(s scope.Scope) error {
					newMark(s, 2, 0)
					return f.end(b, s)
				})
				assert.ErrorContains(t, err, f.text)
				assert.Equal(t, []int64{2}, ran)
				requireEmpty(t, b, "level")
				newMark(s, 3, 0)
			})
			assert.NotNil(t, systems.Get())
			assert.Equal(t, []int64{2}, ran)
		})
	}
}

func TestOuterFailureRewindsWhatItLoadedAboveFirst(t *testing.T) {
	for name, end := range map[string]func(scope.Scope) error{
		"error":  func(scope.Scope) error { return errLoader },
		"full":   func(s scope.Scope) error { frogs.Slice(s, 1<<20); return nil },
		"panic":  func(scope.Scope) error { panic("boom") },
		"Goexit": func(scope.Scope) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			var level budget.Loaded[frog]
			attempt(func() error {
				_, err := load(b, "systems", func(s scope.Scope) error {
					newMark(s, 1, 0)
					level = mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 2, 0) })
					return end(s)
				})
				return err
			})
			assert.Equal(t, []int64{2, 1}, ran, "what level points to dies after it")
			assert.Nil(t, level.Get())
			requireEmpty(t, b, "systems")
			requireEmpty(t, b, "level")
		})
	}
}

func TestPanicAndGoexitUnwindBothLoads(t *testing.T) {
	for _, name := range []string{"panic", "Goexit"} {
		b := open(t, small())
		o := attempt(func() error {
			_, err := load(b, "systems", func(s scope.Scope) error {
				newMark(s, 1, 0)
				_, err := load(b, "level", func(s scope.Scope) error {
					newMark(s, 2, 0)
					return failures[name].end(b, s)
				})
				return err
			})
			return err
		})
		assert.Equal(t, failures[name].panicked, o.panicked)
		assert.Equal(t, failures[name].exited, o.exited)
		assert.Equal(t, []int64{2, 1}, ran)
		requireEmpty(t, b, "systems")
		requireEmpty(t, b, "level")
		mustLoad(t, b, "systems", nil)
	}
}

// refused are the ways to touch regions while one is being loaded.
func refused(b *budget.Budget, names ...string) (errs []error) {
	for _, name := range names {
		_, err := load(b, name, func(scope.Scope) error { panic("it should be refused") })
		errs = append(errs, err, b.Region(name).Rewind(background))
	}
	return append(errs, b.Close())
}

func TestSameLowerAndOtherGoroutinesAreRefused(t *testing.T) {
	b := open(t, small())
	first := mustLoad(t, b, "init", func(s scope.Scope) { newMark(s, 1, 0) })
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 2, 0)
		above := mustLoad(t, b, "level", nil)
		before := quiet(b)
		for _, err := range refused(b, "init", "systems") {
			assert.ErrorIs(t, err, budget.ErrLoading)
			assert.ErrorContains(t, err, "inside a Load of region systems")
		}
		var errs []error
		attempt(func() error { errs = refused(b, "init", "systems", "level"); return nil })
		assert.Len(t, errs, 7)
		for _, err := range errs {
			assert.ErrorIs(t, err, budget.ErrLoading)
			assert.ErrorContains(t, err, "during a Load of region systems on another goroutine")
		}
		assert.Equal(t, before, quiet(b), "nothing changed")
		assert.Empty(t, ran)
		assert.NotNil(t, above.Get())
		require.NoError(t, b.Region("level").Rewind(background), "above may be rewound")
		assert.Nil(t, above.Get())
	})
	assert.NotNil(t, first.Get())
	o := attempt(func() error { _, err := load(b, "systems", nil); return err })
	assert.Equal(t, outcome{}, o, "another goroutine may, when nothing loads")
	assert.Equal(t, []int64{2}, ran)
}

func TestFinalizersMayNotLoad(t *testing.T) {
	b := open(t, small())
	var errs []error
	tryAll := func() {
		errs = append(errs, refused(b, "init", "systems", "level")...)
		before := quiet(b)
		assert.Equal(t, before, quiet(b), "a report may be asked for")
		assert.EqualValues(t, before.Regions[1], regionReport(b, "systems"))
	}
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll) })
	require.NoError(t, b.Region("systems").Rewind(background))
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Temp().Defer(tryAll) })
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll) })
	_, err := load(b, "systems", func(s scope.Scope) error { s.Defer(tryAll); return errLoader })
	require.EqualError(t, err, errLoader.Error())
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(tryAll) })
	require.NoError(t, b.Close())
	assert.Len(t, errs, 5*7)
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

func TestZeroLoaded(t *testing.T) {
	assert.Nil(t, budget.Loaded[frog]{}.Get())
	b := open(t, small())
	l, err := budget.Load(background, b.Region("init"), func(scope.Scope) (*frog, error) { return nil, nil })
	assert.NoError(t, err, "a load without a value")
	assert.Nil(t, l.Get())
}
