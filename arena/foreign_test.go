package arena_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

// TestAddressesInGoObjects passes each arena the address of a Go object that holds Go pointers. The
// arena itself refuses it, in C and in Go, before cgo would.
func TestAddressesInGoObjects(t *testing.T) {
	other := &struct {
		inside [8]uint64
		name   *string
	}{name: new(string)}
	p := unsafe.Pointer(&other.inside)
	block := func() []byte { return arena.NewBlock(8192, 64) }

	linear, err := arena.NewLinear(block())
	require.NoError(t, err)
	_, err = linear.Resize(p, 8, 16)
	assert.ErrorContains(t, err, "BUG")
	stack, err := arena.NewStack(block())
	require.NoError(t, err)
	assert.ErrorContains(t, stack.Free(p), "BUG")
	assert.ErrorContains(t, stack.Far().Free(p), "BUG")
	ring, err := arena.NewRing(block())
	require.NoError(t, err)
	assert.ErrorContains(t, ring.Free(p), "BUG")
	pool, err := arena.NewBlockPool[[8]uint64](block())
	require.NoError(t, err)
	assert.ErrorContains(t, pool.Put(&other.inside), "BUG")
	heap, err := arena.NewHeap(block(), 0)
	require.NoError(t, err)
	assert.ErrorContains(t, heap.Free(p), "BUG")
	buddy, err := arena.NewBuddy(block(), 64)
	require.NoError(t, err)
	assert.ErrorContains(t, buddy.Free(p), "BUG")
	_, err = buddy.Realloc(p, 8)
	assert.ErrorContains(t, err, "BUG")
}
