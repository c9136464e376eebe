package arena_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

const notOurs = "not live in this proxy: another's, or freed already"

func TestProxyTellsWhatIsItsOwn(t *testing.T) {
	h := newHeap(t, 16384)
	sound, music := arena.NewProxy("sound", h), arena.NewProxy("music", h)
	front := arena.NewProxy("ogg", sound)
	p, q, r, s := sound.Alloc(96, 16), music.Alloc(96, 16), h.Alloc(96, 16), front.Alloc(96, 16)
	before := [...]arena.ProxyStats{sound.Stats(), music.Stats(), front.Stats()}
	used := h.Stats()
	assert.Equal(t, arena.ProxyStats{Name: "sound", Live: 2, Asked: 192, Peak: 192, Total: 2}, sound.Stats(),
		"both clients'")
	inside := unsafe.Add(p, 16)
	for _, bad := range []unsafe.Pointer{nil, unsafe.Pointer(t), inside, unsafe.Add(p, -16), q, r} {
		if bad != nil {
			assert.EqualError(t, sound.Free(bad), `arena: BUG: proxy "sound": Free: `+notOurs)
		}
		_, err := sound.SizeOf(bad)
		assert.EqualError(t, err, `arena: BUG: proxy "sound": SizeOf: `+notOurs)
		if bad != nil {
			_, err = sound.Realloc(bad, 8)
			assert.EqualError(t, err, `arena: BUG: proxy "sound": Realloc: `+notOurs)
		}
	}
	assert.ErrorContains(t, front.Free(p), notOurs)
	assert.ErrorContains(t, music.Free(s), notOurs)
	assert.Equal(t, before, [...]arena.ProxyStats{sound.Stats(), music.Stats(), front.Stats()})
	assert.Equal(t, used, h.Stats())

	require.NoError(t, sound.Free(p))
	assert.ErrorContains(t, sound.Free(p), notOurs)
	require.NoError(t, front.Free(s))
	require.NoError(t, front.Close())
	require.NoError(t, sound.Close())
	require.NoError(t, music.Free(q))
	require.NoError(t, music.Close())
	require.NoError(t, h.Free(r))
	assert.Zero(t, h.Stats().Live)
}

func TestProxyRefusesAfterClose(t *testing.T) {
	h := newHeap(t, 4096)
	x := arena.NewProxy("sound", h)
	p := x.Alloc(10, 1)
	assert.ErrorContains(t, x.Close(), fmt.Sprintf(
		`arena: proxy "sound" closed with 1 of 1 blocks live: 10 bytes at %#x`, uintptr(p)))
	assert.EqualError(t, x.Close(), `arena: BUG: proxy "sound": Close: closed already`)
	assert.EqualError(t, x.Free(p), `arena: BUG: proxy "sound": Free: closed already`)
	for _, q := range []unsafe.Pointer{p, nil} {
		_, err := x.Realloc(q, 20)
		assert.EqualError(t, err, `arena: BUG: proxy "sound": Realloc: closed already`)
	}
	assert.PanicsWithValue(t, `arena: BUG: proxy "sound": Alloc: closed already`, func() { x.Alloc(1, 1) })
	assert.Panics(t, func() { arena.NewProxy("ogg", x).Alloc(1, 1) })
	assert.Equal(t, arena.ProxyStats{Name: "sound", Live: 1, Asked: 10, Peak: 10, Total: 1}, x.Stats())
	require.NoError(t, h.Free(p), "what leaked is the heap's")
	assert.NoError(t, arena.NewProxy("sound", h).Close(), "it never had anything")
}

func TestProxyNamesTheFirstLeaks(t *testing.T) {
	h := newHeap(t, 1<<16)
	for count, more := range map[int]string{8: "", 9: "and 1 more", 20: "and 12 more"} {
		x := arena.NewProxy("many", h)
		for range count {
			x.Alloc(24, 16)
		}
		says := x.Close().Error()
		assert.Equal(t, 8, strings.Count(says, "24 bytes at 0x"), says)
		assert.True(t, strings.HasSuffix(says, more), says)
		assert.Equal(t, arena_c.Checked, strings.Contains(says, "TestProxyNamesTheFirstLeaks"), "who asked for it: %s",
			says)
		h.Reset()
	}
}

// TestProxyOfWhatWasFreedBehindItsBack: the heap reports the free, and the next block at the
// address counts once.
func TestProxyOfWhatWasFreedBehindItsBack(t *testing.T) {
	h := newHeap(t, 8192)
	x := arena.NewProxy("sound", h)
	p := x.Alloc(96, 16)
	require.NoError(t, h.Free(p), "the heap can't tell")
	assert.EqualError(t, x.Free(p), `arena: proxy "sound": Free: arena: BUG: Heap.Free: freed already`)
	_, err := x.SizeOf(p)
	assert.ErrorContains(t, err, "freed already")
	_, err = x.Realloc(p, 8)
	assert.ErrorContains(t, err, "freed already")
	q := x.Alloc(80, 16)
	require.Equal(t, p, q)
	assert.Equal(t, arena.ProxyStats{Name: "sound", Live: 1, Asked: 80, Peak: 96, Total: 2}, x.Stats())
	require.NoError(t, x.Free(q))
	assert.NoError(t, x.Close())
}

