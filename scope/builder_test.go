package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// TestBuilderOfWhatHasNoSize: a T of no bytes needs no room; there is no room if the first aligned
// offset is past the end.
func TestBuilderOfWhatHasNoSize(t *testing.T) {
	scratch, s := opened(t, "s")
	nothing := empties.Build(s)
	for range 2 * scratchSize {
		nothing.Push(struct{}{})
	}
	assert.Len(t, nothing.Done(), 2*scratchSize)
	assert.Zero(t, scratch.Stats().Used)
	s.Bytes(1)
	list := longs.Build(s)
	assert.True(t, list.TryPush(1))
	assert.Len(t, list.Done(), 1)
	assert.Equal(t, counted(3), scratch.Stats().Objects, "two lists and a byte")
	s.Bytes(int(s.Free()) - 1)
	full := longs.Build(s)
	assert.False(t, full.TryPush(1))
	assert.Empty(t, full.Done())
	assert.EqualValues(t, 1, s.Free())
	assert.ErrorContains(t, s.Close(), "asked for 8 bytes", "the scope remembers what TryPush was refused")
}

func TestBuilderThatIsFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("load", func(s scope.Scope) error {
		s.Bytes(1000)
		b := points.Build(s)
		for {
			b.Push(point{1, 2})
		}
	})
	assert.EqualError(t, err,
		`budget "test": scratch 0.0 is full: scope "builder" asked for 8 bytes, 0 of 65536 are free; `+
			`held by "builder" (64536 bytes), "load" (1000 bytes); raise scratch.size in the plan to 65544 or more`)
	assert.Zero(t, scratch.Depth())
	assert.Zero(t, scratch.Stats().Used)
}

func TestNobodyElseWhileOneBuilds(t *testing.T) {
	scratch, s := opened(t, "s")
	temp := s.Temp(1000)
	b := points.Build(s)
	b.Push(point{1, 2})
	const building = ` scope "builder" of scratch 0.0, where a Builder holds all free bytes until Done`
	for want, fn := range map[string]func(){
		"Open in": func() { scratch.Open("x") },
		"Do":      func() { _ = scratch.Do("x", nil) },
		"Temp of": func() { temp.Temp(8) },
	} {
		assert.ErrorContains(t, recovered(fn), building, want)
	}
	const covered = ` scope "s" of scratch 0.0 while scope "builder", opened in it, is open; close "builder" first`
	for want, fn := range map[string]func(){
		"allocation in": func() { points.New(s) },
		"Open in":       func() { s.Open("x") },
		"Temp of":       func() { s.Temp(8) },
		"Own in":        func() { s.Own(&closer{}) },
		"second":        func() { points.Build(s) },
	} {
		assert.ErrorContains(t, recovered(fn), covered, want)
	}
	bytes := temp.Bytes(1000)
	b.Push(point{3, 4})
	assert.Equal(t, make([]byte, 1000), bytes, "what temporaries have is theirs")
	assert.Equal(t, []point{{1, 2}, {3, 4}}, b.Done())
	require.NoError(t, scratch.Open("x").Close(), "it is as before")
	points.New(s)
	assert.ErrorContains(t, s.Close(), "allocation in"+covered, "what others were refused is told where they were")
}

func TestBuilderThatIsDone(t *testing.T) {
	scratch, s := opened(t, "s")
	b := points.Build(s)
	b.Push(point{1, 2})
	b.Done()
	for _, fn := range []func(){func() { b.Push(point{}) }, func() { b.Done() }} {
		err := recovered(fn)
		assert.ErrorContains(t, err, "in a closed scope of scratch 0.0")
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
	assert.False(t, b.TryPush(point{}))
	assert.Equal(t, 1, b.Len())
	inner := s.Open("inner")
	other := longs.Build(inner) // in the place of the first
	assert.False(t, b.TryPush(point{}))
	assert.ErrorIs(t, recovered(func() { b.Done() }), scope.ErrClosed)
	other.Push(7)
	assert.Equal(t, []uint64{7}, other.Done())
	require.NoError(t, inner.Close())
	require.NoError(t, s.Close(), "nobody's bytes were asked for")
	assert.ErrorIs(t, recovered(func() { points.Build(s) }), scope.ErrClosed)
	assert.EqualError(t, recovered(func() { scope.Maker[point]{}.Build(scratch.Open("s")) }),
		"scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
}

// TestBuilderInAConstructor: a failed constructor frees the Builder, and no scope stays covered.
func TestBuilderInAConstructor(t *testing.T) {
	scratch, s := opened(t, "s")
	for _, end := range []func() error{func() error { return errMark }, func() error { panic(errMark) }} {
		err := recovered(func() {
			_, err := marks.Make(s, func(*mark) error {
				b := points.Build(s)
				b.Push(point{1, 2})
				return end()
			})
			panic(err)
		})
		assert.ErrorIs(t, err, errMark)
		assert.Zero(t, scratch.Stats().Used)
		require.NoError(t, scratch.Do("x", func(s scope.Scope) error { points.New(s); return nil }), "it is as before")
	}
}
