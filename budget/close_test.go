package budget_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestCloseOrder(t *testing.T) {
	b := open(t, small())
	newMark(b.Scratch(0, 0).Open("scratch"), 9, 0)
	newMark(b.Frame(), 8, 0)
	for i, name := range []string{"init", "systems", "level"} {
		mustLoad(t, b, name, func(s scope.Scope) {
			newMark(s, int64(2*i+1), doFail)
			newMark(s, int64(2*i+2), 0)
		})
	}
	err := b.Close()
	assert.Equal(t, []int64{6, 5, 4, 3, 2, 1, 8, 9}, ran, "level, systems, init; then what stands beside")
	assert.ErrorIs(t, err, errMark)
	assert.ErrorContains(t, err, `scratch 0.0: left open at NextFrame, Release or Close: scope "scratch"`)
	assert.Equal(t, budget.Leaks{Scopes: 1, Finalizers: 3}, b.Report().Leaks)
	assert.ErrorIs(t, b.Close(), budget.ErrClosed)
	assert.EqualError(t, b.Close(), `budget "small": Close: upfront: closed`)
	assert.Len(t, ran, 8)
}

func TestBudgetAfterClose(t *testing.T) {
	b := open(t, small())
	l := mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(1000) })
	reader := b.Region("level").Reader("anna")
	scratch := b.Scratch(1, 0)
	require.NoError(t, b.Close())
	last := b.Report()
	assert.Positive(t, last.Arenas[2].Peak, "the figures as they were at Close")
	assert.Equal(t, last.Arenas[2], b.Region("level").Report())
	assert.NotEmpty(t, last.String())
	assert.Nil(t, l.Get())
	assert.False(t, reader.Pin())
	for what, err := range map[string]error{
		"Walk": func() error { _, err := b.Walk(); return err }(),
		"Lease": func() (err error) {
			for range 20 { // of a free worker: no worker is ever lent
				if _, err = b.Lease(background); err == nil {
					return nil
				}
			}
			return err
		}(),
		"Seal":                   b.Seal(),
		"SealStrict":             b.SealStrict(),
		"NextFrame":              b.NextFrame(),
		"Close":                  b.Close(),
		"Rewind of region level": b.Region("level").Rewind(background),
		"Load of region level":   func() error { _, err := load(b, "level", nil); return err }(),
	} {
		assert.ErrorIs(t, err, budget.ErrClosed, what)
		assert.ErrorContains(t, err, `budget "small": `+strings.Split(what, " ")[0])
	}
	assert.Equal(t, `budget: BUG: the frame of budget "small", which is closed`, panics(t, func() { b.Frame() }))
	assert.Equal(t, "scope: BUG: Open on scratch 1.0, whose budget is closed", panics(t, func() { scratch.Open("x") }))
	assert.Contains(t, panics(t, func() { _ = b.Scratch(0, 0).Do("x", nil) }), "whose budget is closed")
	assert.Equal(t, last, b.Report())
}

// TestPanicIsPrintedAfterClose: in a program that handles no full, main defers Close, and the panic
// is printed after it.
func TestPanicIsPrintedAfterClose(t *testing.T) {
	for arena, in := range map[string]func(*budget.Budget) scope.Scope{
		"frame 0":     func(b *budget.Budget) scope.Scope { return b.Frame().Open("s") },
		"scratch 1.0": func(b *budget.Budget) scope.Scope { return b.Scratch(1, 0).Open("s") },
	} {
		b := open(t, small())
		o := attempt(func() error {
			defer b.Close()
			for s := in(b); ; {
				frogs.New(s)
			}
		})
		err, _ := o.panicked.(error)
		want := `budget "small": ` + arena +
			` is full: scope "s" asked for 24 bytes, 16 of 65536 are free; held by "s" (65520 bytes); raise `
		require.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, budget.ErrFull)
		again := open(t, small())
		assert.ErrorContains(t, err, want, "and after the next Open")
		require.NoError(t, again.Close())
	}
}

// stale are handles to all the objects of a budget.
type stale struct {
	scope, temp, frame, scratch, inner scope.Scope
	pool                               scope.Pool[frog]
	objects                            scope.ObjectPool[mark]
	chunk                              *frog
}

func makeStale(t *testing.T, b *budget.Budget) (s stale) {
	s.frame = b.Frame()
	s.scratch = b.Scratch(1, 1).Open("scratch")
	s.inner = s.scratch.Open("inner")
	require.NoError(t, s.inner.Close())
	require.NoError(t, s.scratch.Close())
	mustLoad(t, b, "level", func(in scope.Scope) {
		s.scope, s.temp = in, in.Temp(100)
		s.pool = frogs.Pool(in, 10)
		s.objects = marks.Pool(in, 10)
		s.chunk = s.pool.Get()
	})
	return s
}

