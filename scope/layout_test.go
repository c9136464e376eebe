package scope_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// layoutBlock returns a block of a scope, and the scope's arena.
func layoutBlock(t *testing.T, size int) ([]byte, *stack.Stack) {
	s := open(t).Scratch(0, 0).Open("layout")
	return s.BytesUnzeroed(size, 64), scope.StackOf(s)
}

// requireLayout checks that the parts cover the block. It returns the bytes and the number of parts
// of each kind.
func requireLayout(t *testing.T, st *stack.Stack, a arena.Inner, kind string, block []byte) (bytes,
	counts map[string]uint64) {
	t.Helper()
	l, code := st.Layout(a.Block(), uint64(len(block)))
	require.Equal(t, arena_c.OK, code)
	require.Equal(t, kind, l.Kind)
	require.Equal(t, unsafe.Pointer(unsafe.SliceData(block)), a.Block())
	_, code = st.Layout(a.Block(), l.Size-1)
	require.Equal(t, arena_c.Corrupt, code, "it says more than there is room for")
	_, code = st.Layout(unsafe.Add(a.Block(), 64), uint64(len(block)))
	require.Equal(t, arena_c.Foreign, code)
	require.LessOrEqual(t, l.Size, uint64(len(block)))
	bytes, counts = map[string]uint64{}, map[string]uint64{}
	at := uint64(0)
	for _, p := range l.Parts {
		require.Equal(t, at, p.Offset)
		require.NotZero(t, p.Size)
		require.Less(t, p.Asked, p.Size+1)
		bytes[p.Kind] += p.Size
		counts[p.Kind]++
		at += p.Size
	}
	require.Equal(t, l.Size, at)
	return bytes, counts
}

func TestLayoutOfHeapsAndBuddies(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 1))
	for _, parked := range []uint64{0, 8} {
		block, st := layoutBlock(t, 16<<10)
		h, err := arena.NewHeap(block, parked)
		require.NoError(t, err)
		churn(t, random, h, func() {
			bytes, counts := requireLayout(t, st, h, "heap", block)
			require.Equal(t, h.Stats().Used, bytes["live"])
			require.Equal(t, h.Stats().Live, counts["live"])
			require.Equal(t, h.Stats().Parked, counts["parked"])
		})
	}
	block, st := layoutBlock(t, 16<<10+100)
	b, err := arena.NewBuddy(block, 64)
	require.NoError(t, err)
	(*arena_c.Buddy)(unsafe.Pointer(&block[0])).SetPlain()
	churn(t, random, b, func() {
		bytes, counts := requireLayout(t, st, b, "buddy", block)
		require.Equal(t, b.Stats().Used, bytes["live"])
		require.Equal(t, b.Stats().Live, counts["live"])
	})
}

func TestLayoutOfAHitBlock(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer ends the program at the write: go test ./scope goes on")
	}
	block, st := layoutBlock(t, 8192)
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	(*arena_c.Heap)(h.Block()).SetPlain()
	p, q, _ := h.Alloc(100, 16), h.Alloc(100, 16), h.Alloc(100, 16)
	require.NoError(t, h.Free(q))
	copy(unsafe.Slice((*byte)(q), 16), "a stray write...")
	require.Error(t, h.Free(p))
	bytes, counts := requireLayout(t, st, h, "heap", block)
	assert.Equal(t, []uint64{128, 1}, []uint64{bytes["lost"], counts["lost"]})
}

func churn(t *testing.T, random *rand.Rand, a arena.Reallocator, look func()) {
	t.Helper()
	var live []unsafe.Pointer
	for range 300 {
		look()
		if n := len(live); n > 0 && random.IntN(2) == 0 {
			i := random.IntN(n)
			require.NoError(t, a.Free(live[i]))
			live[i] = live[n-1]
			live = live[:n-1]
		} else if p := a.Alloc(random.Uint64N(500), 1<<random.IntN(7)); p != nil {
			live = append(live, p)
		}
	}
}

