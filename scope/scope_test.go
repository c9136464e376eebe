package scope_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

func TestDoTellsOfScopesLeftOpen(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error { s.Open("b").Open("c"); return nil })
	assert.EqualError(t, err,
		`scope: BUG: 2 scopes of scratch 0.0 were left open: "b", "c"; close each in the function that opens it`)
	err = scratch.Do("a", func(scope.Scope) error {
		left := scratch.Open("left")
		newMark(left, 1, doFail)
		points.TrySlice(left, 1<<20)
		return nil
	})
	assert.ErrorContains(t, err, "was left open")
	assert.ErrorIs(t, err, scope.ErrFull, "what it met is told")
	assert.ErrorIs(t, err, errMark)
	assert.Zero(t, scratch.Depth())
}

// TestScopeThatCOpenedHasNoName: nor the name of the Go scope that was in its place before.
func TestScopeThatCOpenedHasNoName(t *testing.T) {
	b := open(t)
	opens := func(s scope.Scope) error {
		require.NoError(t, s.Open("second").Close())
		header, _ := s.C()
		(*arena_c.Scopes)(header).Open()
		return nil
	}
	assert.EqualError(t, b.Scratch(0, 0).Do("first", opens),
		`scope: BUG: scope "C" of scratch 0.0 was left open; close it in the function that opens it`)
	require.NoError(t, opens(b.Scratch(0, 0).Open("first")))
	err := b.Close()
	assert.ErrorContains(t, err, `scope "first"`)
	assert.ErrorContains(t, err, `"C"`)
	assert.LessOrEqual(t, strings.Count(err.Error(), "scope_test.go"), 1, "nobody knows where it was opened")
}

func TestUndeclaredMakerIsRefused(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	var m scope.Maker[point]
	list := []point{{1, 1}}
	const want = "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object"
	for i, use := range []func(){
		func() { m.New(s) }, func() { m.Slice(s, 1) }, func() { m.TrySlice(s, 1) }, func() { m.SliceCap(s, 1, 1) },
		func() { m.SliceAligned(s, 1, 8) }, func() { m.Clone(s, list) }, func() { m.Append(s, nil) },
		func() { m.Append(s, list, list[0]) }, func() { m.Append(s, list, list[0], list[0]) },
		func() { _, _ = m.Make(s, nil) }, func() { m.Build(s) },
		func() { m.Pool(s, 1) }, func() { m.HandlePool(s, 1) }, func() { m.SharedPool(s, 1) },
	} {
		assert.PanicsWithError(t, want, use, "%d", i)
	}
	assert.Nil(t, m.TryNew(s))
	assert.EqualError(t, s.Close(), want, "TryNew's too")
}

// TestPlainRefusesGoPointers: package arena knows which types hold them.
//
//upfront:keeps it is refused
func TestPlainRefusesGoPointers(t *testing.T) {
	type named struct {
		A struct{ Name string }
	}
	assert.PanicsWithValue(t, "scope: named.A.Name (string) holds a Go pointer; use arena.String, or arena.Inline "+
		"for a short text", func() { scope.Plain[named]() })
	assert.Panics(t, func() { scope.Object(func(*named) error { return nil }) })
	assert.PanicsWithValue(t, "scope: Text (scope.Text) holds a Go pointer; use scope.Owned, which Scope.Keep gives",
		func() { scope.Plain[scope.Text]() })
	assert.NotPanics(t, func() { scope.Plain[arena.Slice[arena.String]]() })
}

// TestZeroHandles: the use of a zero handle panics, and a program can recover from it, in each
// build.
func TestZeroHandles(t *testing.T) {
	var (
		s       scope.Scope
		pool    scope.Pool[point]
		scratch scope.Scratch
		zeros   = []func(){func() { points.New(s) }, func() { points.TryNew(s) }, func() { points.Slice(s, 1) },
			func() { s.AllocUnzeroed(1, 1) }, func() { s.Bytes(1) }, func() { s.BytesUnzeroed(1, 64) },
			func() { s.Open("a") }, func() { _ = s.Close() }, func() { _ = s.Err() },
			func() { s.Free() }, func() { s.Temp(1) }, func() { s.Own(&closer{}) }, func() { newMark(s, 1, 0) },
			func() { _, _ = marks.Make(s, func(*mark) error { return nil }) }, func() {
				points.Pool(s, 1)
			}, func() { pool.Get() },
			func() { pool.Put(nil) }, func() {
				pool.Put(new(point))
			}, func() { pool.Index(nil) }, func() { scratch.Open("a") }}
	)
	for i, zero := range zeros {
		assert.Panics(t, zero, "%d", i)
	}
}

