package budget_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestErrorsOfOldContentsGoToReportAndHookOnly(t *testing.T) {
	var told []error
	plan := small()
	plan.OnError = func(err error) { told = append(told, err) }
	b := open(t, plan)
	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s, 1, doFail) })
	mustLoad(t, b, "level", func(s scope.Scope) {
		newMark(s, 2, doPanic)
		newMark(s, 3, 0)
		newMark(s, 4, doFail)
	})
	mustLoad(t, b, "systems", nil)
	assert.Equal(t, []int64{4, 3, 2, 1}, ran)
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], errMark)
	text := "region level, scope \"level\": finalizer of budget_test.mark: mark failed\n" +
		"region level, scope \"level\": finalizer of budget_test.mark panicked: mark panics\n" +
		"region systems, scope \"systems\": finalizer of budget_test.mark: mark failed"
	assert.EqualError(t, told[0], text)
	r := b.Report()
	assert.Equal(t, []string{text}, r.Errors)
	assert.Equal(t, 1, r.ErrorCount)
	assert.Equal(t, budget.Leaks{Finalizers: 3}, r.Leaks)

	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s.Temp(100), 5, doFail) })
	assert.Len(t, told, 2, "temporaries are no reason to fail")

	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s, 7, doFail) })
	err := b.Region("init").Rewind(background)
	assert.ErrorIs(t, err, errMark, "Rewind returns them")
	assert.Len(t, told, 2)
	assert.Equal(t, 2, b.Report().ErrorCount)
}

func TestFailingLoadStillTellsOfOldContents(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 1, doFail) })
	_, err := load(b, "level", func(scope.Scope) error { return errLoader })
	assert.EqualError(t, err, errLoader.Error())
	assert.Equal(t, 1, b.Report().ErrorCount)
}

