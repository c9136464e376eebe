package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// Programs that a hostile reader of this package wrote. Each broke a promise once.

var bytesOnly = scope.Plain[byte]()

// TestScopeClosesOnce, though a part's finalizer in its temporaries closes it while its own finalizers run.
func TestScopeClosesOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
	newMark(outer, 1, 0)
	temp := outer.Temp(20480)
	s := outer.Open("s")
	var inside error
	s.Defer(func() {
		_, _ = points.Make(temp, func(*point) error {
			temp.Defer(func() { inside = s.Close() })
			return errMark
		})
	})
	require.NoError(t, s.Close())
	assert.EqualError(t, inside, `scope: BUG: Close of scope "s" of scratch 0.0 while its finalizers run`)
	assert.Equal(t, 1, scratch.Depth())
	require.NoError(t, outer.Close())
	assert.Equal(t, []int64{1}, closed)
}

// TestDoLeavesOthersScopesAlone: when fn closed the scope of Do, what is open afterwards is somebody else's.
func TestDoLeavesOthersScopesAlone(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	var kept scope.Scope
	require.NoError(t, scratch.Do("a", func(s scope.Scope) error {
		require.NoError(t, s.Close())
		kept = scratch.Open("kept")
		newMark(kept, 1, 0)
		return nil
	}))
	assert.Empty(t, closed)
	require.NoError(t, kept.Close())
	assert.Equal(t, []int64{1}, closed)
}

func TestLabelsInAFailedConstructor(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, "level", func() error {
			s.Bytes(5)
			_, err := points.Make(s, func(*point) error {
				return scope.Label(s, "sound", func() error { s.Bytes(1000); return errMark })
			})
			require.ErrorIs(t, err, errMark)
			s.Bytes(10)
			return nil
		})
	}))
	assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 15}}, labels(b))
}

// TestPanicAfterAnOldTry: what a scope around a Do remembers has nothing to do with a panic in it.
func TestPanicAfterAnOldTry(t *testing.T) {
	tick := open(t).Scratch(0, 0).Open("tick")
	points.TrySlice(tick, 1<<20)
	met := tick.Err().Error()
	assert.PanicsWithValue(t, "boom", func() { _ = tick.Do("later", func(scope.Scope) error { panic("boom") }) })
	err := tick.Do("inner", func(s scope.Scope) error {
		points.TrySlice(s, 1<<20)
		panic("boom")
	})
	assert.ErrorContains(t, err, "then: panic: boom")
	assert.EqualError(t, tick.Err(), met)
	assert.ErrorIs(t, tick.Close(), scope.ErrFull)
}

func TestFullInAConstructorTellsWhatWasFree(t *testing.T) {
	err := open(t).Scratch(0, 0).Do("do", func(s scope.Scope) error {
		_, err := points.Make(s, func(*point) error { s.Bytes(60000); s.Bytes(10000); return nil })
		return err
	})
	assert.EqualError(t, err, `budget "test": scratch 0.0 is full: scope "do" asked for 10000 bytes, 5528 of 65536 are free; `+
		`held by "do" 60008; raise scratch.size in the plan to 70008 or more`)
}

// TestMisuseIsNotAnOldFull: an ignored Try... doesn't hide that a covered scope was used.
func TestMisuseIsNotAnOldFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	covered := `scope: BUG: allocation in scope "do" of scratch 0.0 while scope "child", opened in it, is open`
	assert.PanicsWithError(t, covered, func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			bytesOnly.TrySlice(s, 1<<20)
			child := s.Open("child")
			defer child.Close()
			points.New(s)
			return nil
		})
	})
	assert.Zero(t, scratch.Depth())
}

// TestTryInAFinalizer is told by Close, since nobody else could.
func TestTryInAFinalizer(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	s.Defer(func() { points.TryNew(s) })
	assert.EqualError(t, s.Close(), `scope: BUG: allocation in scope "s" of scratch 0.0 while its finalizers run`)
}

// TestNamesOutliveWhatTheyLieIn: a name may be one of Sprintf.
func TestNamesOutliveWhatTheyLieIn(t *testing.T) {
	b := open(t)
	names := b.Scratch(1, 0)
	var err error
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		_ = names.Do("names", func(n scope.Scope) error {
			_ = scope.Label(s, scope.Sprintf(n, "sound %d", 1), func() error { s.Bytes(100); return nil })
			err = b.Scratch(0, 0).Do(scope.Sprintf(n, "query %d", 2), func(q scope.Scope) error { q.Bytes(1 << 20); return nil })
			return nil
		})
		_ = names.Do("junk", func(n scope.Scope) error {
			for i, junk := 0, n.Bytes(1000); i < len(junk); i++ {
				junk[i] = '#'
			}
			return nil
		})
		return nil
	}))
	assert.ErrorContains(t, err, `scope "query 2" asked`)
	assert.Equal(t, "sound 1", labels(b)[0].Name)
}

// TestTextOfAPanicAfterItsScopesClosed: deferred Closes run before anybody asks for the text.
func TestTextOfAPanicAfterItsScopesClosed(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	misuse := func(fn func(out scope.Scope)) error {
		return recovered(func() {
			out := scratch.Open("out")
			defer out.Close()
			inner := out.Open("inner")
			defer inner.Close()
			fn(out)
		})
	}
	assert.EqualError(t, misuse(func(out scope.Scope) { points.New(out) }),
		`scope: BUG: allocation in scope "out" of scratch 0.0 while scope "inner", opened in it, is open`)
	var undeclared scope.Maker[point]
	assert.EqualError(t, recovered(func() {
		out := scratch.Open("out")
		defer out.Close()
		undeclared.New(out)
	}), "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
	b := open(t)
	err := scratch.Do("a bug is no full", func(scope.Scope) error { return nil })
	require.NoError(t, err)
	assert.ErrorContains(t, recovered(func() {
		defer func() { _ = b.Region("level").Rewind(t.Context()) }()
		var frozen scope.Scope
		_ = inLevel(t, b, func(s scope.Scope) error { frozen = s; return nil })
		points.New(frozen)
	}), `allocation in scope "level" of region level, which is frozen since its load returned`)
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
