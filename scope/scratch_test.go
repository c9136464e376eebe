package scope_test

import (
	"errors"
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
	assert.PanicsWithError(t, "scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a scope that it should avoid",
		func() { scratches.Pick(c, a) })
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
