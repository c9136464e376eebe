//go:build checked

package arena_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func block(size int) []byte {
	words := make([]uint64, size/8+8)
	skip := -uintptr(unsafe.Pointer(&words[0])) & 63
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&words[0]), skip)), size)
}

func made[A any](a A, err error) A {
	if err != nil {
		panic(err)
	}
	return a
}

// TestARequestThatIsRefusedOnceChangesNothing: the next request gets the address that the refused
// one would have had.
func TestARequestThatIsRefusedOnceChangesNothing(t *testing.T) {
	pool := made(arena.NewBlockPool[uint64](block(1024)))
	linear, stack := made(arena.NewLinear(block(1024))), made(arena.NewStack(block(1024)))
	frame := made(arena.NewFrame(block(1024), 2))
	of := func(a arena.Allocator) func() unsafe.Pointer { return func() unsafe.Pointer { return a.Alloc(48, 16) } }
	for name, give := range map[string]func() unsafe.Pointer{
		"Linear": of(linear), "LinearFar": of(made(arena.NewLinear(block(1024))).Far()),
		"Stack": of(stack), "StackFar": of(made(arena.NewStack(block(1024))).Far()),
		"Frame": of(frame), "FrameHandle": of(frame.Now()),
		"Ring": of(made(arena.NewRing(block(1024)))), "Heap": of(made(arena.NewHeap(block(2048), 0))),
		"Buddy":  of(made(arena.NewBuddy(block(2048), 64))),
		"Shared": of(made(made(arena.NewHeap(block(2048), 0)).Shared())),
		"Pool":   func() unsafe.Pointer { return unsafe.Pointer(pool.Get()) },
	} {
		first, second := give(), give()
		step := uintptr(second) - uintptr(first)
		require.NotNil(t, second, name)
		arena_c.FailAt(2)
		third := give()
		refused, _ := arena_c.Failed()
		assert.False(t, refused, name)
		assert.Nil(t, give(), name)
		refused, told := arena_c.Failed()
		assert.True(t, refused, name)
		assert.False(t, told, name)
		fourth := give()
		require.NotNil(t, fourth, name)
		assert.Equal(t, step, uintptr(third)-uintptr(second), name)
		assert.Equal(t, step, uintptr(fourth)-uintptr(third), name)
	}
}

func TestWhatIsFullAnywayIsNoRequest(t *testing.T) {
	pool := made(arena.NewBlockPool[uint64](block(128)))
	for pool.Get() != nil {
	}
	linear, ring := made(arena.NewLinear(block(256))), made(arena.NewRing(block(256)))
	arena_c.FailAt(1)
	assert.Nil(t, pool.Get())
	assert.Nil(t, linear.Alloc(1024, 8))
	assert.Nil(t, linear.Far().Alloc(1024, 8))
	assert.Nil(t, ring.Alloc(1024, 8))
	refused, _ := arena_c.Failed()
	assert.False(t, refused)
	assert.Nil(t, linear.Alloc(8, 8))
	refused, _ = arena_c.Failed()
	assert.True(t, refused)
}

// TestARingThatIsRefusedDoesNotWrap: a request at the ring's end or at its start counts once.
func TestARingThatIsRefusedDoesNotWrap(t *testing.T) {
	ring := made(arena.NewRing(block(128 + 4*40)))
	oldest := ring.Alloc(72, 8)
	ring.Alloc(32, 8)
	require.NoError(t, ring.Free(oldest))
	for _, size := range []uint64{24, 64} { // after the newest; at the start
		used := ring.Stats().Used
		arena_c.FailAt(1)
		assert.Nil(t, ring.Alloc(size, 8), size)
		assert.Equal(t, used, ring.Stats().Used, size)
		assert.NotNil(t, ring.Alloc(size, 8), size)
	}
}

func TestAResizeIsARequestWhenItGrows(t *testing.T) {
	linear, heap := made(arena.NewLinear(block(1024))), made(arena.NewHeap(block(2048), 0))
	buddy := made(arena.NewBuddy(block(4096), 64))
	p, q, page := linear.Alloc(32, 8), heap.Alloc(64, 16), buddy.Alloc(128, 1)
	arena_c.FailAt(1)
	same, err := buddy.Realloc(page, 100)
	assert.Equal(t, page, same)
	require.NoError(t, err)
	ok, err := linear.Resize(p, 32, 16)
	assert.True(t, ok)
	require.NoError(t, err)
	moved, err := heap.Realloc(q, 48)
	assert.Equal(t, q, moved)
	require.NoError(t, err)
	used := linear.Stats().Used
	ok, err = linear.Resize(p, 16, 64)
	assert.False(t, ok)
	require.NoError(t, err)
	assert.Equal(t, used, linear.Stats().Used)
	arena_c.FailAt(1)
	moved, err = heap.Realloc(q, 512)
	assert.Nil(t, moved)
	require.NoError(t, err)
	assert.EqualValues(t, 1, heap.Stats().Failed)
	size, err := heap.SizeOf(q)
	require.NoError(t, err)
	assert.EqualValues(t, 48, size)
	moved, err = heap.Realloc(q, 512)
	assert.NotNil(t, moved)
	require.NoError(t, err)
	arena_c.FailAt(1)
	larger, err := buddy.Realloc(page, 512)
	assert.Nil(t, larger)
	require.NoError(t, err)
	assert.EqualValues(t, 1, buddy.Stats().Failed)
	larger, err = buddy.Realloc(page, 512)
	assert.NotNil(t, larger)
	require.NoError(t, err)
}

// TestWordsOfAHeapAreRefusedOneByOne: after any single refusal the call returns full, and the heap
// is unchanged.
func TestWordsOfAHeapAreRefusedOneByOne(t *testing.T) {
	memory := block(4096)
	heap, base := made(arena.NewHeap(memory, 0)), arena.BaseOf(memory)
	defer arena_c.FailAt(0) // the last round refuses no request
	for nth := uint64(1); ; nth++ {
		arena_c.FailAt(nth)
		slice := octets.Slice(heap, 10)
		full := slice == nil
		longer, err := octets.Grow(heap, slice, 30)
		require.NoError(t, err)
		if longer != nil {
			slice = longer
		}
		name, ok := arena.NewString(heap, base, "ada")
		refused, _ := arena_c.Failed()
		assert.Equal(t, refused, full || longer == nil || !ok, "request %d", nth)
		require.NoError(t, octets.DeleteSlice(heap, slice))
		require.NoError(t, arena.DeleteString(heap, base, name))
		require.Zero(t, heap.Stats().Live)
		if !refused {
			assert.EqualValues(t, 4, nth)
			return
		}
	}
}
