package scope_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// TestMakeThatFailsLeavesNothing: its objects are finalized, and its bytes are free again.
func TestMakeThatFailsLeavesNothing(t *testing.T) {
	scratch := dirty(t)
	s := scratch.Open("s")
	before := scratch.Stats()
	ends := map[string]func() error{
		"mark failed":         func() error { return errMark },
		"scope: BUG: Make in": func() error { return nil },
		"boom":                func() error { panic(errors.New("boom")) },
		"is full":             func() error { scratch.Open("top").AllocUnzeroed(1<<20, 1); return nil },
	}
	for _, try := range []func(s scope.Scope, parts func() error) (made bool, err error){
		func(s scope.Scope, parts func() error) (bool, error) {
			p, err := points.Make(s, func(p *point) error { assert.Zero(t, *p); *p = point{7, 7}; return parts() })
			return p != nil, err
		},
		func(s scope.Scope, parts func() error) (bool, error) {
			m, err := marks.Make(s, func(m *mark) error { assert.Zero(t, *m); m.ID = 7; return parts() })
			return m != nil, err
		},
	} {
		for want, end := range ends {
			closed = nil
			made, err := false, error(nil)
			thrown := recovered(func() {
				made, err = try(s, func() error {
					newMark(s, 3, 0)
					s.Own(&closer{id: 4})
					s.Open("left open")
					return end()
				})
			})
			assert.ErrorContains(t, errors.Join(thrown, err), want)
			assert.False(t, made)
			assert.Equal(t, []int64{4, 3}, closed)
			assert.Equal(t, 1, scratch.Depth())
			after := scratch.Stats()
			assert.Equal(t, before.Used, after.Used)
			assert.Equal(t, before.Objects, after.Objects)
		}
		inner := s.Open("inner")
		assert.EqualError(t, recovered(func() { _, _ = try(s, nil) }),
			`scope: BUG: Make in scope "s" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`)
		assert.EqualError(t, recovered(func() { _, _ = try(inner, inner.Close) }),
			"scope: BUG: Make in a closed scope of scratch 0.0")
		assert.Equal(t, 1, scratch.Depth())
	}
	_, err := marks.Make(s, func(*mark) error { newMark(s, 6, doPanic); return errMark })
	assert.ErrorContains(t, err, "mark panics", "what its parts' finalizers say is not lost")
	closed = nil
	p, err := points.Make(s, func(p *point) error { p.X = 1; newMark(s, 3, 0); return nil })
	require.NoError(t, err)
	assert.Equal(t, point{1, 0}, *p)
	object, err := marks.Make(s, func(m *mark) error { m.ID = 1; newMark(s, 2, 0); return nil })
	require.NoError(t, err)
	assert.EqualValues(t, 1, object.ID)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1, 2, 3}, closed, "an object dies before its parts")
}

// TestTextsInConstructors: a constructor that fails frees the bytes allocated meanwhile. A Text
// that is older would still use them, so its Add is refused.
func TestTextsInConstructors(t *testing.T) {
	const refused = "scope: BUG: Add inside a constructor to a Text that is older: the new bytes are freed if the " +
		"constructor fails; make it, or a Clone of it, inside the constructor"
	s := open(t).Scratch(0, 0).Open("a")
	text := func(s scope.Scope) func() { // allocates at its first call
		text := s.Text()
		return func() { text.Reset().Add("frog") }
	}
	try := func(fn func()) { _, _ = marks.Make(s, func(*mark) error { fn(); return nil }) }
	older := text(s)
	assert.PanicsWithError(t, refused, func() { try(older) })
	try(func() {
		middle := text(s)
		assert.PanicsWithError(t, refused, func() { try(middle) }, "the inner constructor is younger")
		text(s)()
	})
	older() // outside, it allocates
	try(older)
	made := text(s)
	try(func() {})
	assert.PanicsWithError(t, refused, func() { try(made) }, "an earlier constructor is no excuse")
	try(func() { text(s.Temp(64))() })
	require.NoError(t, s.Close())
}

func TestAppendInAConstructorToAnOlderList(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	list := points.Append(s, nil, point{1, 1})
	_, _ = points.Make(s, func(*point) error {
		err := recovered(func() { points.Append(s, list, point{2, 2}) })
		assert.ErrorContains(t, err, "Append inside a constructor to a list that is older")
		own := points.Append(s, nil, point{3, 3})
		own = points.Append(s, points.Append(s, own, point{4, 4}), point{5, 5})
		assert.Len(t, own, 3)
		assert.Len(t, points.Append(s, points.Clone(s, list), point{6, 6}), 2)
		return errMark
	})
	assert.Equal(t, []point{{1, 1}, {2, 2}}, points.Append(s, list, point{2, 2}))
	require.NoError(t, s.Close())
}

// TestZeroSizeConstructor: no older object ends where the constructor's begins.
func TestZeroSizeConstructor(t *testing.T) {
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

func TestScopeInThePlaceOfAConstructors(t *testing.T) {
	scratch, s := opened(t, "s")
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

// TestFailedConstructorsCostNothing: a million of them leave the Go heap as before.
func TestFailedConstructorsCostNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' runtimes allocate: go test ./scope runs it")
	}
	s := open(t).Scratch(0, 0).Open("s")
	fails := func(*point) error { return errMark }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50_000 {
		_, _ = points.Make(s, fails)
	}
	runtime.ReadMemStats(&after)
	// A growing list takes a megabyte, and the runtime may take an object of its own meanwhile.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	require.NoError(t, s.Close())
}
