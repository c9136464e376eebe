package save_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// town is several states in one ring, with heaps and other bytes in turn.
type town struct {
	heaps []*packing
	pools []scope.HandlePool[frog]
	live  []arena.Handle[frog] // of pools[0]
	plain [][]byte
	ring  *save.Ring
}

// townState has the parts of a town's state after its root.
type townState struct {
	region string
	make   []any // a packedHeap, a number of bytes, or "pool"
}

func townPlan(state, track bool, size uint64, names ...string) (plan budget.Plan) {
	plan.Name = "town"
	for _, name := range names {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: name, Size: size, State: state, Track: track})
	}
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "rollback", Size: 8 * size * uint64(len(names))})
	return plan
}

func newTown(t testing.TB, plan budget.Plan, in func(s scope.Scope, size uint64) []byte, states ...townState) *town {
	x := &town{}
	b := open(t, plan)
	var all []*save.State
	for _, of := range states {
		load(t, b, of.region, func(r budget.Region, s scope.Scope) {
			byteMaker.Slice(s, 777)
			state, root := save.Begin(r, s, matchMaker)
			for _, part := range of.make {
				switch part := part.(type) {
				case packedHeap:
					heap, err := arena.NewHeap(in(s, part.size), 32)
					require.NoError(t, err)
					heap.MayLive()
					state.Heap(heap, part.most)
					x.heaps = append(x.heaps, &packing{b: b, state: state, heap: heap, root: root})
				case int:
					x.plain = append(x.plain, byteMaker.Slice(s, part))
				default:
					x.pools = append(x.pools, frogMaker.HandlePool(s, 30))
				}
			}
			all = append(all, state)
		})
	}
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) { x.ring = save.NewRing(s, 4, all...) })
	for _, p := range x.heaps {
		p.ring = x.ring
	}
	return x
}

func inScope(s scope.Scope, size uint64) []byte { return s.BytesUnzeroed(int(size), 64) }

// step changes something in each state.
func (x *town) step(t testing.TB, r *rand.Rand) {
	for _, p := range x.heaps {
		for range r.IntN(9) {
			p.step(t, r)
		}
		p.root.Tick++
	}
	for _, b := range x.plain {
		from := r.IntN(len(b))
		for i := range b[from:min(len(b), from+r.IntN(6000))] {
			b[from+i] = byte(r.Uint32())
		}
	}
	for _, pool := range x.pools[:min(1, len(x.pools))] {
		if n := len(x.live); n != 0 && r.IntN(2) == 0 {
			i := r.IntN(n)
			pool.Put(x.live[i])
			x.live[i] = x.live[n-1]
			x.live = x.live[:n-1]
		} else if f, h := pool.Get(); f != nil {
			f.Age = int32(r.Uint32())
			x.live = append(x.live, h)
		}
	}
}

// townThen is a town at a snapshot.
type townThen struct {
	live  [][]packedBlock
	plain [][]byte
	frogs []arena.Handle[frog]
}

func (x *town) now() (then townThen) {
	for _, p := range x.heaps {
		then.live = append(then.live, slices.Clone(p.live))
	}
	for _, b := range x.plain {
		then.plain = append(then.plain, slices.Clone(b))
	}
	then.frogs = slices.Clone(x.live)
	return then
}

// restore goes to a snapshot, and requires that all is as it was.
func (x *town) restore(t testing.TB, number uint64, then townThen) {
	require.NoError(t, x.ring.Restore(background, number))
	for i, p := range x.heaps {
		p.live = slices.Clone(then.live[i])
		p.check(t)
	}
	require.Equal(t, then.plain, append([][]byte(nil), x.plain...))
	x.live = slices.Clone(then.frogs)
	for _, h := range x.live {
		require.NotNil(t, x.pools[0].At(h))
	}
}

// play takes and restores for some ticks. A twin that never goes back has the same hashes, if the
// regions are state regions.
func (x *town) play(t *testing.T, twin *town, rounds int) {
	r, back := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
	then := map[uint64]townThen{}
	for tick := range uint64(rounds) {
		seed := r.Uint64()
		for _, x := range []*town{x, twin} {
			if x != nil {
				x.step(t, rand.New(rand.NewPCG(seed, 1)))
				require.NoError(t, x.ring.Take(tick))
			}
		}
		then[tick] = x.now()
		for range back.IntN(3) {
			x.step(t, back)
		}
		if to := tick - back.Uint64N(min(tick+1, 4)); x.ring.Has(to) {
			x.restore(t, to, then[to])
		}
		x.restore(t, tick, then[tick])
		if twin != nil {
			require.Equal(t, hash(t, twin.ring, tick), hash(t, x.ring, tick))
			require.Equal(t, heldBy(t, twin.ring), heldBy(t, x.ring))
			require.NoError(t, x.ring.Take(tick))
			require.Equal(t, hash(t, twin.ring, tick), hash(t, x.ring, tick))
		}
		if twin != nil && tick%4 == 3 {
			delta, err := x.ring.Delta(nil, tick-1, tick)
			require.NoError(t, err)
			_, err = twin.ring.Apply(delta)
			require.NoError(t, err)
			require.NoError(t, readAgain(twin.ring, written(t, x.ring, tick-1)))
			require.NoError(t, readAgain(x.ring, written(t, twin.ring, tick)))
			require.Equal(t, heldBy(t, twin.ring), heldBy(t, x.ring))
		}
	}
}

