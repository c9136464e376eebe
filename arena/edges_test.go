package arena_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// TestEdges: any size may be requested of any arena. A size that no block has is full, and the
// arena is unchanged. The C core's tests have the same for C.
func TestEdges(t *testing.T) {
	const blockSize = 4096
	block := func() []byte { return arena.NewBlock(blockSize, 64) }
	linear, err := arena.NewLinear(block())
	require.NoError(t, err)
	stack, err := arena.NewStack(block())
	require.NoError(t, err)
	ring, err := arena.NewRing(block())
	require.NoError(t, err)
	frame, err := arena.NewFrame(block(), 2)
	require.NoError(t, err)
	heap, err := arena.NewHeap(block(), 0)
	require.NoError(t, err)
	buddy, err := arena.NewBuddy(block(), 64)
	require.NoError(t, err)
	sizes := []uint64{blockSize, 1<<38 - 1, 1 << 38, 1<<38 + 1, 1<<62 - 1, 1 << 62, 1 << 63, 1<<64 - 1<<20, 1<<64 - 2,
		1<<64 - 1}
	all := map[string]arena.Allocator{"Linear": linear, "LinearFar": linear.Far(), "Stack": stack,
		"StackFar": stack.Far(), "Ring": ring, "Frame": frame, "FrameHandle": frame.Now(), "Heap": heap,
		"Buddy": buddy, "Proxy": arena.NewProxy("edges", heap)}
	for name, a := range all {
		for _, size := range sizes {
			for align := uint64(1); align <= arena_c.AlignMax; align *= 2 {
				require.True(t, a.Alloc(size, align) == nil, "%s: %#x bytes aligned to %d", name, size, align)
			}
			require.True(t, ring.Overwrite(size, 8) == nil)
		}
		for _, align := range []uint64{0, 3, 24, 2 * arena_c.AlignMax, 1 << 63, 1<<64 - 1} {
			assert.Panics(t, func() { a.Alloc(8, align) }, name)
		}
		assert.True(t, a.Alloc(8, 8) != nil, name)
	}
	p, q, page := linear.Alloc(64, 8), heap.Alloc(64, 8), buddy.Alloc(64, 8)
	failed := heap.Stats().Failed
	for _, size := range sizes {
		ok, err := linear.Resize(p, 64, size)
		assert.True(t, !ok && err == nil, "Resize to %#x: %v", size, err)
		r, err := heap.Realloc(q, size)
		assert.True(t, r == nil && err == nil, "Realloc to %#x: %v", size, err)
		r, err = buddy.Realloc(page, size)
		assert.True(t, r == nil && err == nil, "Realloc to %#x: %v", size, err)
	}
	assert.Equal(t, failed+uint64(len(sizes)), heap.Stats().Failed)
}
