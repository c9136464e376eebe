package lua_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// overwrite fills all of a scope; the test's end fails if a byte of it was written.
func overwrite(t testing.TB, s scope.Scope) (check func()) {
	t.Helper()
	all := s.Open("overwrites")
	bytes := all.BytesUnzeroed(int(all.Free()), 1)
	for i := range bytes {
		bytes[i] = 0xa5
	}
	return func() {
		t.Helper()
		for i := range bytes {
			if bytes[i] != 0xa5 {
				t.Fatalf("byte %d was written", i)
			}
		}
		require.NoError(t, all.Close())
	}
}

func everyMethod(l *lua.State) []error {
	_, called := l.Call("add", 1, 2)
	_, got := l.Get("x")
	function := l.Func("f", func([]any) ([]any, error) { return nil, nil })
	return []error{l.Run("x", "x = 1"), called, got, l.Set("x", "frog"), function}
}

// TestClosed: a state used after its scope closed returns an error, and touches nothing.
func TestClosed(t *testing.T) {
	s := openScope(t, 2*size)
	inner := s.Open("script")
	l, err := lua.New(inner, lua.Plan{Name: "frogs", Size: size})
	require.NoError(t, err)
	require.NoError(t, inner.Close())
	check := overwrite(t, s)
	for _, err := range everyMethod(l) {
		assert.ErrorIs(t, err, scope.ErrClosed)
		assert.EqualError(t, err, `lua: BUG: state "frogs", whose scope has closed: upfront: closed`)
	}
	assert.Zero(t, l.Stats())
	check()
	for _, err := range everyMethod(new(lua.State)) {
		assert.EqualError(t, err, "lua: BUG: a zero State: New makes one")
	}
}

func TestLoads(t *testing.T) {
	level := budgettest.Open(t, budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 2 * size}}}).Region("level")
	var old *lua.State
	for range 3 {
		loaded, err := budget.Load(context.Background(), level, func(s scope.Scope) (*lua.State, error) {
			return lua.New(s, lua.Plan{Name: "frogs", Size: size})
		})
		require.NoError(t, err)
		l := loaded.Get()
		require.NoError(t, l.Run("lib", "function add(a, b) return a + b end"))
		goesOn(t, l)
		if old != nil {
			require.ErrorIs(t, old.Run("x", "x = 1"), scope.ErrClosed)
		}
		old = l
	}
	require.NoError(t, level.Rewind(context.Background()))
	require.ErrorIs(t, old.Run("x", "x = 1"), scope.ErrClosed)
}

// TestClosedByItsFunction: if a Go function closes the scope of its caller's state, the script ends
// there. No later line of it runs.
func TestClosedByItsFunction(t *testing.T) {
	for _, script := range []string{"close(); after()", "pcall(close); after()",
		"coroutine.wrap(function() close(); after() end)(); after()",
		"table.sort({1, 2, 3}, close); after()",
		"local x <close> = setmetatable({}, {__close = function() after() end}); close()"} {
		b, err := budget.Open(plan(2 * size))
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, b.Close())
			require.Equal(t, budget.Leaks{Finalizers: 1}, b.Report().Leaks, "the misuse")
		})
		s := openScopeIn(t, b)
		inner := s.Open("script")
		l, err := lua.New(inner, lua.Plan{Name: "frogs", Size: size, Steps: 100_000})
		require.NoError(t, err)
		var check func()
		require.NoError(t, l.Func("after", func([]any) ([]any, error) { t.Error("it went on"); return nil, nil }))
		require.NoError(t, l.Func("close", func([]any) ([]any, error) {
			require.ErrorContains(t, inner.Close(),
				`lua: BUG: the scope of state "frogs" closes while a Go function that it called runs`)
			check = overwrite(t, s)
			return []any{"frog"}, nil
		}))
		require.ErrorIs(t, l.Run("closes", script), scope.ErrClosed)
		check()
		require.ErrorIs(t, l.Run("again", script), scope.ErrClosed)
	}
}

