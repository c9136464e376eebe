package container_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// TestContainersOnAHeap: each kind is made, used, freed and made again, on a heap and on a buddy,
// in a scope and outside a budget. After Free the container is empty and has no block in the heap.
func TestContainersOnAHeap(t *testing.T) {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("heap")
	inScope, err := arena.NewHeap(s.BytesUnzeroed(8192, 64), 0)
	require.NoError(t, err)
	outside, err := arena.NewHeap(arena.NewBlock(8192, 64), 0)
	require.NoError(t, err)
	buddy, err := arena.NewBuddy(s.BytesUnzeroed(16384, 64), 64)
	require.NoError(t, err)
	for name, a := range map[string]arena.Reallocator{"heap": inScope, "outside": outside, "buddy": buddy} {
		for range 3 {
			list, ok := container.NewListOn(a, flies, 3)
			require.True(t, ok, name)
			byID, ok := container.NewMapOn(a, flyIDs, flies, 3)
			require.True(t, ok, name)
			byName, ok := container.NewStringMapOn(a, flies, 2, 8)
			require.True(t, ok, name)
			for id := range int32(3) {
				assert.True(t, list.Push(fly{ID: id}))
				assert.True(t, byID.Set(id*100, fly{ID: id}))
			}
			assert.False(t, list.Push(fly{}))
			assert.False(t, byID.Set(7, fly{}))
			require.NoError(t, byName.Set("ada", fly{ID: 7}))
			require.NoError(t, byName.Set("zoe", fly{}))
			require.ErrorIs(t, byName.Set("bob", fly{}), scope.ErrFull)
			assert.ErrorContains(t, byName.Set("bob", fly{}),
				"a StringMap has 2 of 2 keys; make it with an n of 3 or more")
			assert.Equal(t, []fly{{}, {ID: 1}, {ID: 2}}, list.Slice())
			assert.EqualValues(t, 2, byID.Get(200).ID)
			assert.EqualValues(t, 7, byName.Get("ada").ID)

			require.NoError(t, errors.Join(list.Free(), byID.Free(), byName.Free()))
			assert.Zero(t, list.Len()+byID.Len()+byName.Len())
			assert.Nil(t, byID.Get(200))
			assert.Nil(t, byName.Get("ada"))
			for kind, err := range map[string]error{"List": list.Free(), "map": byID.Free()} {
				assert.EqualError(t, err, "scope: BUG: Free of a "+kind+" that was freed")
				assert.ErrorIs(t, err, scope.ErrClosed)
			}
			assert.PanicsWithError(t, "scope: BUG: Push to a List that was freed", func() { list.Push(fly{}) })
			assert.PanicsWithError(t, "scope: BUG: Set in a Map that was freed", func() { byID.Set(1, fly{}) })
		}
	}
	assert.Zero(t, inScope.Stats().Live+outside.Stats().Live+buddy.Stats().Live)

	var lists [64]container.List[fly]
	made, ok := 0, true
	for ; ok; made++ {
		lists[made], ok = container.NewListOn(inScope, flies, 40)
	}
	assert.Greater(t, made, 10)
	require.NoError(t, lists[3].Free())
	lists[3], ok = container.NewListOn(inScope, flies, 40)
	assert.True(t, ok, "what one gave back is the next one's")
	inScope.MayLive()
	own := container.NewList(s, flies, 1)
	assert.ErrorContains(t, own.Free(), "its scope frees it")
	require.NoError(t, s.Close())
	assert.Zero(t, lists[3].Len(), "its heap's scope is closed")
	assert.ErrorIs(t, lists[3].Free(), scope.ErrClosed)
	assert.Panics(t, func() { lists[3].Push(fly{}) })
}

func TestNoGoAllocationOnAHeap(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate: go test ./scope/container runs it")
	}
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("heap")
	heap, err := arena.NewHeap(s.BytesUnzeroed(8192, 64), 0)
	require.NoError(t, err)
	var a arena.Reallocator = heap
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		list, _ := container.NewListOn(a, flies, 3)
		byID, _ := container.NewMapOn(a, flyIDs, flies, 3)
		byName, _ := container.NewStringMapOn(a, flies, 2, 8)
		if list.Free() != nil || byID.Free() != nil || byName.Free() != nil {
			panic("not freed")
		}
	}))
	require.NoError(t, s.Close())
}

func TestContainersOnAHeapOfTemporaries(t *testing.T) {
	b := openPond()
	defer b.Close()
	s := b.Scratch(0, 0).Open("temp")
	temp := s.Temp(4096)
	heap, err := arena.NewHeap(temp.BytesUnzeroed(2048, 64), 0)
	require.NoError(t, err)
	heap.MayLive()
	list, ok := container.NewListOn(heap, flies, 3)
	require.True(t, ok)
	assert.True(t, list.Push(fly{}))
	require.NoError(t, temp.Close())
	assert.Zero(t, list.Len())
	require.NoError(t, s.Close())
}

func TestMapsOnAHeapOfAState(t *testing.T) {
	run := func() uint64 {
		b, err := budget.Open(budget.Plan{Name: "pond",
			Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, State: true}}})
		require.NoError(t, err)
		defer b.Close()
		var heap arena.Heap
		var ring *save.Ring
		level := b.Region("level")
		_, err = budget.Load(context.Background(), level, func(s scope.Scope) (*fly, error) {
			state, root := save.Begin(level, s, flies)
			var err error
			if heap, err = arena.NewHeap(s.BytesUnzeroed(8192, 64), 0); err == nil {
				heap.MayLive()
				ring = save.NewRing(s, 2, state)
			}
			return root, err
		})
		require.NoError(t, err)
		byID, ok := container.NewMapOn(heap, flyIDs, flies, 10)
		require.True(t, ok)
		byID.Set(7, fly{ID: 7})
		byID.Set(8, fly{ID: 8})
		byID.Delete(8)
		require.NoError(t, ring.Take(1))
		byID.Delete(7)
		require.NoError(t, ring.Restore(context.Background(), 1))
		assert.EqualValues(t, 7, byID.Get(7).ID)
		hash, err := ring.Hash(1)
		require.NoError(t, err)
		return hash
	}
	assert.Equal(t, run(), run())
}
