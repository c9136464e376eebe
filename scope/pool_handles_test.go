package scope_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

const putOf = "scope: BUG: Put of a handle of a scope_test.point: "

func TestHandlePool(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.HandlePool(s, 3)
	x, hx := pool.Get()
	y, hy := pool.Get()
	_, hz := pool.Get()
	none, h := pool.Get()
	assert.Nil(t, none)
	assert.Zero(t, h)
	assert.Nil(t, pool.At(0), "the zero handle names nothing")
	assert.Same(t, x, pool.At(hx))
	y.X = 5
	pool.Put(hy)
	assert.Nil(t, pool.At(hy))
	again, hAgain := pool.Get()
	assert.Equal(t, 1, pool.Index(hAgain), "the chunk that was put last")
	assert.Zero(t, again.X)
	assert.NotEqual(t, hy, hAgain)
	assert.Nil(t, pool.At(hy), "its chunk was taken again")
	assert.Same(t, again, pool.At(hAgain))
	assert.Equal(t, []int{3, 3, 3}, []int{pool.Cap(), pool.Live(), pool.Peak()})

	pool.Put(hz)
	for text, h := range map[string]arena.Handle[point]{"put twice": hz, "not from here": 0} {
		assert.PanicsWithError(t, putOf+text, func() { pool.Put(h) })
	}
	for _, far := range []arena.Handle[point]{hx + 3, hx | 1<<32 - 1, 1<<64 - 1} {
		assert.Nil(t, pool.At(far))
		assert.PanicsWithError(t, putOf+"not from here", func() { pool.Put(far) })
	}
	assert.PanicsWithError(t, putOf+"put twice", func() { pool.Put(hy) }, "a stale handle doesn't put the new value")
	assert.Equal(t, 2, pool.Live(), "nothing changed")

	require.NoError(t, s.Close())
	none, h = pool.Get()
	assert.Nil(t, none)
	assert.Zero(t, h)
	assert.Nil(t, pool.At(hx))
	assert.Zero(t, pool.Cap()+pool.Live()+pool.Peak())
	for range pool.All() {
		assert.Fail(t, "a closed pool has values")
	}
	err := panicsWith(func() { pool.Put(hx) })
	assert.EqualError(t, err, putOf+"closed already")
	assert.ErrorIs(t, err, scope.ErrClosed)
}

func TestHandlePoolsThatCannotBe(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	assert.PanicsWithError(t, "scope: BUG: a pool of -1 chunks", func() { points.HandlePool(s, -1) })
	if count := uint64(1) << 32; count <= math.MaxInt {
		assert.PanicsWithError(t, "scope: BUG: a pool of 4294967296 chunks: handles name fewer than 2^32",
			func() { points.HandlePool(s, int(count)) })
	}
	assert.PanicsWithError(t, "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object",
		func() { scope.Maker[point]{}.HandlePool(s, 1) })
	empty := points.HandlePool(s, 0)
	x, h := empty.Get()
	assert.Nil(t, x)
	assert.Zero(t, h)
	assert.PanicsWithError(t, putOf+"not from here", func() { empty.Put(1 << 32) })
	full := scratch.Do("b", func(s scope.Scope) error { points.HandlePool(s, 5100); return nil }) // 45,900 bytes and 40,800
	assert.ErrorIs(t, full, scope.ErrFull)
	assert.ErrorIs(t, scratch.Do("b", func(s scope.Scope) error {
		points.HandlePool(s, min(1<<32-1, math.MaxInt))
		return nil
	}), scope.ErrFull)
	inner := s.Open("inner")
	assert.PanicsWithError(t, `scope: BUG: Pool in scope "a" of scratch 0.0 while scope "inner", opened in it, is open`,
		func() { points.HandlePool(s, 1) })
	require.NoError(t, inner.Close())
}

// TestHandlesRetire moves a chunk's generation to the last one that there is: nobody gets the chunk again.
func TestHandlesRetire(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	first, pool := points.HandlePool(s, 1), points.HandlePool(s, 2)
	x, h := pool.Get()
	generation := (*uint32)(unsafe.Add(accounted(s, unsafe.Pointer(x)), -24+8)) // behind two numbers
	assert.Equal(t, arena.Handle[point](1<<63+1<<32), h, "the second of 2 pools")
	pool.Put(h)
	require.EqualValues(t, uint64(1<<31+2), *generation)
	*generation = 1<<32 - 1
	_, h = pool.Get()
	assert.Equal(t, arena.Handle[point](1<<64-1<<32), h)
	pool.Put(h)
	assert.PanicsWithError(t, putOf+"put twice", func() { pool.Put(h) })
	assert.Nil(t, pool.At(h))
	assert.Equal(t, []int{2, 0, 1}, []int{pool.Cap(), pool.Live(), pool.Peak()})
	_, other := pool.Get()
	assert.Equal(t, 1, pool.Index(other))
	last, h := pool.Get()
	assert.Nil(t, last, "one chunk less")
	assert.Zero(t, h)
	assert.Equal(t, 1, pool.Live())
	_, h = first.Get()
	assert.Equal(t, arena.Handle[point](1<<32), h)
	assert.Equal(t, -1, pool.Index(h), "another pool's")
}

func TestHandlePoolInTemporaries(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	pool := points.HandlePool(s.Temp(16+9*10+6+8*10), 10) // the pool's node; numbers, generations and states; chunks
	x, h := pool.Get()
	assert.Same(t, x, pool.At(h))
	require.NoError(t, s.Close())
	assert.Nil(t, pool.At(h))
}

// TestHandlesOfAnotherPool name nothing, though both pools have such a chunk.
func TestHandlesOfAnotherPool(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	red, blue := points.HandlePool(s, 2), points.HandlePool(s, 2)
	_, h := red.Get()
	x, own := blue.Get()
	assert.NotEqual(t, h, own)
	assert.Nil(t, blue.At(h))
	assert.PanicsWithError(t, putOf+"not from here", func() { blue.Put(h) })
	assert.Same(t, x, blue.At(own))
	require.NoError(t, s.Close())
}
