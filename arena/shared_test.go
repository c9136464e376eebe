package arena_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// ExampleShared passes a Shared's functions to a C library. The example only shows the call.
func ExampleShared() {
	heap, err := arena.NewHeap(arena.NewBlock(64<<10, 64), 256)
	if err != nil {
		panic(err)
	}
	shared, err := heap.Shared()
	if err != nil {
		panic(err)
	}
	f := shared.Functions()
	// C.pond_open(f.Context, f.Malloc, f.Calloc, f.Realloc, f.Free, f.Size)
	// C.pond_close()
	fmt.Println(f.Context != nil, shared.Err())
	shared.Locked(func() { fmt.Println(heap.Stats().Live, "block: the lock's own") })
	// Output:
	// true <nil>
	// 1 block: the lock's own
}

func TestSharedSaysWhyNot(t *testing.T) {
	h := newHeap(t, 4096)
	s, err := h.Shared()
	require.NoError(t, err)
	saysWhyNot(t, "Shared", s, 100)
	q := s.Alloc(10, 1024)
	assert.Zero(t, uintptr(q)%1024)
	require.NoError(t, s.Free(q))
	other := &struct {
		inside [8]uint64
		name   *string
	}{name: new(string)}
	assert.EqualError(t, s.Free(unsafe.Pointer(&other.inside)), "arena: BUG: Shared.Free: not a block of this arena")
	require.NoError(t, s.Err(), "of C nothing was said")
	f := frogs.New(s)
	require.NoError(t, frogs.Delete(s, f))
	x := arena.NewProxy("pond", s)
	x.Alloc(10, 16)
	assert.ErrorContains(t, x.Close(), "1 of 1 blocks live")
	for h.Alloc(64, 16) != nil {
	}
	_, err = h.Shared()
	assert.EqualError(t, err, fmt.Sprintf("arena: arena.Heap has no %d bytes left for a lock",
		unsafe.Sizeof(arena_c.Shared{})))
}

func TestSharedLockOutlivesAPanic(t *testing.T) {
	s, err := newHeap(t, 4096).Shared()
	require.NoError(t, err)
	assert.Panics(t, func() { s.Locked(func() { panic("no") }) })
	assert.NotNil(t, s.Alloc(1, 1))
}

// TestSharedSaysWhoWentPastIt: in checked builds Err reports calls without the lock.
func TestSharedSaysWhoWentPastIt(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build sees two calls at once: go test -tags checked ./arena does")
	}
	block := arena.NewBlock(8192, 64)
	past := func(a interface {
		Shared() (arena.Shared, error)
	}, busy *uint64) {
		s, err := a.Shared()
		require.NoError(t, err)
		require.NoError(t, s.Err())
		*busy = 1
		assert.Nil(t, s.Alloc(64, 16))
		*busy = 0
		assert.EqualError(t, s.Err(),
			"arena: BUG: 1 call refused: another goroutine or thread is in a call: put one lock around every call, "+
				"the lock of the Shared")
	}
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	past(h, &(*arena_c.Heap)(unsafe.Pointer(&block[0])).Busy)
	b, err := arena.NewBuddy(block, 64)
	require.NoError(t, err)
	past(b, &(*arena_c.Buddy)(unsafe.Pointer(&block[0])).Busy)
}

// TestMadeObjectsWherever: the HeapMaker of a value deletes it, on each arena and each wrapper. A
// Free of nil does nothing.
func TestMadeObjectsWherever(t *testing.T) {
	odd := arena.HeapOf[[9]int64](nil)
	buddy, err := arena.NewBuddy(arena.NewBlock(8192, 64), 64)
	require.NoError(t, err)
	heap := newHeap(t, 4096)
	for _, a := range []interface {
		arena.Reallocator
		Shared() (arena.Shared, error)
	}{heap, buddy} {
		s, err := a.Shared()
		require.NoError(t, err)
		for _, r := range []arena.Reallocator{a, s, arena.NewProxy("a", a), arena.NewProxy("s", s)} {
			x := odd.New(r)
			require.NoError(t, odd.Delete(r, x), "%T", r)
			require.Error(t, odd.Delete(r, x), "%T", r)
			require.ErrorContains(t, odd.Delete(r, (*[9]int64)(r.Alloc(300, 8))), "bytes, the value", "%T", r)
			require.NoError(t, r.Free(nil), "%T", r)
		}
	}
}
