package arena_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

// client is one who uses the heap of the model: through a proxy, or itself where x is nil.
type client struct {
	x      *arena.Proxy
	back   *client
	blocks map[unsafe.Pointer][]byte // what each block must hold
	total  uint64
	failed uint64
	peak   uint64
}

// all is what the client and those before it have.
func (c *client) all(clients []*client) (live, asked, total, failed uint64) {
	for _, other := range clients {
		for up := other; up != nil; up = up.back {
			if up != c {
				continue
			}
			live += uint64(len(other.blocks))
			total += other.total
			failed += other.failed
			for _, bytes := range other.blocks {
				asked += uint64(len(bytes))
			}
		}
	}
	return live, asked, total, failed
}

type proxyModel struct {
	t       *testing.T
	random  *rand.Rand
	heap    arena.Heap
	clients []*client
}

func (m *proxyModel) raw(c *client) arena.Reallocator {
	if c.x == nil {
		return m.heap
	}
	return c.x
}

func (m *proxyModel) fill(c *client, p unsafe.Pointer, size int) {
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = byte(m.random.Uint32())
	}
	copy(bytesOf(p, size), bytes)
	c.blocks[p] = bytes
}

func (m *proxyModel) any(c *client) unsafe.Pointer {
	for p := range c.blocks {
		return p
	}
	return nil
}

func (m *proxyModel) step() {
	c := m.clients[m.random.IntN(len(m.clients))]
	size := m.random.IntN(200)
	if m.random.IntN(20) == 0 {
		size *= 30
	}
	p := m.any(c)
	switch m.random.IntN(5) {
	case 0, 1:
		p = m.raw(c).Alloc(uint64(size), 1<<m.random.IntN(9))
		if p == nil {
			c.failed++
			return
		}
		c.total++
		require.NotContains(m.t, c.blocks, p)
		m.fill(c, p, size)
	case 2:
		if p != nil {
			m.resize(c, p, size)
		}
	case 3:
		if p != nil {
			require.Equal(m.t, c.blocks[p], append([]byte{}, bytesOf(p, len(c.blocks[p]))...))
			require.NoError(m.t, m.raw(c).Free(p))
			delete(c.blocks, p)
		}
	case 4: // somebody else's
		for _, other := range m.clients {
			if q := m.any(other); other != c && c.x != nil && q != nil {
				require.Error(m.t, c.x.Free(q))
			}
		}
	}
}

func (m *proxyModel) resize(c *client, p unsafe.Pointer, size int) {
	q, err := m.raw(c).Realloc(p, uint64(size))
	require.NoError(m.t, err)
	old := c.blocks[p]
	if q == nil {
		c.failed++
		require.Equal(m.t, old, append([]byte{}, bytesOf(p, len(old))...), "a refusal changes nothing")
		return
	}
	kept := min(size, len(old))
	require.Equal(m.t, old[:kept], append([]byte{}, bytesOf(q, kept)...))
	delete(c.blocks, p)
	m.fill(c, q, size)
}

func (m *proxyModel) check() {
	var used uint64
	for _, c := range m.clients {
		for p, bytes := range c.blocks {
			require.EqualValues(m.t, len(bytes), m.raw(c).SizeOf(p))
		}
		if c.x == nil {
			continue
		}
		live, asked, total, failed := c.all(m.clients)
		s := c.x.Stats()
		require.Equal(m.t, arena.ProxyStats{Live: live, Asked: asked, Used: s.Used, Peak: s.Peak, Total: total, Failed: failed}, s)
		c.peak = max(c.peak, s.Used)
		require.Equal(m.t, c.peak, s.Peak)
		require.GreaterOrEqual(m.t, s.Used, asked+32*live)
		if c.back == nil {
			used += s.Used
		}
	}
	if len(m.clients[0].blocks) == 0 {
		require.Equal(m.t, m.heap.Stats().Used, used, "the proxies' add up to the heap's")
	}
}

// TestProxyModel plays proxies, proxies before proxies and a direct user on one small heap against maps.
func TestProxyModel(t *testing.T) {
	seeds := uint64(6)
	if instrumented && os.Getenv("UPFRONT_SOAK") == "" {
		seeds = 1
	}
	for seed := range seeds {
		h := newHeap(t, 24<<10)
		direct := &client{blocks: map[unsafe.Pointer][]byte{}}
		a := &client{x: arena.NewProxy("a", h), blocks: map[unsafe.Pointer][]byte{}}
		b := &client{x: arena.NewProxy("b", h), blocks: map[unsafe.Pointer][]byte{}}
		c := &client{x: arena.NewProxy("c", a.x), back: a, blocks: map[unsafe.Pointer][]byte{}}
		d := &client{x: arena.NewProxy("d", c.x), back: c, blocks: map[unsafe.Pointer][]byte{}}
		m := &proxyModel{t, rand.New(rand.NewPCG(seed, 5)), h, []*client{direct, a, b, c, d}}
		for range 1500 {
			m.step()
			m.check()
		}
		require.NotZero(t, h.Stats().Failed, "the heap was full at times")
		for i := len(m.clients) - 1; i >= 0; i-- {
			for p := range m.clients[i].blocks {
				require.NoError(t, m.raw(m.clients[i]).Free(p))
			}
			clear(m.clients[i].blocks)
			m.check()
			if x := m.clients[i].x; x != nil {
				require.NoError(t, x.Close())
			}
		}
		assert.Zero(t, h.Stats().Used)
	}
}

// TestProxyEachAllocationFails: each of a client's allocations meets a full heap once; what it gives back then leaves the
// proxy at zero.
func TestProxyEachAllocationFails(t *testing.T) {
	const steps = 12
	for failing := range steps + 1 {
		h := newHeap(t, 1<<14)
		x := arena.NewProxy("client", h)
		var blocks, taken []unsafe.Pointer
		for step := range steps {
			if step == failing {
				for size := uint64(1 << 13); size != 0; size /= 2 {
					for p := h.Alloc(size, 16); p != nil; p = h.Alloc(size, 16) {
						taken = append(taken, p)
					}
				}
			}
			p, last, err := unsafe.Pointer(nil), len(blocks)-1, error(nil)
			if step%3 == 2 {
				if p, err = x.Realloc(blocks[last], uint64(40*step)); p != nil {
					blocks = blocks[:last]
				}
			} else {
				p = x.Alloc(uint64(13*step), 16)
			}
			require.NoError(t, err)
			require.Equal(t, step == failing, p == nil)
			if p == nil {
				break
			}
			blocks = append(blocks, p)
		}
		require.Equal(t, failing < steps, x.Stats().Failed == 1)
		require.EqualValues(t, len(blocks), x.Stats().Live)
		for _, p := range blocks {
			require.NoError(t, x.Free(p))
		}
		require.Equal(t, arena.ProxyStats{Peak: x.Stats().Peak, Total: x.Stats().Total, Failed: x.Stats().Failed}, x.Stats())
		require.NoError(t, x.Close())
		require.EqualValues(t, len(taken), h.Stats().Live)
	}
}