// TestPackedTowns: heaps at a state's first bytes after its root and at its end, next to each
// other, and in several states of a ring. Some states have none. Pools and bytes are between
// them.
func TestPackedTowns(t *testing.T) {
	heap := packedHeap{size: 16 << 10, most: 16 << 10}
	small := packedHeap{size: 8 << 10, most: 1 << 63}
	rounds := step.Pick(8, 40, 200)
	for name, states := range map[string][]townState{
		"one heap alone":     {{"a", []any{heap}}},
		"first and last":     {{"a", []any{heap, 100, small}}},
		"adjacent":           {{"a", []any{heap, small, heap}}},
		"after a pool":       {{"a", []any{"pool", heap, 5000, small, "pool"}}},
		"before a pool":      {{"a", []any{heap, "pool", 64, "pool"}}},
		"in the first state": {{"a", []any{heap, "pool"}}, {"b", []any{100}}, {"c", []any{"pool", 1}}},
		"in the last state":  {{"a", []any{"pool", 1}}, {"b", []any{100}}, {"c", []any{heap}}},
		"in some":            {{"a", []any{100, heap}}, {"b", []any{"pool"}}, {"c", []any{heap, 1, heap, "pool"}}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := townPlan(true, false, 64*budget.KiB, "a", "b", "c")
			newTown(t, plan, inScope, states...).play(t, newTown(t, plan, inScope, states...), rounds)
		})
		t.Run(name+", no state region", func(t *testing.T) {
			x := newTown(t, townPlan(false, false, 64*budget.KiB, "a", "b", "c"), inScope, states...)
			x.play(t, nil, rounds)
			_, err := x.ring.Hash(1)
			assert.ErrorContains(t, err, "set its key state to true")
		})
	}
}

// TestPackedTracked: in a tracked region the pages outside of heaps are tracked, and the heaps are
// packed.
func TestPackedTracked(t *testing.T) {
	heap := packedHeap{size: 16 << 10, most: 16 << 10}
	states := []townState{{"a", []any{100_000, heap, 70_000, packedHeap{size: 1088, most: 2000},
		packedHeap{size: 3200, most: 4000}, "pool", 9000}},
		{"b", []any{heap, 50_000}}}
	for _, fault := range []bool{false, true} {
		func() {
			if fault {
				defer platform.InjectFault("track", 1)()
			}
			plan := townPlan(true, true, 512*budget.KiB, "a", "b")
			newTown(t, plan, inScope, states...).play(t, newTown(t, plan, inScope, states...), step.Pick(16, 300, 300))
		}()
	}
}

// TestPackedNested: a heap in a block of another arena of the state is packed, and the rest of that
// arena isn't.
func TestPackedNested(t *testing.T) {
	heap := packedHeap{size: 8 << 10, most: 8 << 10}
	const outer = 20 << 10
	for name, in := range map[string]func(s scope.Scope, size uint64) []byte{
		"heap": func(s scope.Scope, size uint64) []byte {
			h, err := arena.NewHeap(s.BytesUnzeroed(outer, 64), 0)
			require.NoError(t, err)
			h.MayLive()
			require.NotNil(t, h.Alloc(100, 16))
			return unsafe.Slice((*byte)(h.Alloc(size, 64)), size)
		},
		"buddy": func(s scope.Scope, size uint64) []byte {
			h, err := arena.NewBuddy(s.BytesUnzeroed(outer, 64), 64)
			require.NoError(t, err)
			h.MayLive()
			require.NotNil(t, h.Alloc(100, 16))
			return unsafe.Slice((*byte)(h.Alloc(size, 64)), size)
		},
		"linear": func(s scope.Scope, size uint64) []byte {
			l, err := arena.NewLinear(s.BytesUnzeroed(outer, 64))
			require.NoError(t, err)
			return unsafe.Slice((*byte)(l.Alloc(size, 64)), size)
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, states := townPlan(true, false, 64*budget.KiB, "a"), []townState{{"a", []any{100, heap, 50}}}
			newTown(t, plan, in, states...).play(t, newTown(t, plan, in, states...), 10)
		})
	}
}

// TestPackedMisuse: State.Heap panics with the reason, and takes nothing.
func TestPackedMisuse(t *testing.T) {
	b := open(t, twoRegions())
	elsewhere := heapOn(t, arena.NewBlock(2048, 64))
	var higher arena.Heap
	load(t, b, "extra", func(_ budget.Region, s scope.Scope) { higher = heapOn(t, s.BytesUnzeroed(2048, 64)) })
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		before := heapOn(t, s.BytesUnzeroed(2048, 64))
		state, _ := save.Begin(r, s, matchMaker)
		heap := heapOn(t, s.BytesUnzeroed(4096, 64))
		heap.MayLive()
		inner := heapOn(t, unsafe.Slice((*byte)(heap.Alloc(2048, 64)), 2048))
		refused := func(h arena.Heap, says string) {
			assert.Equal(t, "save: BUG: State.Heap in region level: "+says, panicOf(t, func() { state.Heap(h, 4096) }))
		}
		const notIn = "the heap isn't on bytes of the state; make it there, after Begin"
		for _, h := range []arena.Heap{elsewhere, higher, before} {
			refused(h, notIn)
		}
		refused(arena.Heap{}, "the heap is the zero arena.Heap")
		state.Heap(heap, 4096)
		refused(heap, "the heap at byte 0x40 overlaps the one at 0x40, which State.Heap named")
		assert.Regexp(t, "the heap at byte 0x[0-9a-f]+ overlaps the one at 0x40, which State.Heap named",
			panicOf(t, func() { state.Library(inner, 1) }))
		ring := save.NewRing(s, 1, state)
		refused(inner, "it is called after NewRing; call it before, in the load")
		assert.Equal(t, 4096+2*64, ring.Size(), "the root, and the heap's words")
	})
}

func heapOn(t *testing.T, block []byte) arena.Heap {
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	return h
}
