package scope_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// What a second hostile reader found in the mends of what the first one had found.

// TestFullInADoWhoseScopeIsClosed is an error all the same.
func TestFullInADoWhoseScopeIsClosed(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		defer s.Close()
		s.Bytes(1 << 20)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("a", func(s scope.Scope) error { _ = s.Close(); panic("boom") })
	})
	assert.Zero(t, scratch.Depth())
}

// TestLabelsWhenAPartEndsTheGoroutine go back.
func TestLabelsWhenAPartEndsTheGoroutine(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = scope.Label(s, "level", func() error {
				s.Bytes(5)
				_, err := points.Make(s, func(*point) error {
					_ = scope.Label(s, "sound", func() error { s.Bytes(1000); return nil })
					s.Defer(runtime.Goexit)
					return errMark
				})
				return err
			})
		}()
		<-done
		assert.Equal(t, make([]point, 20), points.Slice(s, 20))
		assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 5}}, labels(b))
		return nil
	}))
}

// TestMisuseOfACoveredScopeIsNoFull, also when a panic or a constructor's end comes between.
func TestMisuseOfACoveredScopeIsNoFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			s.Open("child")
			points.TryNew(s)
			panic("boom")
		})
	})
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			_, _ = points.Make(s, func(*point) error { s.Open("left open"); points.TryNew(s); return errMark })
			panic("boom")
		})
	})
	assert.Zero(t, scratch.Depth())
	s := scratch.Open("s")
	child := s.Open("child")
	var undeclared scope.Maker[point]
	assert.Nil(t, undeclared.TryNew(s))
	require.NoError(t, child.Close())
	assert.ErrorContains(t, s.Close(), "never declared")
}

// TestFullBelowManyThatRemember: each scope remembers its own, however many there are.
func TestFullBelowManyThatRemember(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("do", func(s scope.Scope) error {
		for range 6 {
			s = s.Open("remembers")
			defer func() { _ = s.Close() }()
			bytesOnly.TrySlice(s, 1<<20)
		}
		inner := s.Open("inner")
		defer inner.Close()
		inner.Bytes(1 << 19)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, `scope "inner" asked for 524288 bytes`)
	assert.Zero(t, scratch.Depth())
}

// TestZeroSizeConstructor: what is older never ends where it begins.
func TestZeroSizeConstructor(t *testing.T) {
	empties := scope.Plain[struct{}]()
	s := open(t).Scratch(0, 0).Open("s")
	list := points.Append(s, nil, point{1, 1})
	_, err := empties.Make(s, func(*struct{}) error {
		return recovered(func() { list = points.Append(s, list, point{2, 2}) })
	})
	assert.ErrorContains(t, err, "Append inside a constructor to a list that is older")
	points.New(s).X = 99
	assert.Equal(t, []point{{1, 1}}, list)
	require.NoError(t, s.Close())
}

// TestScopeInThePlaceOfAConstructors: it has nothing to do with the constructor.
func TestScopeInThePlaceOfAConstructors(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	s.Bytes(1000)
	reached := false
	assert.Panics(t, func() {
		_, _ = points.Make(s, func(*point) error {
			require.NoError(t, s.Close())
			other := scratch.Open("other")
			x := points.New(other)
			assert.Same(t, x, scope.RefTo(other, x).Get())
			list := points.Append(other, nil, point{1, 1})
			points.New(other)
			assert.Len(t, points.Append(other, list, point{2, 2}), 2)
			_, err := marks.Make(other, func(*mark) error { points.New(other); return nil })
			assert.NoError(t, err)
			reached = true
			return nil
		})
	})
	assert.True(t, reached, "the panic is Make's, whose scope is closed")
	assert.Equal(t, 1, scratch.Depth())
}

// TestFailedConstructorsCostNothing that stays: a million of them, and the Go heap is as before.
func TestFailedConstructorsCostNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' runtimes allocate")
	}
	s := open(t).Scratch(0, 0).Open("s")
	fails := func(*point) error { return errMark }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50_000 {
		_, _ = points.Make(s, fails)
	}
	runtime.ReadMemStats(&after)
	// In bytes: a list that grows takes a megabyte, and the runtime may take an object of its own meanwhile.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	require.NoError(t, s.Close())
}
