package save_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// TestPlayAgain: after any Restore, the same inputs give the same bytes.
func TestPlayAgain(t *testing.T) {
	ctx := context.Background()
	const ticks, places = 400, 8
	inputs := rand.New(rand.NewPCG(1, 2))
	var input [ticks]uint64
	for i := range input {
		input[i] = inputs.Uint64()
	}
	straight := newPond(t, open(t, pondPlan()), "level", 1)
	var want [ticks + 1]uint64
	for i := range uint64(ticks) {
		require.NoError(t, straight.ring.Take(i))
		want[i] = hash(t, straight.ring, i)
		straight.step(input[i])
	}

	p := newPond(t, open(t, pondPlan()), "level", places)
	back := rand.New(rand.NewPCG(3, 4))
	again := 0
	for p.room.Tick < ticks {
		now := p.room.Tick
		require.NoError(t, p.ring.Take(now))
		require.Equal(t, want[now], hash(t, p.ring, now), now)
		p.step(input[now])
		if far := back.Uint64N(places); back.IntN(3) == 0 && p.ring.Has(now-far) && again < 3*ticks {
			p.step(back.Uint64()) // a wrong input
			require.NoError(t, p.ring.Restore(ctx, now-far))
			require.Equal(t, now-far, p.room.Tick)
			require.Len(t, p.marks, int(p.room.Used))
			again++
		}
	}
	assert.Greater(t, again, ticks/4)
}

// TestNoAllocations: Take, Restore and Hash don't allocate on the Go heap.
func TestNoAllocations(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 3)
	for range 20 {
		p.step(7)
	}
	n := uint64(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		n++
		if err := p.ring.Take(n); err != nil {
			t.Error(err)
		}
		if err := p.ring.Restore(context.Background(), n); err != nil {
			t.Error(err)
		}
		if _, err := p.ring.Hash(n); err != nil {
			t.Error(err)
		}
	}))
}

// toad leaves 4 bytes of a chunk unused.
type toad struct{ X, Y, Age uint32 }

// TestChunksEndWithZeros: the bytes of a chunk after its value are in the hash, so a chunk that was
// put and taken again has zeros there in every build.
func TestChunksEndWithZeros(t *testing.T) {
	b := open(t, budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "match", Size: budget.MiB, State: true}}})
	maker := scope.Plain[toad]()
	_, err := budget.Load(context.Background(), b.Region("match"), func(s scope.Scope) (*save.Ring, error) {
		state, _ := save.Begin(b.Region("match"), s, roomMaker)
		pool, handles := maker.Pool(s, 4), maker.HandlePool(s, 4)
		x := pool.Get()
		pool.Put(x)
		_, h := handles.Get()
		handles.Put(h)
		y, _ := handles.Get()
		for _, toad := range []*toad{pool.GetUnzeroed(), y} {
			toad.X, toad.Age = 1, 3
			assert.Zero(t, *(*uint32)(unsafe.Add(unsafe.Pointer(toad), unsafe.Sizeof(*toad))))
		}
		return save.NewRing(s, 1, state), nil
	})
	require.NoError(t, err)
}

// TestUntouchedChunks: Take and Restore leave out chunks that were never taken. A state has the
// same hash in each image, and after each Restore.
func TestUntouchedChunks(t *testing.T) {
	b := open(t, budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "match", Size: budget.MiB, State: true}}})
	maker := scope.Plain[toad]()
	var pools [2]scope.Pool[toad]
	var ring *save.Ring
	_, err := budget.Load(context.Background(), b.Region("match"), func(s scope.Scope) (*room, error) {
		state, root := save.Begin(b.Region("match"), s, roomMaker)
		pools[0] = maker.Pool(s, 100)
		byteMaker.Slice(s, 100)
		pools[1] = maker.Pool(s, 100)
		ring = save.NewRing(s, 3, state)
		return root, nil
	})
	require.NoError(t, err)
	var want [4]uint64 // the hashes with 0, 10, 40 and 90 toads in each pool
	number := uint64(0)
	for round := range 6 {
		var first uint64
		for i, n := range [4]int{0, 10, 40, 90} {
			for _, pool := range pools {
				for pool.Live() < n {
					x := pool.Get()
					x.X = uint32(pool.Live())
				}
			}
			number++
			require.NoError(t, ring.Take(number))
			if i == 1 {
				first = number
			}
			if round == 0 {
				want[i] = hash(t, ring, number)
			}
			require.Equal(t, want[i], hash(t, ring, number), "%d toads in round %d", n, round)
		}
		require.NoError(t, ring.Restore(context.Background(), first))
		for _, pool := range pools {
			require.Equal(t, 10, pool.Live())
			require.Equal(t, 10, pool.Peak())
			for i := range 10 {
				require.Equal(t, uint32(i+1), pool.At(i).X)
			}
			for pool.Live() < 20 { // those after the 10th are untouched again
				x := pool.GetUnzeroed()
				require.True(t, arena_c.Checked || *x == toad{}, "a checked build fills it")
			}
		}
		require.NoError(t, ring.Restore(context.Background(), first))
		for _, pool := range pools {
			for i := range 10 {
				pool.Put(pool.At(9 - i))
			}
		}
		number++
		require.NoError(t, ring.Take(number))
		if round == 0 { // from now on, ten chunks are touched in the state without toads
			want[0] = hash(t, ring, number)
		}
		require.Equal(t, want[0], hash(t, ring, number), round)
	}
}
