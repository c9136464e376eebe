package arena_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func newBuddy(t *testing.T, size int, smallest uint64) arena.Buddy {
	block := arena.NewBlock(size, arena_c.AlignMax)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(size)) })
	b, err := arena.NewBuddy(block, smallest)
	require.NoError(t, err)
	keepBuddy(block)
	return b
}

func TestBuddySaysWhyNot(t *testing.T) {
	_, err := arena.NewBuddy(arena.NewBlock(128, 64), 64)
	assert.EqualError(t, err,
		"arena: NewBuddy needs 337 bytes or more for one smallest block of 64, and has at most 1073741824 "+
			"such blocks; this memory has 128 bytes")
	_, err = arena.NewBuddy(arena.NewBlock(512, 64)[8:], 64)
	assert.ErrorContains(t, err, "a Buddy's block must begin at a multiple of 64")
	for _, smallest := range []uint64{0, 32, 96, 2 << 20, 1<<64 - 1} {
		_, err = arena.NewBuddy(arena.NewBlock(4096, 64), smallest)
		assert.ErrorContains(t, err,
			"a Buddy's smallest block is a power of two from 64 to 1048576, not ")
	}
	_, err = arena.NewBuddy(arena.NewBlock(int(arena.BuddySize(1, 4096)), 64), 4096)
	assert.NoError(t, err)

	b := newBuddy(t, 4096, 64)
	saysWhyNot(t, "Buddy", b, 128)
	s := b.Stats()
	assert.Equal(t, arena.HeapStats{Stats: arena.Stats{Size: s.Size, Free: s.Size, Peak: 128},
		Given: 128, Internal: 28, Failed: 1}, s)
	assert.EqualValues(t, 2048, b.LargestFree())
	p, err := b.Realloc(nil, 0)
	require.NoError(t, err)
	assert.EqualError(t, b.Free(unsafe.Add(p, 65)), "arena: BUG: Buddy.Free: freed already", "inside of a free block")
	b.Reset()
	assert.EqualError(t, b.Free(p), "arena: BUG: Buddy.Free: freed already", "from before the reset")
}

func TestBuddyKeepsAReserve(t *testing.T) {
	b := newBuddy(t, 4096, 64)
	b.Reserve(b.LargestFree())
	for b.Alloc(64, 64) != nil {
	}
	s := b.Stats()
	assert.Equal(t, []uint64{2048, 2048}, []uint64{s.Free, s.Reserve})
	b.Reserve(0)
	p := b.Alloc(2048, 1)
	assert.NotNil(t, p, "for clean-up")
	require.NoError(t, b.Free(p))
	assert.Equal(t, s.Size, b.Phase())
	assert.Equal(t, s.Used, b.Phase(), "since the last phase")
	assert.Equal(t, s.Size, b.Stats().Peak)
}

func TestMakersOnABuddy(t *testing.T) {
	b := newBuddy(t, 1024, 64)
	f := frogs.New(b)
	*f = frog{1, 2, 3}
	require.NoError(t, frogs.Delete(b, f))
	assert.ErrorContains(t, frogs.Delete(b, f), "freed already")
	f = frogs.New(b)
	assert.Equal(t, frog{}, *f, "zeroed where another was")
	closed = nil
	g, err := closer.Make(b, func(f *frog) error { f.Size = 7; return nil })
	require.NoError(t, err)
	require.NoError(t, closer.Delete(b, g))
	assert.Equal(t, []uint64{7}, closed)
	_, err = closer.Make(b, func(*frog) error { return errors.ErrUnsupported })
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	large := b.Alloc(100, 1)
	assert.ErrorContains(t, frogs.Delete(b, (*frog)(large)), "the block has 128 bytes, the value 64")
	assert.EqualValues(t, 2, b.Stats().Live, "what could not be made is given back")
}

func TestAProxyBeforeABuddy(t *testing.T) {
	b := newBuddy(t, 4096, 64)
	x := arena.NewProxy("pages", b)
	p := x.Alloc(100, 8)
	f := frogs.New(x)
	size, err := x.SizeOf(p)
	require.NoError(t, err)
	assert.EqualValues(t, 100, size, "the proxy knows what was asked for")
	require.NoError(t, frogs.Delete(x, f))
	p, err = x.Realloc(p, 1000)
	require.NoError(t, err)
	assert.ErrorContains(t, x.Close(), `proxy "pages" closed with 1 of 3 blocks live: 1000 bytes at `)
	require.NoError(t, b.Free(p))
	assert.Zero(t, b.Stats().Used)
}

