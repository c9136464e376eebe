//go:build !race && !asan && !checked

package conformance

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// TestALargeBuddy: a buddy touches the memory of used blocks, and the bytes that note free blocks.
func TestALargeBuddy(t *testing.T) {
	for _, is := range []struct{ size, smallest uint64 }{{64 << 30, 64 << 10}, {64 << 30, 1 << 20},
		{2 << 30, 64}} {
		front := arena.BuddySize(is.size, is.smallest) - is.size
		mapped := is.size + front + 2*arena_c.AlignMax
		if mapped > math.MaxInt {
			continue // a system of 32 bits
		}
		memory, err := unix.Mmap(-1, 0, int(mapped), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			t.Skip("ulimit -v leaves too few addresses; without it, go test ./tests/conformance runs it:", err)
		}
		first := up(address(unsafe.Pointer(&memory[0]))+front, arena_c.AlignMax) -
			address(unsafe.Pointer(&memory[0]))
		b, err := arena.NewBuddy(memory[first-front&^63:][:front&^63+is.size], is.smallest)
		require.NoError(t, err)
		// As in a release build: filling would touch all memory.
		(*arena_c.Buddy)(at(memory[first-front&^63:])).SetPlain()
		require.Equal(t, []uint64{is.size, is.size}, []uint64{b.Stats().Size, b.LargestFree()})
		all := b.Alloc(is.size, arena_c.AlignMax)
		require.True(t, all == unsafe.Pointer(&memory[first]))
		unsafe.Slice((*byte)(all), is.size)[is.size-1] = 7
		assert.Nil(t, b.Alloc(1, 1))
		require.NoError(t, b.Free(all))
		small, half := b.Alloc(1, 1), b.Alloc(is.size/2, 1)
		assert.True(t, small == all && half == unsafe.Add(all, is.size/2))
		grown, err := b.Realloc(small, is.size/2)
		require.NoError(t, err)
		assert.True(t, grown == small)
		require.NoError(t, b.Free(half))
		require.NoError(t, b.Free(grown))
		assert.Equal(t, is.size, b.LargestFree())
		require.NoError(t, unix.Munmap(memory))
	}
}
