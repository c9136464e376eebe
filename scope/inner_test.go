package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// inner returns the inner arenas in the report of the only region, without their Made.
func inner(t *testing.T, r budget.Report) []stack.Inner {
	t.Helper()
	list := r.Arenas[0].Inner
	for i := range list {
		assert.Equal(t, arena_c.Checked, len(list[i].Made) != 0)
		list[i].Made = nil
	}
	return list
}

// TestReportTellsOfArenasWithin: a report lists a heap, a buddy and a ring without the program's
// help, and no arena of a closed scope.
func TestReportTellsOfArenasWithin(t *testing.T) {
	b := open(t)
	var want []stack.Inner
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		heap, err := arena.NewHeap(s.BytesUnzeroed(16384, 64), 0)
		require.NoError(t, err)
		require.NotNil(t, heap.Alloc(100, 8))
		require.Nil(t, heap.Alloc(1<<20, 8))
		heap.MayLive()
		inside := s.Open("inside")
		buddy, err := arena.NewBuddy(inside.BytesUnzeroed(8192, 64), 64)
		require.NoError(t, err)
		require.NotNil(t, buddy.Alloc(64, 8))
		ring, err := arena.NewRing(inside.BytesUnzeroed(4096, 64))
		require.NoError(t, err)
		require.NotNil(t, ring.Alloc(8, 8))
		of := func(kind, scopeName string, s arena.Stats, live, failed uint64) stack.Inner {
			return stack.Inner{Kind: kind, Scope: scopeName, Size: s.Size, Used: s.Used, Peak: s.Peak, Live: live,
				Failed: failed}
		}
		want = []stack.Inner{of("heap", "level", heap.Stats().Stats, 1, 1)}
		all := append(want, of("buddy", "inside", buddy.Stats().Stats, 1, 0), of("ring", "inside", ring.Stats(), 1, 0))
		assert.Equal(t, all, inner(t, b.Report()))
		assert.Contains(t, b.Report().String(), `heap in scope "level" used `)
		buddy.MayLive()
		return inside.Close()
	}))
	assert.Equal(t, want, inner(t, b.Published()))
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	assert.Empty(t, b.Published().Arenas[0].Inner)
}
