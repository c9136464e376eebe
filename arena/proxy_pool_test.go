package arena_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func newPool(t *testing.T, chunks int) arena.BlockPool[frog] {
	p, err := arena.NewBlockPool[frog](poolBlock(t, 64+chunks*(24+5)+7))
	require.NoError(t, err)
	require.Equal(t, chunks, p.Cap())
	return p
}

func TestPoolProxyTellsWhatIsItsOwn(t *testing.T) {
	pool := newPool(t, 4)
	a, b := arena.NewPoolProxy("a", pool), arena.NewPoolProxy("b", pool)
	front := arena.NewPoolProxy("front", a)
	x, y, z, w := a.Get(), b.Get(), pool.Get(), front.Get()
	require.Equal(t, 4, pool.Live())
	assert.Nil(t, a.Get())
	for _, bad := range []*frog{y, z, {}, nil} {
		assert.EqualError(t, a.Put(bad), `arena: BUG: proxy "a": Put: `+notOurs)
	}
	assert.ErrorContains(t, front.Put(x), notOurs)
	assert.Equal(t, 4, pool.Live(), "what is refused changes nothing")
	assert.Equal(t, arena.ProxyStats{Name: "a", Live: 2, Asked: 48, Peak: 48, Total: 2, Failed: 1}, a.Stats())

	require.NoError(t, a.Put(x))
	assert.ErrorContains(t, a.Put(x), notOurs)
	require.NoError(t, front.Put(w))
	require.NoError(t, front.Close())
	require.NoError(t, a.Close())
	assert.EqualError(t, a.Put(x), `arena: BUG: proxy "a": Put: closed already`)
	assert.PanicsWithValue(t, `arena: BUG: proxy "a": Get: closed already`, func() { a.Get() })
	assert.ErrorContains(t, b.Close(), `arena: proxy "b" closed with 1 of 1 blocks live: 24 bytes at 0x`)
	assert.NotNil(t, pool.At(1), "it stays live")
}

func poolBlock(t *testing.T, size int) []byte {
	block := arena.NewBlock(size, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(size)) })
	return block
}
