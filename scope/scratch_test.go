package scope_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

func TestPickLeavesTheCallersScratchAlone(t *testing.T) {
	b := open(t)
	scratches := b.Scratches(0)
	first, second := scratches.Scratch(0), scratches.Scratch(1)
	assert.Equal(t, b.Scratch(0, 0), first)
	assert.Equal(t, b.Scratch(0, 1), second)
	assert.Equal(t, first, scratches.Pick())
	a := first.Open("a")
	inA := a.Open("in a")
	other := b.Scratch(1, 0).Open("another worker's")
	assert.Equal(t, second, scratches.Pick(a))
	assert.Equal(t, second, scratches.Pick(inA))
	assert.Equal(t, second, scratches.Pick(inA.Temp(64)))
	assert.Equal(t, first, scratches.Pick(other), "of another arena")
	assert.Equal(t, second, scratches.Pick(other, a, inA, a))
	c := second.Open("c")
	assert.Equal(t, first, scratches.Pick(c))
	assert.Equal(t, first, scratches.Pick(other, c))
	assert.PanicsWithError(t, "scope: BUG: Pick: scratch 0.0 and scratch 0.1 both hold a scope that it should avoid; "+
		"a function can leave at most one alone", func() { scratches.Pick(c, a) })
	require.NoError(t, c.Close())
	for _, conflicts := range [][]scope.Scope{{c}, {a, c}} {
		err := panicsWith(func() { scratches.Pick(conflicts...) })
		assert.EqualError(t, err, "scope: BUG: Pick beside a scope of scratch 0.1 that is closed")
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
	for _, which := range []int{-1, 2} {
		assert.Panics(t, func() { scratches.Scratch(which) })
	}
}

func TestDoEndsHoweverItsFunctionEnds(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("s")
	leave := func(scope.Scope) error { newMark(scratch.Open("left"), 1, doFail); return nil }
	err := scratch.Do("do", leave)
	assert.ErrorContains(t, err, `scope: BUG: scope "left" of scratch 0.0 was left open: close it where it is opened`)
	assert.ErrorIs(t, err, errMark)
	assert.Equal(t, []int64{1}, closed)

	assert.PanicsWithValue(t, "it", func() { _ = scratch.Do("do", func(s scope.Scope) error { _ = leave(s); panic("it") }) })
	assert.Equal(t, []int64{1, 1}, closed)
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = scratch.Do("do", func(s scope.Scope) error { _ = leave(s); runtime.Goexit(); return nil })
		done <- true
	}()
	assert.False(t, <-done, "Goexit goes on")
	assert.Equal(t, []int64{1, 1, 1}, closed)
	assert.Equal(t, 1, scratch.Depth())
	points.New(s)
	err = scratch.Do("do", func(scope.Scope) error { points.TrySlice(scratch.Open("left"), 1<<20); return nil })
	assert.ErrorContains(t, err, "was left open")
	assert.ErrorIs(t, err, scope.ErrFull, "what it met is told")
	assert.Equal(t, 1, scratch.Depth())
}

func TestDoWhoseBudgetIsClosedMeanwhile(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	var newer scope.Scope
	require.NoError(t, scratch.Do("do", func(scope.Scope) error {
		assert.ErrorContains(t, b.Close(), `scope "do"`)
		newer = open(t).Scratch(0, 0).Open("a newer budget's, in the same place")
		return nil
	}))
	points.New(newer)
	require.NoError(t, newer.Close())
	assert.PanicsWithError(t, "scope: BUG: Do on scratch 0.0, whose budget is closed", func() { _ = scratch.Do("do", nil) })
}

func TestScratchThatWasGivenBackRefuses(t *testing.T) {
	b := open(t)
	lent, err := b.Lease(t.Context())
	require.NoError(t, err)
	scratch := lent.Scratch(1)
	s := scratch.Open("s")
	require.NoError(t, s.Close())
	require.NoError(t, lent.Release())
	for what, fn := range map[string]func(){
		"Open on":  func() { scratch.Open("x") },
		"Do on":    func() { _ = scratch.Do("x", nil) },
		"Depth of": func() { scratch.Depth() },
		"Stats of": func() { scratch.Stats() },
	} {
		err := panicsWith(fn)
		assert.EqualError(t, err, "scope: BUG: "+what+" scratch 1.1, which was given back")
		assert.True(t, errors.Is(err, scope.ErrClosed))
	}
	assert.PanicsWithError(t, "scope: BUG: Pick of scratch 1.0, which was given back", func() { lent.Pick() })
	for range 2 { // both pairs
		again, err := b.Lease(t.Context())
		require.NoError(t, err)
		assert.Panics(t, func() { scratch.Open("x") }, "it is another's now")
		defer func() { assert.NoError(t, again.Release()) }()
	}
}

func TestScratchAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	scratches := open(t).Scratches(0)
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out := scratches.Pick().Open("out")
		scratch := scratches.Pick(out).Open("scratch")
		_ = scratches.Scratch(1).Do("do", func(s scope.Scope) error { sum += len(s.Bytes(100)); return nil })
		_ = errors.Join(scratch.Close(), out.Close())
	}))
}

// TestMisuseThatUnwindsWhatCoveredItsScope: the text is asked for when the scope is the topmost again.
func TestMisuseThatUnwindsWhatCoveredItsScope(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	err := panicsWith(func() {
		inner := s.Open("inner")
		defer inner.Close()
		points.New(s)
	})
	assert.EqualError(t, err, `scope: BUG: allocation in scope "s" of scratch 0.0 while scope "inner", opened in it, is open`)
	err = panicsWith(func() { scope.Maker[point]{}.New(s) })
	assert.EqualError(t, err, "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
	assert.ErrorContains(t, s.Close(), `while scope "inner", opened in it, is open`)
}
