package scope_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// What the model test found, each as small as it gets.

// exits runs fn, which a finalizer ends by Goexit.
func exits(t *testing.T, fn func()) {
	t.Helper()
	require.True(t, modelAttempt(func() error { fn(); return nil }).exited)
}

func TestGoexitAfterAPanicInAFinalizer(t *testing.T) {
	pad := open(t).Pad(0, 0)
	exits(t, func() {
		s := pad.Open("a")
		newMark(s, 1, 0)
		s.Defer(func() { closed = append(closed, 2); runtime.Goexit() })
		newMark(s, 3, doPanic)
		_ = s.Close()
	})
	assert.Equal(t, []int64{3, 2, 1}, closed)
	assert.Zero(t, pad.Depth(), "the rewind happened too")
}

// TestPartsOfAConstructorThatFailsMayNotUseItsScope: while their finalizers run, the scope refuses, as a closing one.
func TestPartsOfAConstructorThatFailsMayNotUseItsScope(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	newMark(s, 1, 0)
	var met []error
	_, err := marks.Make(s, func(*mark) error {
		s.Defer(func() { met = append(met, s.Close()) })
		s.Defer(func() { pad.Open("b") })
		s.Defer(func() { points.New(s) })
		return errMark
	})
	assert.ErrorIs(t, err, errMark)
	assert.ErrorContains(t, err, `Open in scope "a" of pad 0.0 while its finalizers run`)
	assert.ErrorContains(t, err, `allocation in scope "a" of pad 0.0 while its finalizers run`)
	require.Len(t, met, 1)
	assert.EqualError(t, met[0], `scope: BUG: Close of scope "a" of pad 0.0 while its finalizers run`)
	assert.Equal(t, 1, pad.Depth())
	points.New(s) // it allocates again
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1}, closed)
}

// TestGoexitWhileAConstructorIsUndone: a finalizer of its parts, or of a scope that it left open, ends the goroutine.
func TestGoexitWhileAConstructorIsUndone(t *testing.T) {
	for _, inner := range []bool{false, true} {
		pad := open(t).Pad(0, 0)
		s := pad.Open("a")
		newMark(s, 1, 0)
		before := pad.Stats()
		exits(t, func() {
			_, _ = marks.Make(s, func(*mark) error {
				newMark(s, 2, 0)
				part := s
				if inner {
					part = s.Open("left open")
				}
				part.Defer(func() { closed = append(closed, 3); runtime.Goexit() })
				newMark(part, 4, 0)
				return errMark
			})
		})
		assert.Equal(t, []int64{4, 3, 2}, closed)
		after := pad.Stats()
		assert.Equal(t, before.Used, after.Used)
		assert.Equal(t, before.Objects, after.Objects)
		points.New(s)
		require.NoError(t, s.Close())
		assert.Equal(t, []int64{4, 3, 2, 1}, closed)
	}
}

func TestOwnOnFullTemporariesIsToldOnce(t *testing.T) {
	pad := open(t).Pad(0, 0)
	outer := pad.Open("outer")
	temp := outer.Temp()
	temp.Alloc(temp.Free(), 1)
	err := outer.Do("inner", func(s scope.Scope) error {
		s.Alloc(s.Free(), 1)
		temp.Own(&closer{})
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.NoError(t, outer.Close(), "the Do told it")
}

// padOf gives a pad of so many bytes.
func padOf(t *testing.T, size uint64) scope.Pad {
	t.Helper()
	return budgettest.Open(t, budget.Plan{Name: "tight", Regions: []budget.Region{{Name: "level", Size: 1}},
		Pads: budget.Pads{Workers: 1, Size: size}}).Pad(0, 0)
}

// TestTemporariesWithoutAPieceAreFull: a full is no misuse.
func TestTemporariesWithoutAPieceAreFull(t *testing.T) {
	pad := padOf(t, 64)
	err := pad.Do("a", func(s scope.Scope) error { s.Temp().Alloc(100, 1); return nil })
	assert.EqualError(t, err, `budget "tight": pad 0.0 is full: scope "temp" asked for 100 bytes, 64 of 64 are free; `+
		`raise pads.size in the plan to 100 or more`)
	err = pad.Do("a", func(s scope.Scope) error { points.Slice(s.Temp(), 9); return nil })
	assert.ErrorIs(t, err, scope.ErrFull)
}

// TestFullOfTemporariesThatClosed: who recovers it after their scope closed still reads what was full.
func TestFullOfTemporariesThatClosed(t *testing.T) {
	pad := open(t).Pad(0, 0)
	var err error
	func() {
		defer func() { err, _ = recover().(error) }()
		s := pad.Open("s")
		defer s.Close()
		s.Temp().Alloc(1<<30, 8)
	}()
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, `scope "temp" asked for 1073741824 bytes, 49152 of 65536 are free`)

	err = pad.Do("a", func(s scope.Scope) error {
		_, err := marks.Make(s, func(*mark) error {
			s.Open("left open").Temp().Alloc(1<<30, 8)
			return nil
		})
		return err
	})
	assert.ErrorIs(t, err, scope.ErrFull)
}

// TestObjectsThatTakeANewPieceAreNoFull: what found room in the end leaves nothing to remember.
func TestObjectsThatTakeANewPieceAreNoFull(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	temp := s.Temp()
	temp.Alloc(temp.Free(), 1)
	require.NotNil(t, marks.TryNew(temp))
	temp.Alloc(temp.Free(), 1)
	marks.New(temp)
	assert.NoError(t, temp.Err())
	assert.NoError(t, s.Close())
}
