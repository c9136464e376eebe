package arena_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func newPool(t *testing.T, chunks int) arena.Pool[frog] {
	p, err := arena.NewPool[frog](poolBlock(t, 64+chunks*(24+5)+7))
	require.NoError(t, err)
	require.Equal(t, chunks, p.Cap())
	return p
}

func newHandlePool(t *testing.T) arena.HandlePool[frog] {
	p, err := arena.NewHandlePool[frog](poolBlock(t, 4096))
	require.NoError(t, err)
	return p
}

func TestPoolProxyTellsWhatIsItsOwn(t *testing.T) {
	pool := newPool(t, 4)
	a, b := arena.NewPoolProxy("a", pool), arena.NewPoolProxy("b", pool)
	front := arena.NewPoolProxy("front", a)
	x, y, z, w := a.Get(), b.Get(), pool.Get(), front.Get()
	require.Equal(t, 4, pool.Live())
	assert.Nil(t, a.Get())
	const another = "a chunk of another proxy, or of the pool itself"
	for _, other := range []*frog{y, z} {
		assert.EqualError(t, a.Put(other), `arena: BUG: proxy "a": Put: `+another)
		_, err := a.Index(other)
		assert.EqualError(t, err, `arena: BUG: proxy "a": Index: `+another)
	}
	assert.EqualError(t, front.Put(x), `arena: BUG: proxy "front": Put: `+another)
	assert.EqualError(t, b.Put(&frog{}), `arena: proxy "b": Put: arena: BUG: Pool.Index of a arena_test.frog: not from here`)
	assert.EqualError(t, b.Put(nil), `arena: proxy "b": Put: arena: BUG: Pool.Index of a arena_test.frog: not from here`)
	assert.Equal(t, 4, pool.Live(), "what is refused changes nothing")
	assert.Equal(t, arena.PoolProxyStats{Live: 2, Peak: 2, Total: 2, Failed: 1}, a.Stats())
	assert.Equal(t, []*frog{x, nil, nil, w, nil}, []*frog{a.At(0), a.At(1), a.At(2), a.At(3), a.At(4)})
	assert.Nil(t, a.At(-1))
	assert.Nil(t, a.At(64), "beyond its bits")
	assert.Equal(t, 4, a.Cap())

	require.NoError(t, a.Put(x))
	assert.EqualError(t, a.Put(x), `arena: proxy "a": Put: arena: BUG: Pool.Index of a arena_test.frog: put twice`)
	require.NoError(t, front.Put(w))
	require.NoError(t, front.Close())
	require.NoError(t, a.Close())
	assert.EqualError(t, a.Close(), `arena: BUG: proxy "a": Close: closed already`)
	assert.EqualError(t, a.Put(x), `arena: BUG: proxy "a": Put: closed already`)
	assert.PanicsWithValue(t, `arena: BUG: proxy "a": Get: closed already`, func() { a.Get() })
	assert.EqualError(t, b.Close(), `arena: proxy "b": 1 chunk was never put back: 1`)
	assert.NotNil(t, pool.At(1), "it stays live")
}

func TestPoolProxyNamesItsLeaks(t *testing.T) {
	pool := newPool(t, 130)
	x := arena.NewPoolProxy("frogs", pool)
	var all []*frog
	for v := x.Get(); v != nil; v = x.Get() {
		all = append(all, v)
	}
	for i, v := range all {
		if i%10 != 9 {
			require.NoError(t, x.Put(v))
		}
	}
	require.NoError(t, pool.Put(all[29]), "the pool can't tell")
	assert.Error(t, x.Put(all[29]))
	assert.EqualError(t, x.Close(),
		`arena: proxy "frogs": 12 chunks were never put back: 9, 19, 39, 49, 59, 69, 79, 89 and 4 more; `+
			`1 chunk was not found: put to the pool itself, or gone with it`)
	assert.Equal(t, "frogs", x.Name())
	assert.EqualValues(t, 130, x.Stats().Peak)
}

