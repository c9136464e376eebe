package save_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// TestArenasInStates: in each build, an arena of package arena whose block is in a state is
// restored with it, and its pointers stay valid.
func TestArenasInStates(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var linear arena.Linear
	var heap arena.Heap
	var queue arena.Ring
	var pool arena.BlockPool[room]
	load(t, b, "extra", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		block := func() []byte { return byteMaker.SliceAligned(s, 4096, 64) }
		var errs [4]error
		linear, errs[0] = arena.NewLinear(block())
		heap, errs[1] = arena.NewHeap(block(), 0)
		queue, errs[2] = arena.NewRing(block())
		pool, errs[3] = arena.NewBlockPool[room](block())
		require.Equal(t, [4]error{}, errs)
		heap.MayLive()
		ring = save.NewRing(s, 2, state)
	})
	var all []*room
	for _, from := range []arena.Allocator{linear, heap, queue} {
		all = append(all, (*room)(from.Alloc(uint64(unsafe.Sizeof(room{})), 8)))
	}
	all = append(all, pool.Get())
	for i, x := range all {
		*x = room{Tick: uint64(i + 1)}
	}
	require.NoError(t, ring.Take(1))
	require.NoError(t, pool.Put(all[3]))
	linear.Reset()
	heap.Reset()
	queue.Reset()
	for range 3 {
		require.NoError(t, ring.Restore(background, 1))
		for i, x := range all {
			assert.EqualValues(t, i+1, x.Tick)
			x.Tick++
		}
		require.NoError(t, pool.Put(all[3]))
		linear.Reset()
	}
	require.NoError(t, ring.Restore(background, 1))
	for range 10 {
		pool.Get()
		linear.Alloc(100, 8)
		heap.Alloc(100, 8)
	}
	require.NoError(t, ring.Restore(background, 1))
	for range 10 {
		*(*uint64)(heap.Alloc(100, 8)) = 8
		*(*uint64)(linear.Alloc(100, 8)) = 8
	}
}