// TestUsedByItsFunction: while Lua calls a Go function, neither the function nor another goroutine
// may use the state.
func TestUsedByItsFunction(t *testing.T) {
	l := newState(t, 0)
	refused := `lua: BUG: state "frogs" is used while it runs: one goroutine at a time uses it, and a Go function that it calls may not`
	uses := func() {
		for _, err := range everyMethod(l) {
			assert.EqualError(t, err, refused)
		}
		assert.Zero(t, l.Stats())
	}
	require.NoError(t, l.Func("uses", func([]any) ([]any, error) {
		uses()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(uses)
		}
		wait.Wait()
		return nil, nil
	}))
	require.NoError(t, l.Run("uses", "uses()"))
	goesOn(t, l)
}

// TestTwoGoroutines: of concurrent calls one runs, and the others return errors.
func TestTwoGoroutines(t *testing.T) {
	l := newState(t, 0)
	var wait sync.WaitGroup
	var sums, refused [4]int
	for g := range 4 {
		wait.Go(func() {
			for i := range 2000 {
				sum, err := l.Call("add", g, i)
				if err != nil {
					assert.ErrorContains(t, err, "is used while it runs")
					refused[g]++
				} else if assert.Equal(t, []any{int64(g + i)}, sum) {
					sums[g]++
				}
			}
		})
	}
	wait.Wait()
	t.Logf("served %v, refused %v", sums, refused)
	goesOn(t, l)
}

// TestClosedMeanwhile: closing the scope waits for a script in another goroutine.
func TestClosedMeanwhile(t *testing.T) {
	s := openScope(t, 2*size)
	for range 10 {
		inner := s.Open("script")
		l, err := lua.New(inner, lua.Plan{Name: "frogs", Size: size, Steps: 3_000_000})
		require.NoError(t, err)
		began := make(chan bool)
		require.NoError(t, l.Func("begin", func([]any) ([]any, error) { close(began); return nil, nil }))
		var wait sync.WaitGroup
		var ended atomic.Bool // on a busy machine the script may end unseen
		wait.Go(func() {
			assert.ErrorIs(t, l.Run("long", "begin(); while true do end"), lua.ErrSteps)
			ended.Store(true)
		})
		<-began
		for !l.Running() && !ended.Load() {
			runtime.Gosched()
		}
		require.NoError(t, inner.Close())
		check := overwrite(t, s)
		wait.Wait()
		check()
	}
}

// TestGoexit: a Go function that ends its goroutine takes Lua's frames with it. The state is lost,
// later calls report that, and its bytes come back.
func TestGoexit(t *testing.T) {
	s := openScope(t, 2*size)
	inner := s.Open("script")
	l, err := lua.New(inner, lua.Plan{Name: "frogs", Size: size})
	require.NoError(t, err)
	require.NoError(t, l.Func("leave", func([]any) ([]any, error) { runtime.Goexit(); return nil, nil }))
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = l.Run("leaves", "coroutine.wrap(function() pcall(leave) end)()")
		t.Error("it went on")
	})
	wait.Wait()
	for _, err := range everyMethod(l) {
		assert.EqualError(t, err,
			`lua: BUG: state "frogs" is lost: a Go function ended its goroutine inside a script`)
	}
	require.NoError(t, inner.Close())
	for _, err := range everyMethod(l) {
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
}

func TestManyStates(t *testing.T) {
	const workers = 4
	b := budgettest.Open(t, budget.Plan{Name: "pond",
		Scratch: budget.ScratchPlan{Workers: workers, Each: 1, Size: 2 * size}})
	rounds := step.Pick(10, 10, 100)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for round := range rounds {
				assert.NoError(t, b.Scratch(worker, 0).Do("script", func(s scope.Scope) error {
					l, err := lua.New(s, lua.Plan{Name: fmt.Sprint(worker), Size: size, Steps: 100_000})
					if err != nil {
						return err
					}
					times := 0
					_ = l.Func("count", func([]any) ([]any, error) { times++; return nil, nil })
					assert.NoError(t, l.Run("work", work+"; for i = 1, 100 do count() end"))
					assert.Equal(t, 100, times)
					assert.ErrorIs(t, l.Run("grow", "count(); "+grow), scope.ErrFull)
					assert.ErrorIs(t, l.Run("steps", "while true do end"), lua.ErrSteps)
					return l.Set("x", round)
				}))
			}
		})
	}
	wait.Wait()
}
