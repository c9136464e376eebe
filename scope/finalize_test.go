package scope_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// fill puts one of each finalizer into s, with IDs from 1.
func fill(s scope.Scope) *closer {
	newMark(s, 1, 0)
	c := &closer{id: 2}
	s.Own(c)
	s.Defer(func() { closed = append(closed, 3) })
	t := s.Open("inner")
	newMark(t, 4, 0)
	return c
}

func TestFinalizersRunOnceNewestFirstWhateverHappens(t *testing.T) {
	ends := map[string]func(scope.Scope) error{
		"return": func(scope.Scope) error { return nil },
		"error":  func(scope.Scope) error { return errMark },
		"panic":  func(scope.Scope) error { panic("boom") },
		"Goexit": func(scope.Scope) error { runtime.Goexit(); return nil },
		"full":   func(s scope.Scope) error { panic(s.Open("x").AllocUnzeroed(1<<30, 8)) },
		"tables": func(s scope.Scope) error {
			return s.Open("x").Do("y", func(s scope.Scope) error { newMark(s, 5, 0); return nil })
		},
		"closing": func(s scope.Scope) error { return errors.Join(s.Open("x").Close(), nil) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scratch := open(t).Scratch(0, 0)
			var wg sync.WaitGroup
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer func() { _ = recover() }()
				_ = scratch.Do("outer", func(s scope.Scope) error {
					fill(s)
					return end(innermost(scratch))
				})
			}()
			wg.Wait()
			want := []int64{4, 3, 2, 1}
			if name == "tables" {
				want = []int64{5, 4, 3, 2, 1}
			}
			assert.Equal(t, want, closed)
			assert.Zero(t, scratch.Depth())
			assert.Zero(t, scratch.Stats().Used)
			assert.Zero(t, scratch.Stats().Owned)
		})
	}
}

// innermost opens and gives back a scope on top, so that a test can go on in the topmost one.
func innermost(scratch scope.Scratch) scope.Scope { return scratch.Open("top") }

func TestTryNewOfAnObject(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	m := marks.TryNew(s)
	assert.Zero(t, *m)
	m.ID = 7
	s.BytesUnzeroed(int(s.Free()), 1)
	assert.Nil(t, marks.TryNew(s))
	assert.ErrorIs(t, s.Close(), scope.ErrFull)
	assert.Equal(t, []int64{7}, closed, "what was refused has no finalizer")
}

func TestPanicAfterAnUnhandledFullIsTheFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		p := points.TrySlice(s, 1<<20)
		_ = p[0]
		return nil
	})
	require.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, "; then: panic: runtime error: index out of range [0] with length 0")
}

func TestFailingFinalizersDontStopTheOthers(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	bad := errors.New("closer failed")
	newMark(s, 1, doFail)
	newMark(s, 2, doPanic)
	s.Own(&closer{id: 3, err: bad})
	s.Defer(func() { closed = append(closed, 4); panic("deferred") })
	newMark(s, 5, 0)
	err := s.Close()
	assert.Equal(t, []int64{5, 4, 3, 2, 1}, closed)
	assert.ErrorIs(t, err, errMark)
	assert.ErrorIs(t, err, bad)
	assert.ErrorContains(t, err, "finalizer of scope_test.mark panicked: mark panics")
	assert.ErrorContains(t, err, `scratch 0.0, scope "a": a deferred function panicked: deferred`)
	assert.Equal(t, 4, scratch.Stats().Failed)
	assert.EqualValues(t, 5, scratch.Stats().Finalizers)
	assert.Zero(t, scratch.Depth())
}

func TestGoexitInAFinalizer(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := scratch.Open("a")
		newMark(s, 1, 0)
		s.Defer(func() { closed = append(closed, 2); runtime.Goexit() })
		newMark(s, 3, 0)
		_ = s.Close()
	}()
	<-done
	assert.Equal(t, []int64{3, 2, 1}, closed)
	assert.Zero(t, scratch.Depth(), "the rewind happened too")
}

func TestFinalizerMayNotUseItsOwnScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	var inside error
	s.Defer(func() { inside = s.Close() })
	s.Defer(func() { points.New(s) })
	err := s.Close()
	assert.ErrorContains(t, err, `allocation in scope "a" of scratch 0.0 while its finalizers run`)
	assert.EqualError(t, inside, `scope: BUG: Close of scope "a" of scratch 0.0 while its finalizers run`)
	assert.Zero(t, scratch.Depth())
}

func TestFinalizerOfATemporaryMayNotUseItsScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	newMark(s, 1, 0)
	var inside error
	s.Temp(20480).Defer(func() { inside = s.Close() })
	s.Temp(20480).Defer(func() { points.New(s) })
	s.Temp(20480).Defer(func() { runtime.KeepAlive(newMark(s, 9, 0)) })
	err := s.Close()
	assert.ErrorContains(t, err, `BUG: allocation in scope "a" of scratch 0.0 while its finalizers run`)
	assert.EqualError(t, inside, `scope: BUG: Close of scope "a" of scratch 0.0 while its finalizers run`)
	assert.Equal(t, []int64{1}, closed)
	assert.Zero(t, scratch.Depth())
}

func TestOwnOnAFullScopeClosesAtOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	c := &closer{id: 9, err: errMark}
	err := scratch.Do("a", func(s scope.Scope) error {
		s.Bytes(int(s.Free()))
		s.Own(c)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorIs(t, err, errMark, "what its Close said is not lost")
	assert.Equal(t, 1, c.times)

	var held []*closer
	err = scratch.Do("a", func(s scope.Scope) error {
		for i := int64(0); ; i++ {
			held = append(held, &closer{id: i})
			s.Own(held[i])
		}
	})
	assert.EqualError(t, err, `budget "test": scratch 0.0 is full: scope "a" asked for one more of 8 owned values; `+
		`raise limits.owned in the plan to 9 or more`)
	assert.Len(t, held, 9)
	for _, c := range held {
		assert.Equal(t, 1, c.times)
	}
}

func TestOwnAndDeferOfNil(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	assert.PanicsWithError(t, "scope: BUG: Own of nil", func() { s.Own(nil) })
	assert.PanicsWithError(t, "scope: BUG: Defer of nil", func() { s.Defer(nil) })
	require.NoError(t, s.Close())
}

func TestMakeThatFailsLeavesNothing(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	before := scratch.Stats()
	part := func(m *mark, end func() error) error {
		newMark(s, 7, 0)
		s.Own(&closer{id: 8})
		s.Open("left open")
		return end()
	}
	_, err := marks.Make(s, func(m *mark) error {
		newMark(s, 6, doPanic)
		return part(m, func() error { return errMark })
	})
	assert.ErrorContains(t, err, "mark panics", "what its parts' finalizers say is not lost")
	assert.Equal(t, []int64{8, 7, 6}, closed)
	closed = nil
	_, err = marks.Make(s, func(m *mark) error { return part(m, func() error { return errMark }) })
	assert.ErrorIs(t, err, errMark)
	assert.Equal(t, []int64{8, 7}, closed)
	assert.Panics(t, func() { marks.Make(s, func(m *mark) error { return part(m, func() error { panic("boom") }) }) })
	assert.Panics(t, func() { marks.Make(s, func(m *mark) error { s.AllocUnzeroed(1<<20, 1); return nil }) })
	after := scratch.Stats()
	assert.Equal(t, before.Used, after.Used)
	assert.Equal(t, before.Objects, after.Objects)
	assert.Equal(t, 1, scratch.Depth())
	closed = nil
	m, err := marks.Make(s, func(m *mark) error { m.ID = 1; newMark(s, 2, 0); return nil })
	require.NoError(t, err)
	assert.EqualValues(t, 1, m.ID)
	_ = s.Close()
	assert.Equal(t, []int64{1, 2}, closed, "an object dies before its parts")
}