// TestRobsonsBound runs Robson's worst program on a buddy of the bound's size, and on one that is a
// block smaller and refuses. The C core's tests have the exact bound.
func TestRobsonsBound(t *testing.T) {
	const bound = uint64(4096 + 4096/2*3) // the formula of Buddy's doc: log2(512/64) is 3
	for less := range uint64(2) {
		size := arena.BuddySize(bound-less*64, 64)
		front := (size - (bound - less*64)) &^ 63
		block := arena.NewBlock(1<<16, arena_c.AlignMax)[512-front%512:][:front+bound-less*64]
		b, err := arena.NewBuddy(block, 64)
		require.NoError(t, err)
		keepBuddy(block)
		require.Equal(t, bound-less*64, b.Stats().Size)
		refused, live := false, map[unsafe.Pointer]uint64{}
		for size := uint64(64); size <= 512; size *= 2 {
			windows := map[uintptr]unsafe.Pointer{} // the smallest block in each
			for p := range live {
				at := uintptr(p) / uintptr(size)
				if kept, ok := windows[at]; !ok || live[p] < live[kept] || live[p] == live[kept] &&
					uintptr(p) < uintptr(kept) {
					windows[at] = p
				}
			}
			for p := range live {
				if windows[uintptr(p)/uintptr(size)] != p {
					require.NoError(t, b.Free(p))
					delete(live, p)
				}
			}
			for b.Stats().Used+size <= 4096 {
				p := b.Alloc(size, 1)
				if p == nil {
					refused = true
					break
				}
				live[p] = size
			}
		}
		assert.Equal(t, less == 1, refused)
		arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	}
}

// TestWhatOddSizesCost fills a buddy and a heap of 4 MiB with sizes of two kinds, then frees a
// random half and refills them several times. It compares the bytes used for each requested byte
// with the figures in arena_c/buddy.h.
func TestWhatOddSizesCost(t *testing.T) {
	const all = 4 << 20
	block := arena.NewBlock(all, arena_c.AlignMax)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), all) })
	for _, kind := range []struct {
		name        string
		size        func(random *rand.Rand) uint64
		buddy, heap float64
	}{
		{"each size from 16 to 4096 as often",
			func(r *rand.Rand) uint64 { return 16 + r.Uint64N(4081) }, 1.36, 1.02},
		{"each power of two from 16 to 4096 as often",
			func(r *rand.Rand) uint64 { return uint64(math.Exp2(4 + 8*r.Float64())) }, 1.41, 1.04},
	} {
		cost := func(a arena.Freer) (cost float64) {
			random := rand.New(rand.NewPCG(7, 7))
			var live []unsafe.Pointer
			sizes, asked := map[unsafe.Pointer]uint64{}, uint64(0)
			for range 12 {
				for {
					size := kind.size(random)
					p := a.Alloc(size, 16)
					if p == nil {
						break
					}
					live, sizes[p] = append(live, p), size
					asked += size
				}
				cost = all / float64(asked)
				random.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
				for _, p := range live[len(live)/2:] {
					asked -= sizes[p]
					require.NoError(t, a.Free(p))
				}
				live = live[:len(live)/2]
			}
			return cost
		}
		buddy, err := arena.NewBuddy(block, 64)
		require.NoError(t, err)
		keepBuddy(block)
		ofBuddy := cost(buddy)
		heap, err := arena.NewHeap(block, 0)
		require.NoError(t, err)
		keepHeap(block)
		ofHeap := cost(heap)
		t.Logf("%s: a buddy takes %.3f times the bytes, a heap %.3f", kind.name, ofBuddy, ofHeap)
		assert.InDelta(t, kind.buddy, ofBuddy, 0.02, kind.name)
		assert.InDelta(t, kind.heap, ofHeap, 0.02, kind.name)
	}
}

func keepBuddy(block []byte) { (*arena_c.Buddy)(unsafe.Pointer(unsafe.SliceData(block))).SetPlain() }
