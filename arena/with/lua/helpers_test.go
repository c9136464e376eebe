package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

const size = 256 * budget.KiB

// openScope returns a scope, and fails the test unless all bytes are free at its end.
func openScope(t testing.TB, bytes uint64) scope.Scope {
	t.Helper()
	return openScopeIn(t, budgettest.Open(t, plan(bytes)))
}

func plan(bytes uint64) budget.Plan {
	return budget.Plan{Name: "pond", Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: bytes}}
}

func openScopeIn(t testing.TB, b *budget.Budget) scope.Scope {
	t.Helper()
	s := b.Scratch(0, 0).Open("level")
	before := s.Free()
	t.Cleanup(func() {
		require.Equal(t, before, s.Free(), "bytes that didn't come back")
		require.NoError(t, s.Close())
	})
	return s
}

// openState makes a state in a scope of its own, which the caller or the test's end closes.
func openState(t testing.TB, plan lua.Plan) (l *lua.State, inner scope.Scope) {
	t.Helper()
	s := openScope(t, plan.Size+64*budget.KiB)
	inner = s.Open("script")
	t.Cleanup(func() { _ = inner.Close() }) // a test whose Close must succeed calls it
	l, err := lua.New(inner, plan)
	require.NoError(t, err)
	require.NoError(t, l.Run("lib", "function add(a, b) return a + b end"))
	return l, inner
}

func newState(t testing.TB, steps int64) *lua.State {
	t.Helper()
	l, inner := openState(t, lua.Plan{Name: "frogs", Size: size, Steps: steps})
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	return l
}

func goesOn(t testing.TB, l *lua.State) {
	t.Helper()
	sum, err := l.Call("add", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []any{int64(3)}, sum)
}
