package scope_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

func kindsOf(st *stack.Stack) (kinds []arena_c.RoomKind) {
	for _, r := range st.Rooms() {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

func made[A any](t *testing.T) func(a A, err error) A {
	return func(a A, err error) A {
		t.Helper()
		require.NoError(t, err)
		return a
	}
}

// TestRoomsEndWithTheirBytes: an arena is known to the end of its scope, of a constructor that
// fails, or of temporaries.
func TestRoomsEndWithTheirBytes(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("outer")
	st := scope.StackOf(s)
	made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(1024, 64), 0))
	inner := scratch.Open("inner")
	made[arena.Ring](t)(arena.NewRing(inner.BytesUnzeroed(1024, 64)))
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap, arena_c.RoomRing}, kindsOf(st))
	require.NoError(t, inner.Close())
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(st))

	_, err := scope.Object[point](func(*point) error { return nil }).Make(s, func(*point) error {
		made[arena.Buddy](t)(arena.NewBuddy(s.BytesUnzeroed(1024, 64), 64))
		assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap, arena_c.RoomBuddy}, kindsOf(st))
		return errors.New("no")
	})
	require.Error(t, err)
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(st))

	temp := s.Temp(2048)
	made[arena.Heap](t)(arena.NewHeap(temp.BytesUnzeroed(1024, 64), 0))
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap, arena_c.RoomHeap}, kindsOf(st))
	require.NoError(t, temp.Close())
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(st))
	require.NoError(t, s.Close())
	assert.Empty(t, kindsOf(st))
}

// TestRoomsInRooms: a new arena replaces the arena on its bytes, but not an arena whose block
// contains it.
func TestRoomsInRooms(t *testing.T) {
	_, s := opened(t, "s")
	st := scope.StackOf(s)
	block := s.BytesUnzeroed(8192, 4096)
	buddy := made[arena.Buddy](t)(arena.NewBuddy(block, 64))
	page := buddy.Alloc(1024, 64)
	made[arena.BlockPool[point]](t)(arena.NewBlockPool[point](arena.BaseAt(page, 1024).Bytes()))
	rooms := st.Rooms()
	require.Len(t, rooms, 2)
	assert.Equal(t, arena_c.RoomBuddy, rooms[0].Kind)
	assert.Equal(t, uint64(8192), rooms[0].Size)
	assert.Equal(t, arena_c.RoomPool, rooms[1].Kind)
	assert.Equal(t, uint64(1024), rooms[1].Size)
	header, _ := s.C()
	assert.Equal(t, arena_c.Place(page, header), rooms[1].Offset)
	made[arena.Shared](t)(buddy.Shared())
	assert.Contains(t, kindsOf(st), arena_c.RoomShared)

	made[arena.Heap](t)(arena.NewHeap(block, 0))
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(st), "the buddy's bytes are the heap's")
	_, err := arena.NewBuddy(block[:640], 1<<20)
	require.Error(t, err)
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(st), "what isn't made isn't known")
	require.NoError(t, s.Close())
}

func TestRoomsByOffset(t *testing.T) {
	_, s := opened(t, "s")
	first, second := s.BytesUnzeroed(1024, 64), s.BytesUnzeroed(1024, 64)
	made[arena.Heap](t)(arena.NewHeap(second, 0))
	made[arena.Ring](t)(arena.NewRing(first))
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomRing, arena_c.RoomHeap}, kindsOf(scope.StackOf(s)))
	require.NoError(t, s.Close())
}

// TestRoomsOfAnotherGoroutine: a goroutine may make an arena on bytes of a scope while its owner
// goes on.
func TestRoomsOfAnotherGoroutine(t *testing.T) {
	scratch, s := opened(t, "s")
	block := s.BytesUnzeroed(1024, 64)
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 100 {
			_, err := arena.NewHeap(block, 0)
			assert.NoError(t, err)
		}
	})
	for range 100 {
		require.NoError(t, scratch.Do("inner", func(s scope.Scope) error {
			_, err := arena.NewRing(s.BytesUnzeroed(1024, 64))
			return err
		}))
	}
	wait.Wait()
	assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(scope.StackOf(s)))
	require.NoError(t, s.Close())
}

// TestRoomsOfBudgets: each arena has its own rooms, also in a budget inside another, or in none.
func TestRoomsOfBudgets(t *testing.T) {
	outer, s := opened(t, "outer")
	plan := budget.Plan{Name: "inner", Regions: []budget.RegionPlan{{Name: "level", Size: 4096}}}
	need, err := plan.Need()
	require.NoError(t, err)
	big, err := budget.Open(budget.Plan{Name: "big",
		Regions: []budget.RegionPlan{{Name: "level", Size: need + budget.MiB}}})
	require.NoError(t, err)
	load := func(b *budget.Budget, fn func(s scope.Scope)) {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*point, error) {
			fn(s)
			return nil, nil
		})
		require.NoError(t, err)
	}
	load(big, func(b scope.Scope) {
		made[arena.Heap](t)(arena.NewHeap(b.BytesUnzeroed(1024, 64), 0))
		if !arena_c.Checked && !arena_c.Asan { // in those a budget has no mirror of a mirror
			in, err := budget.OpenIn(b.BytesUnzeroed(int(need), 64), plan)
			require.NoError(t, err)
			load(in, func(s scope.Scope) {
				made[arena.Ring](t)(arena.NewRing(s.BytesUnzeroed(1024, 64)))
				assert.Equal(t, []arena_c.RoomKind{arena_c.RoomRing}, kindsOf(scope.StackOf(s)))
			})
			require.NoError(t, in.Close())
		}
		assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(scope.StackOf(b)))
	})
	require.NoError(t, big.Close())
	made[arena.Heap](t)(arena.NewHeap(arena.NewBlock(1024, 64), 0))
	assert.Empty(t, kindsOf(scope.StackOf(s)))
	assert.Equal(t, 1, outer.Depth())
}

// TestRoomsOfManyArenas: a budget is found from the start of its first arena to the drop of its
// last.
func TestRoomsOfManyArenas(t *testing.T) {
	for regions := 1; regions <= 3; regions++ {
		plan := budget.Plan{Name: "many"}
		for _, name := range []string{"a", "b", "c"}[:regions] {
			plan.Regions = append(plan.Regions, budget.RegionPlan{Name: name, Size: 4096})
		}
		b, err := budget.Open(plan)
		require.NoError(t, err)
		for _, r := range plan.Regions {
			_, err = budget.Load(t.Context(), b.Region(r.Name), func(s scope.Scope) (*point, error) {
				made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(1024, 64), 0))
				assert.Equal(t, []arena_c.RoomKind{arena_c.RoomHeap}, kindsOf(scope.StackOf(s)), "%s of %d",
					r.Name, regions)
				return nil, nil
			})
			require.NoError(t, err)
		}
		require.NoError(t, b.Close())
	}
}
