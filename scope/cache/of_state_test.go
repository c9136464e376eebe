package cache_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

type world struct {
	Tick uint64
	Near arena.Handle[chunk]
}

var worlds = scope.Plain[world]()

var statePlan = budget.Plan{Name: "test",
	Regions: []budget.RegionPlan{{Name: "level", Size: 128 * budget.KiB, State: true}}}

// kept loads a world with a cache of n chunks in its state.
func kept(t testing.TB, n int) (c *chunkCache, w *world, ring *save.Ring, b *budget.Budget) {
	b = budgettest.Open(t, statePlan)
	r := b.Region("level")
	_, err := budget.Load(background, r, func(s scope.Scope) (*world, error) {
		var state *save.State
		state, w = save.Begin(r, s, worlds)
		c = cache.New(s, places, chunks, n)
		ring = save.NewRing(s, 4, state)
		return w, nil
	})
	require.NoError(t, err)
	return c, w, ring, b
}

// step does random operations that end without pins, and returns the keys that were found.
func steps(t testing.TB, c *chunkCache, random *rand.Rand, count int) (found []int64) {
	for range count {
		at := random.Int64N(40)
		if x := c.Get(at); x != nil {
			found = append(found, at)
			c.Unpin(x)
		} else if x, err := c.Add(at); err == nil {
			*x = chunk{At: at}
			c.Unpin(x)
		}
		if random.IntN(50) == 0 {
			require.NoError(t, c.Delete(at+1))
		}
	}
	return found
}

// TestAState: a cache is restored with its values, its handles and the order of its queues, and its
// bytes are the same in two runs.
func TestAState(t *testing.T) {
	c, w, ring, b := kept(t, 16)
	d, v, twin, _ := kept(t, 16)
	steps(t, c, rand.New(rand.NewPCG(1, 1)), 500)
	steps(t, d, rand.New(rand.NewPCG(1, 1)), 500)
	x, err := c.GetOrLoad(background, 77, loader(77))
	require.NoError(t, err)
	w.Near = c.Handle(x)
	c.Unpin(x)
	y := load(t, d, 77)
	v.Near = d.Handle(y)
	d.Unpin(y)
	require.NoError(t, ring.Take(1))
	require.NoError(t, twin.Take(1))
	hash, err := ring.Hash(1)
	require.NoError(t, err)
	other, err := twin.Hash(1)
	require.NoError(t, err)
	assert.Equal(t, hash, other)

	first := steps(t, c, rand.New(rand.NewPCG(2, 2)), 3000)
	assert.Nil(t, c.At(w.Near), "evicted")
	require.NoError(t, ring.Restore(background, 1))
	x = c.At(w.Near)
	require.NotNil(t, x, "there again")
	assert.EqualValues(t, 77, x.At)

	assert.ErrorContains(t, ring.Restore(background, 1),
		`save: Restore of snapshot 1 of region level of budget "test": `+
			"a cache of cache_test.chunk has 1 values pinned and 0 in load; Unpin them first")
	assert.ErrorContains(t, ring.Take(2), "save: Take of snapshot 2 of region level")
	c.Unpin(x)
	_, err = c.GetOrLoad(background, 78, func(context.Context, *chunk) error {
		assert.ErrorContains(t, ring.Take(2), "0 values pinned and 1 in load")
		assert.ErrorContains(t, ring.Restore(background, 1), "0 values pinned and 1 in load")
		return errLoad
	})
	assert.Equal(t, errLoad, err)
	require.NoError(t, ring.Restore(background, 1))
	assert.Equal(t, first, steps(t, c, rand.New(rand.NewPCG(2, 2)), 3000), "the same values in the same order")
	require.NoError(t, walk(b))
}

// TestObjectsInAState are refused: a finalizer can't be undone.
func TestObjectsInAState(t *testing.T) {
	r := budgettest.Open(t, statePlan).Region("level")
	_, err := budget.Load(background, r, func(s scope.Scope) (*world, error) {
		_, w := save.Begin(r, s, worlds)
		assert.ErrorContains(t, misuse(t, func() { cache.NewObjects(s, places, mortals, 4) }),
			"a cache of cache_test.chunk with a finalizer in a state")
		return w, nil
	})
	require.NoError(t, err)
}

// TestHostileWords: words from outside are refused, or the cache works with them, also with another
// index and pool.
func TestHostileWords(t *testing.T) {
	const n = 6
	c, _, _, b := kept(t, n)
	random := rand.New(rand.NewPCG(3, 3))
	steps(t, c, random, 200)
	refused, taken := 0, 0
	for round := range 4000 {
		image := slices.Clone(cache.BytesOf(c))
		require.NoError(t, cache.Look(image, n), "its own words")
		for range 1 + random.IntN(2) {
			at := random.IntN(len(image))
			if random.IntN(2) == 0 {
				image[at] = byte(random.IntN(9))
			} else {
				image[at] ^= 1 << random.IntN(8)
			}
		}
		if round%5 == 0 { // the words of another moment
			copy(image, cache.BytesOf(c))
			steps(t, c, random, 10)
		}
		if cache.Look(image, n) != nil {
			refused++
			continue
		}
		taken++
		require.NoError(t, cache.Replace(c))
		copy(cache.BytesOf(c), image)
		if random.IntN(4) == 0 {
			keys := cache.Keys(c)
			keys[random.IntN(len(keys))] = random.Int64N(40)
		}
		steps(t, c, random, 20)
		require.LessOrEqual(t, c.Len(), n)
		require.NoError(t, walk(b))
	}
	assert.Greater(t, refused, 500)
	assert.Greater(t, taken, 500)
}
