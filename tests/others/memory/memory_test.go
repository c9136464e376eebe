package memory

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

func used(t *testing.T, size int) *place {
	t.Helper()
	block := arena.NewBlock(size, 64)
	heap, err := arena.NewHeap(block, 256)
	require.NoError(t, err)
	was := now
	Use(heap, block)
	t.Cleanup(func() { now = was })
	return now
}

// TestModel compares random calls with slices of Go.
func TestModel(t *testing.T) {
	heap := used(t, 64<<10)
	var a Allocator
	random := rand.New(rand.NewPCG(1, 2))
	type held struct{ b, want []byte }
	var all []held
	fill := func(b []byte) held {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return held{b, bytes.Clone(b)}
	}
	fulls := 0
	for range 20000 {
		size := 1 + random.IntN(1000)
		switch i := random.IntN(2*len(all) + 1); {
		case i >= len(all):
			b, err := a.Malloc(size)
			if random.IntN(2) == 0 {
				require.NoError(t, a.Free(b))
				if b, err = a.Calloc(size); err == nil {
					require.Equal(t, make([]byte, size), b)
				}
			}
			if err != nil {
				require.ErrorIs(t, err, syscall.ENOMEM)
				require.Nil(t, b)
				fulls++
				continue
			}
			require.Len(t, b, size)
			require.Equal(t, size, UsableSize(&b[0]))
			require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%16)
			all = append(all, fill(b))
		case random.IntN(2) == 0:
			b, err := a.Realloc(all[i].b, size)
			if err != nil {
				require.ErrorIs(t, err, syscall.ENOMEM)
				require.Equal(t, all[i].want, all[i].b)
				fulls++
				continue
			}
			kept := min(size, len(all[i].want))
			require.Equal(t, all[i].want[:kept], b[:kept])
			all[i] = fill(b)
		default:
			require.Equal(t, all[i].want, all[i].b)
			require.NoError(t, a.Free(all[i].b))
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
	}
	assert.NotZero(t, fulls)
	for _, h := range all {
		require.Equal(t, h.want, h.b)
		b, err := a.Realloc(h.b, 0)
		require.NoError(t, err)
		require.Nil(t, b)
	}
	assert.Zero(t, heap.Stats().Live)
}

func TestEdges(t *testing.T) {
	used(t, 64<<10)
	var a Allocator
	p, err := a.UnsafeMalloc(0)
	assert.NoError(t, err)
	assert.Nil(t, p)
	b, err := a.Realloc(nil, 10)
	require.NoError(t, err)
	assert.Len(t, b, 10)
	q, err := a.UnsafeRealloc(unsafe.Pointer(&b[0]), 20)
	require.NoError(t, err)
	assert.Equal(t, 20, UnsafeUsableSize(q))
	assert.NoError(t, a.UnsafeFree(q))
	assert.Error(t, a.UnsafeFree(q), "freed before")
	assert.Zero(t, UnsafeUsableSize(q))
	assert.Zero(t, UnsafeUsableSize(nil))
	assert.NoError(t, a.Free(nil))
	q, err = a.UnsafeCalloc(16)
	require.NoError(t, err)
	assert.Equal(t, [16]byte{}, *(*[16]byte)(q))
	assert.NoError(t, a.UnsafeFree(q))
	_, err = a.Malloc(1 << 20)
	assert.ErrorIs(t, err, syscall.ENOMEM)
	for _, call := range []func(){
		func() { a.Malloc(-1) },
		func() { a.Realloc(make([]byte, 1), -1) },
		func() { a.UnsafeFree(unsafe.Pointer(new(byte))) },
	} {
		assert.Panics(t, call)
	}
	assert.NoError(t, a.Trim())
	assert.Error(t, a.Close())
}
