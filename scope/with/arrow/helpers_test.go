package arrow_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/arrow"
)

// open opens a budget with scratch for a number of workers. At the end of the test none of it is in
// use.
func open(t testing.TB, workers int, size uint64) *budget.Budget {
	t.Helper()
	return budgettest.Open(t, budget.Plan{Name: "pond", Scratch: budget.ScratchPlan{Workers: workers, Size: size}})
}

// left runs fn in a scope with this number of free bytes.
func left(p scope.Scratch, bytes uint64, fn func(s scope.Scope) error) error {
	return p.Do("left", func(s scope.Scope) error {
		s.BytesUnzeroed(int(s.Free()-bytes), 1)
		return fn(s)
	})
}

// places are the ways to give a query about so many bytes. Each reports the number of live ones.
var places = map[string]func(t *testing.T, p scope.Scratch, bytes uint64, fn with.Func) error{
	"scope": func(t *testing.T, p scope.Scratch, bytes uint64, fn with.Func) error {
		return left(p, bytes, func(s scope.Scope) error {
			defer func(used uint64) { require.Equal(t, used, p.Stats().Used, "live at the end") }(p.Stats().Used)
			return with.Query(context.Background(), s, "query", fn)
		})
	},
	"heap": func(t *testing.T, p scope.Scratch, bytes uint64, fn with.Func) error {
		return p.Do("heap", func(s scope.Scope) error {
			heap, err := arena.NewHeap(s.BytesUnzeroed(int(bytes)+448, 64), 0)
			require.NoError(t, err)
			defer func() { require.Zero(t, heap.Stats().Used, "live at the end") }()
			return with.InHeap(context.Background(), heap, fn)
		})
	},
	"shared": func(t *testing.T, p scope.Scratch, bytes uint64, fn with.Func) error {
		return p.Do("shared", func(s scope.Scope) error {
			// with room for a lock
			heap, err := arena.NewHeap(s.BytesUnzeroed(int(bytes)+768, 64), 0)
			require.NoError(t, err)
			shared, err := heap.Shared()
			require.NoError(t, err)
			before := heap.Stats().Used
			defer func() { require.Equal(t, before, heap.Stats().Used, "live at the end") }()
			return with.InHeap(context.Background(), shared, fn)
		})
	},
	"buddy": func(t *testing.T, p scope.Scratch, bytes uint64, fn with.Func) error {
		return p.Do("buddy", func(s scope.Scope) error {
			buddy, err := arena.NewBuddy(s.BytesUnzeroed(int(arena.BuddySize(bytes, 64)), 64), 64)
			require.NoError(t, err)
			before := buddy.Stats().Used
			defer func() { require.Equal(t, before, buddy.Stats().Used, "live at the end") }()
			return with.InHeap(context.Background(), buddy, fn)
		})
	},
}
