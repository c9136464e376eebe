package save_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// packing is a program with a heap in a state, and blocks that it writes whole.
type packing struct {
	b     *budget.Budget
	state *save.State
	heap  arena.Heap
	ring  *save.Ring
	root  *match
	live  []packedBlock
}

type packedBlock struct {
	offset uintptr // from the heap's first byte
	bytes  []byte
	value  byte
}

const packedSize = 256 << 10

// newPacking makes one with a heap whose snapshots have at most that many bytes, or all for 0.
func newPacking(t testing.TB, most uint64, change func(*budget.RegionPlan)) *packing {
	return newPackings(t, change, packedHeap{100, packedSize, most})[0]
}

// packedHeap is a heap, the bytes before it, and its most, or 0 for a heap that isn't packed.
type packedHeap struct{ before, size, most uint64 }

// newPackings makes programs with heaps in one state.
func newPackings(t testing.TB, change func(*budget.RegionPlan), heaps ...packedHeap) (list []*packing) {
	plan := budget.RegionPlan{Name: "room", Size: 16 * budget.MiB, State: true}
	if change != nil {
		change(&plan)
	}
	b := open(t, budget.Plan{Name: "match", Regions: []budget.RegionPlan{plan}})
	load(t, b, "room", func(r budget.Region, s scope.Scope) {
		state, m := save.Begin(r, s, matchMaker)
		for _, x := range heaps {
			clear(s.BytesUnzeroed(int(x.before), 1))
			heap, err := arena.NewHeap(s.BytesUnzeroed(int(x.size), 64), 32)
			require.NoError(t, err)
			heap.MayLive()
			if x.most != 0 {
				state.Heap(heap, x.most)
			}
			list = append(list, &packing{b: b, state: state, heap: heap, root: m})
		}
		clear(s.BytesUnzeroed(300, 8))
		ring := save.NewRing(s, 4, state)
		for _, p := range list {
			p.ring = ring
		}
	})
	return list
}

func (p *packing) first() uintptr { return *(*uintptr)(unsafe.Pointer(&p.heap)) }

// step allocates, frees or writes a block.
func (p *packing) step(t testing.TB, r *rand.Rand) {
	write := func(x packedBlock) packedBlock {
		x.value = byte(r.Uint32())
		for i := range x.bytes {
			x.bytes[i] = x.value
		}
		return x
	}
	switch n := len(p.live); {
	case n == 0 || r.IntN(5) < 2 && n < 60:
		size := 1 + r.Uint64N(200)
		if r.IntN(8) == 0 {
			size = 1 + r.Uint64N(8000)
		}
		if at := p.heap.Alloc(size, 16<<r.IntN(3)); at != nil {
			p.live = append(p.live, write(packedBlock{uintptr(at) - p.first(), unsafe.Slice((*byte)(at), size), 0}))
		}
	case r.IntN(2) == 0:
		i := r.IntN(n)
		require.NoError(t, p.heap.Free(unsafe.Pointer(&p.live[i].bytes[0])))
		p.live[i] = p.live[n-1]
		p.live = p.live[:n-1]
	default:
		i := r.IntN(n)
		p.live[i] = write(p.live[i])
	}
}

func (p *packing) check(t testing.TB) {
	for _, x := range p.live {
		require.Equal(t, p.first()+x.offset, uintptr(unsafe.Pointer(&x.bytes[0])))
		size, err := p.heap.SizeOf(unsafe.Pointer(&x.bytes[0]))
		require.NoError(t, err)
		require.EqualValues(t, len(x.bytes), size)
		for i, b := range x.bytes {
			require.Equal(t, x.value, b, "byte %d", i)
		}
	}
	require.EqualValues(t, len(p.live), p.heap.Stats().Live)
}

// TestPackedModel: a program that goes back now and then has the blocks of that tick, and the same
// hash as one that never left it. A snapshot holds the bytes in use.
func TestPackedModel(t *testing.T) {
	for most, last := range map[uint64]uint64{packedSize: 0x472e2c5fbf6d4c5e, 0: 0} {
		a, b := newPacking(t, most, nil), newPacking(t, most, nil)
		r, other := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		for tick := range uint64(100) {
			seed := r.Uint64()
			for _, p := range []*packing{a, b} {
				r := rand.New(rand.NewPCG(seed, 1))
				for range 10 {
					p.step(t, r)
				}
				require.NoError(t, p.ring.Take(tick))
			}
			if most != 0 && tick%3 == 0 {
				// a leaves for ticks that never were, and comes back
				kept := append([]packedBlock(nil), a.live...)
				for range other.IntN(30) {
					a.step(t, other)
				}
				require.NoError(t, a.ring.Restore(context.Background(), tick))
				a.live = kept
				a.check(t)
			}
			x, err := a.ring.Hash(tick)
			require.NoError(t, err)
			y, err := b.ring.Hash(tick)
			require.NoError(t, err)
			require.Equal(t, x, y, "tick %d", tick)
			if last != 0 && tick == 99 {
				assert.Equal(t, last, x, "the hash of all builds, %#x", x)
			}
			if most != 0 {
				used := a.heap.Stats().Used
				assert.Less(t, a.ring.Used(tick), int(used)+16<<10)
			}
		}
	}
}

// TestStateCostsWhatItHas: a large state with little in use, and its ring, make few pages present.
func TestStateCostsWhatItHas(t *testing.T) {
	if arena_c.Checked || arena_c.Asan || platform.GoBacked {
		t.Skip("this build has other pages for a state: go test ./budget/save runs it")
	}
	b, err := budget.Open(budget.Plan{Name: "match", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.MiB, State: true}}})
	require.NoError(t, err)
	defer b.Close()
	room := b.Region("room")
	var ring *save.Ring
	_, err = budget.Load(context.Background(), room, func(s scope.Scope) (*match, error) {
		state, m := save.Begin(room, s, matchMaker)
		heap, err := arena.NewHeap(s.BytesUnzeroed(16<<20, 64), 0)
		require.NoError(t, err)
		heap.MayLive()
		_ = heap.Alloc(10_000, 16)
		state.Heap(heap, 256<<10)
		ring = save.NewRing(s, 8, state)
		return m, nil
	})
	require.NoError(t, err)
	for tick := range uint64(8) {
		require.NoError(t, ring.Take(tick))
	}
	if resident := b.Report().Resident; resident != 0 { // 0: not measured here
		assert.Less(t, resident, uint64(8*budget.MiB), "a few pages, also if each has 2 MiB")
	}
}