func TestUseAfterTheBudgetClosed(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("a")
	pool := points.Pool(s, 2)
	x := pool.Get()
	temp := s.Temp(64)
	assert.ErrorContains(t, b.Close(), `scratch 0.0: left open at NextFrame, Release or Close: scope "a"`)
	closed := "scope: BUG: use of a scope whose budget is closed"
	assert.PanicsWithError(t, closed, func() { points.New(s) })
	assert.PanicsWithError(t, closed, func() { points.New(temp) })
	assert.PanicsWithError(t, closed, func() { points.Slice(s, 2) })
	assert.Nil(t, points.TryNew(s))
	assert.Nil(t, pool.Get())
	assert.Nil(t, pool.At(0))
	assert.Panics(t, func() { pool.Put(x) })
	assert.Panics(t, func() { s.Defer(func() {}) })
	assert.ErrorIs(t, s.Close(), scope.ErrClosed)
	assert.ErrorIs(t, s.Err(), scope.ErrClosed)
	assert.Zero(t, s.Free())
	assert.PanicsWithError(t, "scope: BUG: Open on scratch 0.0, whose budget is closed", func() { scratch.Open("b") })
	assert.Zero(t, scratch.Depth())
}

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
	assert.PanicsWithError(t, "scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a conflicting scope; "+
		"raise scratch.each in the plan",
		func() { scratches.Pick(c, a) })
	require.NoError(t, c.Close())
	for _, conflicts := range [][]scope.Scope{{c}, {a, c}} {
		err := recovered(func() { scratches.Pick(conflicts...) })
		assert.EqualError(t, err, "scope: BUG: Pick next to a closed scope of scratch 0.1")
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
		err := recovered(fn)
		assert.EqualError(t, err, "scope: BUG: "+what+" scratch 1.1, which was released")
		assert.True(t, errors.Is(err, scope.ErrClosed))
	}
	assert.PanicsWithError(t, "scope: BUG: Pick of scratch 1.0, which was released", func() { lent.Pick() })
	for range 2 { // both pairs
		again, err := b.Lease(t.Context())
		require.NoError(t, err)
		assert.Panics(t, func() { scratch.Open("x") }, "it is another's now")
		defer func() { assert.NoError(t, again.Release()) }()
	}
}

// TestScopeClosesOnce: even if a finalizer of its temporaries closes it while its finalizers run.
func TestScopeClosesOnce(t *testing.T) {
	scratch, outer := opened(t, "outer")
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

// TestDoLeavesOthersScopesAlone: if fn closed the scope of Do, later scopes there belong to other
// code.
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

// TestDoThatClosesItsBudget: the range may be a newer budget's by then, whose scopes Do must not
// close.
func TestDoThatClosesItsBudget(t *testing.T) {
	plan := budget.Plan{Name: "b", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}}
	first, err := budget.Open(plan)
	require.NoError(t, err)
	var newer scope.Scope
	err = first.Scratch(0, 0).Do("closes", func(s scope.Scope) error {
		assert.ErrorContains(t, first.Close(), "left open")
		second := budgettest.Open(t, plan)
		newer = second.Scratch(0, 0).Open("newer")
		return errors.New("said")
	})
	assert.EqualError(t, err, "said")
	assert.NotNil(t, points.TryNew(newer), "it is still open")
	scratch := first.Scratch(0, 0)
	assert.PanicsWithError(t, "scope: BUG: Do on scratch 0.0, whose budget is closed", func() {
		_ = scratch.Do("do", nil)
	})
	require.NoError(t, newer.Close())
}

func TestAligns(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for align, want := range map[scope.AlignMask]uintptr{scope.Align8: 8, scope.Align16: 16, scope.Align64: 64} {
		s := scratch.Open("s")
		line := accounted(s, s.AllocUnzeroed(64, 64))
		s.AllocUnzeroed(1, 1)
		next := accounted(s, s.AllocUnzeroedAs(1, align))
		assert.Equal(t, 64+want, uintptr(next)-uintptr(line), "%d", align)
		require.NoError(t, s.Close())
	}
}