// TestLoadThatDoesntReturnTellsOfFinalizers: who gets a panic, or nothing, doesn't get Load's error.
func TestLoadThatDoesntReturnTellsOfFinalizers(t *testing.T) {
	const text = `region level, scope "level": finalizer of budget_test.mark: mark failed`
	b := open(t, small())
	assert.PanicsWithValue(t, "loader", func() {
		_, _ = load(b, "level", func(s scope.Scope) error {
			newMark(s, 1, doFail)
			panic("loader")
		})
	})
	assert.Equal(t, []string{text}, b.Report().Errors)
	done := make(chan bool)
	go func() {
		defer close(done)
		_, _ = load(b, "level", func(s scope.Scope) error {
			newMark(s, 2, doFail)
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	assert.Equal(t, []string{text, text}, b.Report().Errors)
	_, err := load(b, "level", func(s scope.Scope) error {
		newMark(s, 3, doFail)
		return errLoader
	})
	assert.ErrorIs(t, err, errMark, "a load that returns tells its caller")
	assert.Len(t, b.Report().Errors, 2)
}

func TestReportKeepsTheLast16Errors(t *testing.T) {
	b := open(t, small())
	for i := range 20 {
		mustLoad(t, b, "level", func(s scope.Scope) { s.Defer(func() { panic(i) }) })
	}
	r := b.Report()
	assert.Equal(t, 19, r.ErrorCount)
	require.Len(t, r.Errors, 16)
	for i, text := range r.Errors {
		assert.Equal(t, fmt.Sprintf(`region level, scope "level": a deferred function panicked: %d`, i+3), unsited(errors.New(text)))
	}
}

func TestOnErrorMayPanic(t *testing.T) {
	plan := small()
	plan.OnError = func(error) { panic("hook") }
	b := open(t, plan)
	bad := func(s scope.Scope) error { newMark(s, 1, doFail); return nil }
	_, err := load(b, "level", bad)
	require.NoError(t, err)
	assert.Equal(t, "hook", attempt(func() error { _, err := load(b, "level", bad); return err }).panicked)
	requireEmpty(t, b, "level")
	for what, fn := range map[string]func(scope.Scope) error{
		"temporaries": func(s scope.Scope) error { newMark(s, 2, 0); return bad(s.Temp(100)) },
	} {
		ran = nil
		o := attempt(func() error { _, err := load(b, "level", fn); return err })
		assert.Equal(t, "hook", o.panicked, what)
		requireEmpty(t, b, "level")
		assert.Equal(t, []int64{1, 2}, ran, "%s: the panic unwinds the load", what)
		_, err := load(b, "level", nil)
		require.NoError(t, err, "and the next one works")
	}
}

func TestGoexitInFinalizers(t *testing.T) {
	plan := small()
	exit := func(s scope.Scope, id int64) {
		newMark(s, id, 0)
		s.Defer(func() { runtime.Goexit() })
	}
	t.Run("of a load that fails", func(t *testing.T) {
		b := open(t, plan)
		o := attempt(func() error {
			_, err := load(b, "systems", func(s scope.Scope) error {
				exit(s, 1)
				exit(s.Open("inner"), 2)
				mustLoadRegion(t, b.Region("level").In(s), func(s scope.Scope) { exit(s, 3) })
				return errLoader
			})
			return err
		})
		assert.True(t, o.exited)
		assert.Equal(t, []int64{3, 2, 1}, ran)
		requireEmpty(t, b, "level")
		requireEmpty(t, b, "systems")
		mustLoad(t, b, "init", nil)
	})
	t.Run("of temporaries", func(t *testing.T) {
		b := open(t, plan)
		o := attempt(func() error {
			_, err := load(b, "level", func(s scope.Scope) error { newMark(s, 1, 0); exit(s.Temp(200), 2); return nil })
			return err
		})
		assert.True(t, o.exited)
		assert.Equal(t, []int64{2, 1}, ran, "no verdict, so nothing is loaded")
		requireEmpty(t, b, "level")
	})
	t.Run("at Close", func(t *testing.T) {
		b := open(t, plan)
		mustLoad(t, b, "init", func(s scope.Scope) { exit(s, 1) })
		mustLoad(t, b, "level", func(s scope.Scope) { exit(s, 2) })
		exit(b.Frame(), 3)
		newMark(b.Scratch(1, 1).Open("scratch"), 4, 0)
		assert.True(t, attempt(b.Close).exited)
		assert.Equal(t, []int64{2, 1, 3, 4}, ran)
		assert.ErrorIs(t, b.Close(), budget.ErrClosed)
	})
	t.Run("of the frame", func(t *testing.T) {
		b := open(t, plan)
		exit(b.Frame(), 1)
		require.NoError(t, b.NextFrame())
		assert.True(t, attempt(b.NextFrame).exited)
		assert.Equal(t, []int64{1}, ran)
		frogs.New(b.Frame())
		require.NoError(t, b.NextFrame())
		require.NoError(t, b.NextFrame())
	})
}

func TestMisuseInALoadIsLoud(t *testing.T) {
	b := open(t, small())
	for what, misuse := range map[string]func(s scope.Scope){
		`allocation in scope "level" of region level while scope "x", opened in it, is open`: func(s scope.Scope) {
			s.Open("x")
			frogs.New(s)
		},
		`allocation in a scope of region level that is closed`: func(s scope.Scope) {
			x := s.Open("x")
			frogs.TrySlice(x, 1<<20)
			_ = x.Close()
			frogs.New(x)
		},
		`a Maker that was never declared`: func(s scope.Scope) { scope.Maker[frog]{}.New(s) },
	} {
		o := attempt(func() error {
			_, err := load(b, "level", func(s scope.Scope) error { misuse(s); return nil })
			return err
		})
		assert.NoError(t, o.err, "a bug is no answer")
		if assert.NotNil(t, o.panicked, what) {
			assert.ErrorContains(t, o.panicked.(error), "scope: BUG: "+what)
		}
		requireEmpty(t, b, "level")
	}
}

func TestTemporariesThatAreGoneOrGoing(t *testing.T) {
	b := open(t, small())
	var temp scope.Scope
	uses := map[string]func(s scope.Scope){
		"allocation": func(s scope.Scope) { frogs.Slice(s, 1) },
		"Defer":      func(s scope.Scope) { s.Defer(func() {}) },
		"Pool":       func(s scope.Scope) { frogs.Pool(s, 1) },
		"Make":       func(s scope.Scope) { _, _ = marks.Make(s, func(*mark) error { return nil }) },
	}
	for what, use := range uses {
		mustLoad(t, b, "level", func(s scope.Scope) {
			temp = s.Temp(1000)
			temp.Defer(func() { use(temp) })
			temp.Defer(func() { use(s.Temp(100)) })
		})
		r := b.Report()
		for _, text := range r.Errors[len(r.Errors)-1:] {
			assert.Regexp(t, `(?s)Temp of scope "level" of region level, which is frozen since its load returned.*`+
				what+`.* scope "temp" of region level while its finalizers run`, text)
		}
		text := panics(t, func() { use(temp) })
		assert.Contains(t, text, "a scope of region level that is closed", "closed is not full")
	}
	requireWalk(t, b)
}
