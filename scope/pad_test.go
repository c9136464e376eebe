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

func TestPickLeavesTheCallersPadAlone(t *testing.T) {
	b := open(t)
	pads := b.Pads.Of(0)
	first, second := pads.Pad(0), pads.Pad(1)
	assert.Equal(t, b.Pad(0, 0), first)
	assert.Equal(t, b.Pad(0, 1), second)
	assert.Equal(t, first, pads.Pick())
	a := first.Open("a")
	inA := a.Open("in a")
	other := b.Pad(1, 0).Open("another worker's")
	assert.Equal(t, second, pads.Pick(a))
	assert.Equal(t, second, pads.Pick(inA))
	assert.Equal(t, second, pads.Pick(inA.Temp(64)))
	assert.Equal(t, first, pads.Pick(other), "of another arena")
	assert.Equal(t, second, pads.Pick(other, a, inA, a))
	c := second.Open("c")
	assert.Equal(t, first, pads.Pick(c))
	assert.Equal(t, first, pads.Pick(other, c))
	assert.PanicsWithError(t, "scope: BUG: Pick: pad 0.0 and pad 0.1 both hold a scope that it should avoid; "+
		"a function can leave at most one pad alone", func() { pads.Pick(c, a) })
	require.NoError(t, c.Close())
	for _, conflicts := range [][]scope.Scope{{c}, {a, c}} {
		err := panicsWith(func() { pads.Pick(conflicts...) })
		assert.EqualError(t, err, "scope: BUG: Pick beside a scope of pad 0.1 that is closed")
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
	for _, which := range []int{-1, 2} {
		assert.Panics(t, func() { pads.Pad(which) })
	}
	assert.PanicsWithError(t, "scope: BUG: pad 2 of a pair", func() { pads.Pad(2) })
}

func TestWith(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("s")
	for i := range 1000 {
		s.Bytes(1)[0] = byte(i)
	}
	require.NoError(t, s.Close())
	s = pad.Open("s")
	before := pad.Stats().Used
	var place *byte
	for range 2 {
		require.NoError(t, pad.With(1000, func(b []byte) {
			assert.Len(t, b, 1000)
			assert.Equal(t, 1000, cap(b))
			assert.Equal(t, make([]byte, 1000), b)
			assert.GreaterOrEqual(t, pad.Stats().Used, before+1000)
			for i := range b {
				b[i] = 7
			}
			if place != nil {
				assert.Equal(t, accounted(s, unsafe.Pointer(place)), accounted(s, unsafe.Pointer(&b[0])), "the same bytes again")
			}
			place = &b[0]
			assert.Equal(t, 2, pad.Depth())
		}))
		assert.Equal(t, before, pad.Stats().Used)
		assert.Equal(t, 1, pad.Depth())
	}
	called := 0
	require.NoError(t, pad.With(0, func(b []byte) { called++; assert.NotNil(t, b); assert.Empty(t, b) }))
	assert.PanicsWithError(t, "scope: BUG: With -1 bytes", func() { _ = pad.With(-1, func([]byte) { called++ }) })
	assert.Equal(t, 1, called)
	points.New(s)
}

func TestWithThatDoesNotFit(t *testing.T) {
	pad := open(t).Pad(0, 0)
	never := func([]byte) { assert.Fail(t, "it doesn't fit") }
	assert.EqualError(t, pad.With(100_000, never), `budget "test": pad 0.0 is full: scope "With" asked for 100000 bytes, 65536 of 65536 `+
		`are free; raise pads.size in the plan to 100000 or more`)
	assert.ErrorIs(t, pad.With(math.MaxInt/2+1, never), scope.ErrFull)
	var all []scope.Scope
	for range 8 {
		all = append(all, pad.Open("s"))
	}
	assert.EqualError(t, pad.With(1, never), `budget "test": pad 0.0 is full: scope "With" asked for one more of 8 scopes; `+
		`raise limits.scopes in the plan to 9 or more`)
	for i := range all {
		require.NoError(t, all[7-i].Close(), "nothing is remembered: it was told")
	}
	require.NoError(t, pad.With(padSize, func(b []byte) { assert.Len(t, b, padSize) }))
}

func TestWithEndsHoweverItsFunctionEnds(t *testing.T) {
	b := open(t)
	pad := b.Pad(0, 0)
	s := pad.Open("s")
	leave := func(b []byte) { newMark(pad.Open("left"), 1, doFail) }
	err := pad.With(10, leave)
	assert.ErrorContains(t, err, `scope: BUG: scope "left" of pad 0.0 was left open: close it where it is opened`)
	assert.ErrorIs(t, err, errMark)
	assert.Equal(t, []int64{1}, closed)

	assert.PanicsWithValue(t, "it", func() { _ = pad.With(10, func(b []byte) { leave(b); panic("it") }) })
	assert.Equal(t, []int64{1, 1}, closed)
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = pad.With(10, func(b []byte) { leave(b); runtime.Goexit() })
		done <- true
	}()
	assert.False(t, <-done, "Goexit goes on")
	assert.Equal(t, []int64{1, 1, 1}, closed)
	assert.Equal(t, 1, pad.Depth())
	points.New(s)

	covered := `scope: BUG: allocation in scope "do" of pad 0.0 while scope "With", opened in it, is open`
	assert.PanicsWithError(t, covered, func() {
		_ = pad.Do("do", func(outer scope.Scope) error { return pad.With(10, func([]byte) { points.New(outer) }) })
	})
	assert.Equal(t, 1, pad.Depth())
	assert.ErrorIs(t, pad.Do("do", func(scope.Scope) error {
		return pad.With(10, func([]byte) { points.Slice(pad.Open("inside"), 1<<20) }) // unwinds to Do
	}), scope.ErrFull)
	assert.Equal(t, 1, pad.Depth())
}

