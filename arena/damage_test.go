package arena_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// TestRingTellsDamage: after a write over a block's size the ring reads and allocates no byte
// outside itself, and Free of the misplaced block fails.
func TestRingTellsDamage(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer ends the program at the write: go test ./arena goes on")
	}
	const size = 128 + 106
	block := arena.NewBlock(size, 64)
	r, err := arena.NewRing(block)
	require.NoError(t, err)
	for _, wrong := range []uint64{98, 97, 90, 1 << 39} {
		p, q := r.Alloc(40, 8), r.Alloc(50, 8)
		require.NotNil(t, q)
		*(*uint64)(unsafe.Add(p, -8)) = wrong
		oldest, has := r.Oldest()
		require.Equal(t, p, oldest)
		if wrong > 98 {
			require.Zero(t, has)
			require.EqualError(t, r.Free(p), "arena: BUG: Ring.Free: overwritten words: "+
				"a write past a block or into freed memory")
		} else {
			require.Equal(t, wrong, has)
			require.NoError(t, r.Free(p))
			oldest, _ = r.Oldest()
			assert.Nil(t, oldest)
			assert.LessOrEqual(t, r.Stats().Used, r.Stats().Size)
		}
		assert.LessOrEqual(t, r.Room(), uint64(size-128-8))
		require.EqualError(t, r.Free(q), "arena: BUG: Ring.Free: overwritten words: "+
			"a write past a block or into freed memory")
		for at := r.Alloc(1, 1); at != nil; at = r.Alloc(1, 1) {
			require.Less(t, uintptr(at)-uintptr(unsafe.Pointer(&block[0])), uintptr(size))
		}
		r.Reset()
		require.Equal(t, uint64(size-128-8), r.Room())
	}
}

func TestCheckedPoolTellsDamage(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build checks a chunk before it returns it: go test -tags checked ./arena does")
	}
	block := arena.NewBlock(1024, 64)
	p, err := arena.NewBlockPool[[5]uint64](block)
	require.NoError(t, err)
	live := p.Get()
	require.NotNil(t, live)
	header := (*arena_c.Pool)(unsafe.Pointer(&block[0]))
	next := header.Number(header.Free - 1)
	was := *next
	for _, wrong := range []uint32{0, header.Count, 1<<32 - 1} {
		*next = wrong
		assert.Panics(t, func() { p.Get() }, "%d", wrong)
	}
	*next = was
	assert.NotNil(t, p.Get())
}
