package save_test

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// TestRestoreOfHeapAndBuddy: both store only offsets, so a state may have them.
func TestRestoreOfHeapAndBuddy(t *testing.T) {
	for _, parked := range []uint64{0, 16} {
		ctx := context.Background()
		b, err := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{
			{Name: "room", Size: 512 * budget.KiB, State: true}}})
		require.NoError(t, err)
		var heap arena.Heap
		var buddy arena.Buddy
		var ring *save.Ring
		var hb, bb []byte
		room := b.Region("room")
		_, err = budget.Load(ctx, room, func(s scope.Scope) (m *match, err error) {
			var state *save.State
			state, m = save.Begin(room, s, matchMaker)
			hb, bb = s.BytesUnzeroed(16<<10, 64), s.BytesUnzeroed(16<<10, 64)
			if heap, err = arena.NewHeap(hb, parked); err != nil {
				return nil, err
			}
			if buddy, err = arena.NewBuddy(bb, 64); err != nil {
				return nil, err
			}
			heap.MayLive()
			buddy.MayLive()
			ring = save.NewRing(s, 4, state)
			return m, nil
		})
		require.NoError(t, err)
		walks := func(when string) {
			_, code := (*arena_c.Heap)(unsafe.Pointer(&hb[0])).Walk(make([]arena_c.Block, 1000))
			assert.Equal(t, arena_c.OK, code, "heap, %s", when)
			assert.Equal(t, arena_c.OK, (*arena_c.Buddy)(unsafe.Pointer(&bb[0])).CheckAll(), "buddy, %s", when)
		}
		for _, a := range []arena.Reallocator{heap, buddy} {
			p, q, r := a.Alloc(100, 16), a.Alloc(100, 16), a.Alloc(200, 16)
			x := unsafe.Slice((*byte)(q), 100)
			for i := range x {
				x[i] = 7
			}
			require.NoError(t, a.Free(p))
			require.NoError(t, ring.Take(1))
			hash, err := ring.Hash(1)
			require.NoError(t, err)
			require.NoError(t, a.Free(q))
			p = a.Alloc(300, 16)
			clear(unsafe.Slice((*byte)(p), 300))
			r, err = a.Realloc(r, 3000)
			require.NoError(t, err)
			require.NotNil(t, r)
			walks("before")
			require.NoError(t, ring.Restore(ctx, 1))
			walks("after")
			for i := range x {
				require.EqualValues(t, 7, x[i])
			}
			size, err := a.SizeOf(q)
			require.NoError(t, err)
			require.GreaterOrEqual(t, size, uint64(100))
			require.NoError(t, ring.Take(2))
			again, err := ring.Hash(2)
			require.NoError(t, err)
			require.Equal(t, hash, again)
			require.NoError(t, a.Free(q))
			require.Error(t, a.Free(q))
			walks("at the end")
		}
		require.NoError(t, b.Close())
	}
}