func TestLayoutOfRings(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 2))
	block, st := layoutBlock(t, 4<<10)
	r, err := arena.NewRing(block)
	require.NoError(t, err)
	skipped := 0
	for range 2000 {
		bytes, counts := requireLayout(t, st, r, "ring", block)
		require.Equal(t, uint64(r.Len()), counts["live"])
		require.InDelta(t, r.Stats().Used, bytes["live"]+bytes["skipped"], 8, "all but what aligns the newest")
		if bytes["skipped"] != 0 {
			skipped++
		}
		if oldest, _ := r.Oldest(); oldest != nil && random.IntN(2) == 0 {
			require.NoError(t, r.Free(oldest))
		} else {
			r.Overwrite(random.Uint64N(700), 1<<random.IntN(7))
		}
	}
	assert.NotZero(t, skipped)
}

func TestLayoutOfPools(t *testing.T) {
	block, st := layoutBlock(t, 1024)
	p, err := arena.NewBlockPool[[3]uint64](block)
	require.NoError(t, err)
	var got []*[3]uint64
	for range 5 {
		got = append(got, p.Get())
	}
	require.NoError(t, p.Put(got[1]))
	require.NoError(t, p.Put(got[3]))
	l, code := st.Layout(p.Block(), 1024)
	require.Equal(t, arena_c.OK, code)
	require.NotNil(t, l.Pool)
	assert.Equal(t, uint64(p.Cap()), l.Pool.Count)
	assert.Equal(t, "#.#.#---", l.Pool.States[:8])
	assert.Equal(t, []uint32{3, 1}, l.Pool.Next)
	assert.Equal(t, uint64(5), l.Pool.Peak)
	assert.Equal(t, uint64(3), l.Pool.Live)
	assert.Same(t, got[3], p.Get(), "the first of the next")
	_, code = st.Layout(p.Block(), l.Size-1)
	assert.Equal(t, arena_c.Corrupt, code)
	(*arena_c.Pool)(p.Block()).Count *= 2
	_, code = st.Layout(p.Block(), 1024)
	assert.Equal(t, arena_c.Corrupt, code)
}

// TestLayoutOfTheDamaged: words that contradict each other are an error and aren't followed, for
// any overwrite.
func TestLayoutOfTheDamaged(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer ends the program at the write: go test ./scope goes on")
	}
	const size = 4 << 10
	random := rand.New(rand.NewPCG(26, 3))
	block, st := layoutBlock(t, size)
	fillers := map[string]func(i int) byte{
		"text":   func(i int) byte { return "texture!"[i%8] },
		"ones":   func(int) byte { return 0xff },
		"zeros":  func(int) byte { return 0 },
		"random": func(int) byte { return byte(random.Uint32()) },
		// numbers that may be offsets
		"small": func(i int) byte { return byte(random.Uint32N(16) * uint32(1-i%8/2)) },
	}
	for name, inner := range map[string]func() (arena.Inner, error){
		"Heap": func() (arena.Inner, error) { h, err := arena.NewHeap(block, 8); h.Alloc(100, 8); return h, err },
		"Buddy": func() (arena.Inner, error) {
			b, err := arena.NewBuddy(block, 64)
			b.Alloc(100, 8)
			return b, err
		},
		"Ring":      func() (arena.Inner, error) { r, err := arena.NewRing(block); r.Alloc(100, 8); return r, err },
		"BlockPool": func() (arena.Inner, error) { return arena.NewBlockPool[[3]uint64](block) },
	} {
		for what, fill := range fillers {
			for _, from := range []int{0, 8, 128} {
				for range 200 {
					a, err := inner()
					require.NoError(t, err)
					for i := range block[from:] {
						block[from+i] = fill(i)
					}
					if _, code := st.Layout(a.Block(), size); code == arena_c.OK {
						require.NotZero(t, from, "%s: %s over all of it", name, what)
					} else {
						require.Contains(t, []arena_c.Code{arena_c.Corrupt, arena_c.Raced}, code, name)
					}
				}
			}
		}
	}
}