func TestHandlePoolProxy(t *testing.T) {
	pool := newHandlePool(t)
	a, b := arena.NewHandlePoolProxy("a", pool), arena.NewHandlePoolProxy("b", pool)
	front := arena.NewHandlePoolProxy("front", a)
	_, x := a.Get()
	_, y := b.Get()
	_, z := pool.Get()
	v, w := front.Get()
	assert.Equal(t, v, front.At(w))
	assert.Equal(t, v, a.At(w), "it counts in both")
	assert.Nil(t, b.At(w))
	const another = "a chunk of another proxy, or of the pool itself"
	for _, other := range []arena.Handle[frog]{y, z} {
		assert.EqualError(t, a.Put(other), `arena: BUG: proxy "a": Put: `+another)
	}
	for _, none := range []arena.Handle[frog]{0, 1 << 31, ^arena.Handle[frog](0), x + 1<<32} {
		assert.ErrorContains(t, a.Put(none), `arena: proxy "a": Put: arena: BUG: HandlePool.Put of a arena_test.frog: `)
		assert.Nil(t, a.At(none))
	}
	require.NoError(t, a.Put(x))
	assert.EqualError(t, a.Put(x), `arena: proxy "a": Put: arena: BUG: HandlePool.Put of a arena_test.frog: put twice`)
	_, again := pool.Get()
	require.Equal(t, uint32(x), uint32(again), "the same chunk")
	assert.ErrorContains(t, a.Put(again), another)
	assert.Equal(t, arena.PoolProxyStats{Live: 1, Peak: 2, Total: 2}, a.Stats())

	require.NoError(t, pool.Put(y), "the pool can't tell")
	_, y = pool.Get() // another name for the same chunk
	assert.ErrorContains(t, b.Put(y), another)
	assert.EqualError(t, b.Close(), `arena: proxy "b": 1 chunk was not found: put to the pool itself, or gone with it`)
	assert.EqualError(t, front.Close(), `arena: proxy "front": 1 chunk was never put back: 3`)
	assert.EqualError(t, a.Close(), `arena: proxy "a": 1 chunk was never put back: 3`)
	assert.EqualError(t, a.Put(x), `arena: BUG: proxy "a": Put: closed already`)
	assert.PanicsWithValue(t, `arena: BUG: proxy "a": Get: closed already`, func() { a.Get() })
	assert.Equal(t, pool.Cap(), a.Cap())
}

// TestPoolProxyModel plays proxies and a direct user of one pool against slices.
func TestPoolProxyModel(t *testing.T) {
	pool := newPool(t, 70)
	random := rand.New(rand.NewPCG(1, 2))
	proxies := []*arena.PoolProxy[frog]{arena.NewPoolProxy("a", pool), arena.NewPoolProxy("b", pool)}
	clients := []arena.Chunks[frog]{pool, proxies[0], proxies[1]}
	var live [3][]*frog
	for range 4000 {
		i := random.IntN(3)
		if x := (*frog)(nil); random.IntN(5) < 3 {
			if x = clients[i].Get(); x != nil {
				live[i] = append(live[i], x)
			}
			require.True(t, x != nil || len(live[0])+len(live[1])+len(live[2]) == 70)
		} else if n := len(live[i]); n != 0 {
			j := random.IntN(n)
			x = live[i][j]
			for k, other := range proxies {
				if k+1 != i {
					require.Error(t, other.Put(x))
				}
			}
			require.NoError(t, clients[i].Put(x))
			live[i] = append(live[i][:j], live[i][j+1:]...)
		}
		for k, x := range proxies {
			require.EqualValues(t, len(live[k+1]), x.Stats().Live)
		}
	}
	require.NotZero(t, proxies[0].Stats().Failed)
	for k, x := range proxies {
		for _, v := range live[k+1] {
			require.NoError(t, x.Put(v))
		}
		require.NoError(t, x.Close())
	}
}

func TestPoolProxyMakesNoGoAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the instrumented build allocates on its own")
	}
	x := arena.NewPoolProxy("frogs", newPool(t, 4))
	handles := arena.NewHandlePoolProxy("frogs", newHandlePool(t))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = x.Put(x.Get())
		_, h := handles.Get()
		_ = handles.Put(h)
	}))
}

func poolBlock(t *testing.T, size int) []byte {
	block := arena.NewBlock(size, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(size)) })
	return block
}
