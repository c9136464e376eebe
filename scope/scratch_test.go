package scope_test

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"unsafe"

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
	assert.PanicsWithError(t, "scope: BUG: scratch 2 of the 2 that a worker has", func() { scratches.Scratch(2) })
}

func TestWith(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	for i := range 1000 {
		s.Bytes(1)[0] = byte(i)
	}
	require.NoError(t, s.Close())
	s = scratch.Open("s")
	before := scratch.Stats().Used
	var place *byte
	for range 2 {
		require.NoError(t, scratch.With(1000, func(b []byte) {
			assert.Len(t, b, 1000)
			assert.Equal(t, 1000, cap(b))
			assert.Equal(t, make([]byte, 1000), b)
			assert.GreaterOrEqual(t, scratch.Stats().Used, before+1000)
			for i := range b {
				b[i] = 7
			}
			if place != nil {
				assert.Equal(t, accounted(s, unsafe.Pointer(place)), accounted(s, unsafe.Pointer(&b[0])), "the same bytes again")
			}
			place = &b[0]
			assert.Equal(t, 2, scratch.Depth())
		}))
		assert.Equal(t, before, scratch.Stats().Used)
		assert.Equal(t, 1, scratch.Depth())
	}
	called := 0
	require.NoError(t, scratch.With(0, func(b []byte) { called++; assert.NotNil(t, b); assert.Empty(t, b) }))
	assert.PanicsWithError(t, "scope: BUG: With -1 bytes", func() { _ = scratch.With(-1, func([]byte) { called++ }) })
	assert.Equal(t, 1, called)
	points.New(s)
}

func TestWithThatDoesNotFit(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	never := func([]byte) { assert.Fail(t, "it doesn't fit") }
	assert.EqualError(t, scratch.With(100_000, never),
		`budget "test": scratch 0.0 is full: scope "With" asked for 100000 bytes, 65536 of 65536 are free; `+
			`raise scratch.size in the plan to 100000 or more`)
	assert.ErrorIs(t, scratch.With(math.MaxInt/2+1, never), scope.ErrFull)
	var all []scope.Scope
	for range 8 {
		all = append(all, scratch.Open("s"))
	}
	assert.EqualError(t, scratch.With(1, never), `budget "test": scratch 0.0 is full: scope "With" asked for one more of 8 scopes; `+
		`raise limits.scopes in the plan to 9 or more`)
	for i := range all {
		require.NoError(t, all[7-i].Close(), "nothing is remembered: it was told")
	}
	require.NoError(t, scratch.With(scratchSize, func(b []byte) { assert.Len(t, b, scratchSize) }))
}

func TestWithEndsHoweverItsFunctionEnds(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("s")
	leave := func(b []byte) { newMark(scratch.Open("left"), 1, doFail) }
	err := scratch.With(10, leave)
	assert.ErrorContains(t, err, `scope: BUG: scope "left" of scratch 0.0 was left open: close it where it is opened`)
	assert.ErrorIs(t, err, errMark)
	assert.Equal(t, []int64{1}, closed)

	assert.PanicsWithValue(t, "it", func() { _ = scratch.With(10, func(b []byte) { leave(b); panic("it") }) })
	assert.Equal(t, []int64{1, 1}, closed)
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = scratch.With(10, func(b []byte) { leave(b); runtime.Goexit() })
		done <- true
	}()
	assert.False(t, <-done, "Goexit goes on")
	assert.Equal(t, []int64{1, 1, 1}, closed)
	assert.Equal(t, 1, scratch.Depth())
	points.New(s)

	covered := `scope: BUG: allocation in scope "do" of scratch 0.0 while scope "With", opened in it, is open`
	assert.PanicsWithError(t, covered, func() {
		_ = scratch.Do("do", func(outer scope.Scope) error { return scratch.With(10, func([]byte) { points.New(outer) }) })
	})
	assert.Equal(t, 1, scratch.Depth())
	assert.ErrorIs(t, scratch.Do("do", func(scope.Scope) error {
		return scratch.With(10, func([]byte) { points.Slice(scratch.Open("inside"), 1<<20) }) // unwinds to Do
	}), scope.ErrFull)
	assert.Equal(t, 1, scratch.Depth())
}

func TestWithNestsAndRemembers(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.With(10, func(a []byte) {
		a[0] = 1
		require.NoError(t, scratch.With(10, func(b []byte) {
			assert.Zero(t, b[0])
			b[0] = 2
		}))
		assert.EqualValues(t, 1, a[0])
		s := scratch.Open("s")
		points.TrySlice(s, 1<<20)
		assert.ErrorIs(t, s.Close(), scope.ErrFull)
		points.TrySlice(scratch.Open("left"), 1<<20)
	})
	assert.ErrorContains(t, err, "was left open")
	assert.ErrorIs(t, err, scope.ErrFull, "what it met is told")
	assert.Zero(t, scratch.Depth())
}

func TestWithWhoseBudgetIsClosedMeanwhile(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	var newer scope.Scope
	require.NoError(t, scratch.With(10, func([]byte) {
		assert.ErrorContains(t, b.Close(), `scope "With"`)
		newer = open(t).Scratch(0, 0).Open("a newer budget's, in the same place")
	}))
	points.New(newer)
	require.NoError(t, newer.Close())
	assert.PanicsWithError(t, "scope: BUG: With of scratch 0.0, whose budget is closed", func() { _ = scratch.With(10, nil) })
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
		"With of":  func() { _ = scratch.With(1, nil) },
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
		_ = scratches.Scratch(1).With(100, func(b []byte) { sum += len(b) })
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