func TestWithNestsAndRemembers(t *testing.T) {
	pad := open(t).Pad(0, 0)
	err := pad.With(10, func(a []byte) {
		a[0] = 1
		require.NoError(t, pad.With(10, func(b []byte) {
			assert.Zero(t, b[0])
			b[0] = 2
		}))
		assert.EqualValues(t, 1, a[0])
		s := pad.Open("s")
		points.TrySlice(s, 1<<20)
		assert.ErrorIs(t, s.Close(), scope.ErrFull)
		points.TrySlice(pad.Open("left"), 1<<20)
	})
	assert.ErrorContains(t, err, "was left open")
	assert.ErrorIs(t, err, scope.ErrFull, "what it met is told")
	assert.Zero(t, pad.Depth())
}

func TestWithWhoseBudgetIsClosedMeanwhile(t *testing.T) {
	b := open(t)
	pad := b.Pad(0, 0)
	var newer scope.Scope
	require.NoError(t, pad.With(10, func([]byte) {
		assert.ErrorContains(t, b.Close(), `scope "With"`)
		newer = open(t).Pad(0, 0).Open("a newer budget's, in the same place")
	}))
	points.New(newer)
	require.NoError(t, newer.Close())
	assert.PanicsWithError(t, "scope: BUG: With of pad 0.0, whose budget is closed", func() { _ = pad.With(10, nil) })
}

func TestPadThatWasGivenBackRefuses(t *testing.T) {
	b := open(t)
	lent, err := b.Pads.Take(t.Context())
	require.NoError(t, err)
	pad := lent.Pad(1)
	s := pad.Open("s")
	require.NoError(t, s.Close())
	require.NoError(t, lent.Give())
	for what, fn := range map[string]func(){
		"Open on":  func() { pad.Open("x") },
		"Do on":    func() { _ = pad.Do("x", nil) },
		"With of":  func() { _ = pad.With(1, nil) },
		"Depth of": func() { pad.Depth() },
		"Stats of": func() { pad.Stats() },
	} {
		err := panicsWith(fn)
		assert.EqualError(t, err, "scope: BUG: "+what+" pad 1.1, which was given back")
		assert.True(t, errors.Is(err, scope.ErrClosed))
	}
	assert.PanicsWithError(t, "scope: BUG: Pick of pad 1.0, which was given back", func() { lent.Pick() })
	for range 2 { // both pairs
		again, err := b.Pads.Take(t.Context())
		require.NoError(t, err)
		assert.Panics(t, func() { pad.Open("x") }, "it is another's now")
		defer func() { assert.NoError(t, again.Give()) }()
	}
}

func TestPadsAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	pads := open(t).Pads.Of(0)
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out := pads.Pick().Open("out")
		scratch := pads.Pick(out).Open("scratch")
		_ = pads.Pad(1).With(100, func(b []byte) { sum += len(b) })
		_ = errors.Join(scratch.Close(), out.Close())
	}))
}

// TestMisuseThatUnwindsWhatCoveredItsScope: the text is asked for when the scope is the topmost again.
func TestMisuseThatUnwindsWhatCoveredItsScope(t *testing.T) {
	s := open(t).Pad(0, 0).Open("s")
	err := panicsWith(func() {
		inner := s.Open("inner")
		defer inner.Close()
		points.New(s)
	})
	assert.EqualError(t, err, `scope: BUG: allocation in scope "s" of pad 0.0 while scope "inner", opened in it, is open`)
	err = panicsWith(func() { scope.Maker[point]{}.New(s) })
	assert.EqualError(t, err, "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
	assert.ErrorContains(t, s.Close(), `while scope "inner", opened in it, is open`)
}