// requireDead uses every handle in every way: each use returns nil or a closed error, and doesn't
// crash.
func (s stale) requireDead(t *testing.T) {
	t.Helper()
	for name, at := range map[string]scope.Scope{
		"scope": s.scope, "temp": s.temp, "frame": s.frame, "scratch": s.scratch, "inner": s.inner} {
		assert.Nil(t, frogs.TryNew(at), name)
		assert.Nil(t, frogs.TrySlice(at, 1), name)
		assert.Nil(t, marks.TryNew(at), name)
		assert.Nil(t, at.TryAllocUnzeroed(8, 8), name)
		assert.Zero(t, at.Free(), name)
		assert.ErrorIs(t, at.Close(), budget.ErrClosed, name)
		assert.ErrorIs(t, at.Err(), budget.ErrClosed, name)
		ran = nil
		for _, use := range []func(){
			func() { frogs.New(at) },
			func() { frogs.Slice(at, 1) },
			func() { frogs.Pool(at, 1) },
			func() { marks.New(at) },
			func() { marks.Slice(at, 2) },
			func() { _, _ = marks.Make(at, func(*mark) error { return nil }) },
			func() { at.AllocUnzeroed(8, 8) },
			func() { at.Bytes(8) },
			func() { at.Open("x") },
			func() { _ = at.Do("x", func(scope.Scope) error { return nil }) },
			func() { at.Temp(1) },
			func() { at.Own(&closer{1}) },
			func() { at.Defer(func() { ran = append(ran, 2) }) },
		} {
			err, _ := attempt(func() error { use(); return nil }).panicked.(error)
			assert.ErrorIs(t, err, budget.ErrClosed, name)
			assert.ErrorContains(t, err, "scope: BUG: ", name)
		}
		assert.Equal(t, []int64{1, 2}, ran, "what can't be held is closed at once")
	}
	assert.Nil(t, s.pool.Get())
	assert.Nil(t, s.pool.At(0))
	assert.Nil(t, s.objects.Get())
	assert.Zero(t, s.pool.Cap()+s.pool.Live()+s.pool.Peak())
	for _, use := range []func(){func() { s.pool.Put(s.chunk) }, func() { s.pool.Index(s.chunk) }} {
		assert.Contains(t, panics(t, use), "of a budget_test.frog: closed already")
	}
}

func TestHandlesAfterClose(t *testing.T) {
	fresh(t, small())
	b := open(t, small())
	s := makeStale(t, b)
	scratch := b.Scratch(1, 1)
	require.NoError(t, b.Close())
	s.requireDead(t)

	again := open(t, small())
	assert.Equal(t, addressOf(&b.Base().Bytes()[0]), addressOf(&again.Base().Bytes()[0]),
		"a control: it is the same range")
	s.requireDead(t)
	mustLoad(t, again, "level", func(in scope.Scope) { frogs.Pool(in, 10).Get(); s.requireDead(t) })
	newMark(again.Scratch(1, 1).Open("scratch").Open("inner"), 1, 0)
	before := quiet(again)
	s.requireDead(t)
	assert.Equal(t, "scope: BUG: Open on scratch 1.1, whose budget is closed",
		panics(t, func() { b.Scratch(1, 1).Open("x") }))
	assert.Zero(t, scratch.Depth(), "it tells nothing of the newer budget")
	assert.Zero(t, scratch.Stats())
	assert.Equal(t, before, quiet(again), "the new owner is not disturbed")
	requireWalk(t, again)
}

// TestHandlesAcrossShapes opens budgets with tables of one size but different layouts. A stale
// handle must not take one control word for another, and no generation may count twice.
func TestHandlesAcrossShapes(t *testing.T) {
	fresh(t, small())
	b := open(t, small())
	s := makeStale(t, b)
	base := addressOf(&b.Base().Bytes()[0])
	require.NoError(t, b.Close())
	for scopes := 1; scopes <= 12; scopes++ {
		for pools := 1; pools <= 4; pools++ {
			plan := small()
			plan.Limits = budget.Limits{Scopes: scopes, Pools: pools}
			other := open(t, plan)
			mustLoad(t, other, "level", nil)
			s.requireDead(t)
			requireWalk(t, other)
			require.NoError(t, other.Close())
			s.requireDead(t)
		}
	}
	again := open(t, small())
	assert.Equal(t, base, addressOf(&again.Base().Bytes()[0]), "the range waits for its shape")
	mustLoad(t, again, "level", func(in scope.Scope) { frogs.Pool(in, 10).Get(); s.requireDead(t) })
	again.Scratch(1, 1).Open("scratch").Open("inner")
	s.requireDead(t)
	requireWalk(t, again)
}

// TestCloseExcludesCalls: of two calls on a budget one is refused, also if it has no regions.
func TestCloseExcludesCalls(t *testing.T) {
	b, err := budget.Open(leasePlan(1))
	require.NoError(t, err)
	ran := false
	b.Scratch(0, 0).Open("left").Defer(func() {
		ran = true
		_, err := b.Trim(background)
		assert.ErrorContains(t, err, "refused during a Close")
	})
	assert.ErrorContains(t, b.Close(), "left")
	assert.True(t, ran)
}