type own struct{ given int }

func (o *own) Alloc(size, _ uint64) unsafe.Pointer {
	o.given++
	return unsafe.Pointer(unsafe.SliceData(make([]byte, max(size, 1))))
}

func TestProxyOfAnyAllocator(t *testing.T) {
	user := &own{}
	x := arena.NewProxy("user's", user)
	front := arena.NewProxy("front", x)
	p := front.Alloc(10, 1)
	assert.Equal(t, 1, user.given)
	size, err := front.SizeOf(p)
	require.NoError(t, err)
	assert.EqualValues(t, 10, size)
	assert.ErrorContains(t, x.Free(p), "a *arena_test.own can't free single blocks")
	_, err = x.Realloc(p, 8)
	assert.ErrorContains(t, err, "a *arena_test.own can't reallocate")
	assert.NoError(t, front.Close(), "nothing was to be freed")
	assert.NoError(t, x.Close())

	stack, err := arena.NewStack(arena.NewBlock(1024, 64))
	require.NoError(t, err)
	x = arena.NewProxy("stack", stack)
	p = x.Alloc(10, 1)
	q := x.Alloc(20, 1)
	assert.ErrorContains(t, x.Free(p), "out of order")
	require.NoError(t, x.Free(q))
	assert.ErrorContains(t, x.Close(), "1 of 2 blocks live: 10 bytes")
}

func TestProxyTrace(t *testing.T) {
	h := newHeap(t, 1024)
	x := arena.NewProxy("sound", h)
	var seen []string
	x.Trace(func(e arena.Event) { seen = append(seen, fmt.Sprint(e.What, " ", e.Size, " ", e.Key != 0)) })
	p := x.Alloc(32, 16)
	p, err := x.Realloc(p, 64)
	require.NoError(t, err)
	x.Alloc(4096, 16)
	require.NoError(t, x.Free(p))
	x.Trace(nil)
	x.Alloc(8, 8)
	assert.Equal(t, []string{"gave 32 true", "took 32 true", "gave 64 true", "refused 4096 false", "took 64 true"},
		seen)
}

func TestProxyIsAReallocator(t *testing.T) {
	h := newHeap(t, 4096)
	x, other := arena.NewProxy("frogs", h), arena.NewProxy("other", h)
	f := frogs.New(x)
	require.NotNil(t, f)
	assert.Equal(t, frog{}, *f)
	assert.ErrorContains(t, frogs.Delete(other, f), notOurs)
	require.NoError(t, frogs.Delete(x, f))
	assert.Panics(t, func() { x.Alloc(1, 3) })
	assert.NoError(t, x.Close())
	assert.NoError(t, other.Close())
}

// TestProxyModel runs a proxy, a proxy in front of it, and a direct user on one small heap, and
// compares them with Go slices.
func TestProxyModel(t *testing.T) {
	type block struct {
		p    unsafe.Pointer
		size uint64
	}
	h := newHeap(t, 8<<10)
	back := arena.NewProxy("back", h)
	front := arena.NewProxy("front", back)
	users := []arena.Reallocator{h, back, front}
	var live [3][]block
	var failed [3]uint64
	random := rand.New(rand.NewPCG(5, 6))
	for range 1500 {
		i, size := random.IntN(3), random.Uint64N(400)
		n := len(live[i])
		switch p, j := unsafe.Pointer(nil), random.IntN(n+1); {
		case random.IntN(2) == 0:
			if p = users[i].Alloc(size, 1<<random.IntN(9)); p != nil {
				live[i] = append(live[i], block{p, size})
			} else {
				failed[i]++
			}
		case j == n:
		case random.IntN(2) == 0:
			q, err := users[i].Realloc(live[i][j].p, size)
			require.NoError(t, err)
			if q != nil {
				live[i][j] = block{q, size}
			} else {
				failed[i]++
			}
		default:
			require.NoError(t, users[i].Free(live[i][j].p))
			live[i] = slices.Delete(live[i], j, j+1)
		}
		asked := [3]uint64{}
		for i, blocks := range live {
			for _, b := range blocks {
				asked[i] += b.size
				got, err := users[i].SizeOf(b.p)
				require.NoError(t, err)
				require.Equal(t, b.size, got)
			}
		}
		s, r := front.Stats(), back.Stats()
		require.Equal(t, [3]uint64{uint64(len(live[2])), asked[2], failed[2]}, [3]uint64{s.Live, s.Asked, s.Failed})
		require.Equal(t, [3]uint64{s.Live + uint64(len(live[1])), s.Asked + asked[1], s.Failed + failed[1]},
			[3]uint64{r.Live, r.Asked, r.Failed})
	}
	require.NotZero(t, failed[2], "the heap was full at times")
	require.Equal(t, len(live[2]) != 0, front.Close() != nil)
}
