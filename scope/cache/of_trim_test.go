package cache_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// slab is a value of some pages. Its parts are those of the whole value.
type slab struct{ Words [1500]uint64 }

var slabs = scope.Plain[slab]()

func (x *slab) fill(at int64) {
	for i := range x.Words {
		x.Words[i] = uint64(at)<<16 | uint64(i)
	}
}

// is reports whether x has the words of fill.
func (x *slab) is(at int64) bool {
	var want slab
	want.fill(at)
	return *x == want
}

// givesPages reports whether Trim returns the pages of free values in this build, and of no others.
// In asan builds values are at other addresses.
const givesPages = !arena_c.Checked && !arena_c.Race && !arena_c.Asan

// wholePages returns the bytes of the whole pages from the end of one value to another.
func wholePages(from, to uintptr) uint64 {
	page := uintptr(os.Getpagesize())
	from = (from + page - 1) &^ (page - 1)
	return uint64(max(to&^(page-1), from) - from)
}

func trim(t testing.TB, c *cache.Of[int64, slab]) uint64 {
	bytes, err := c.Trim()
	require.NoError(t, err)
	return bytes
}

// TestOfTrim: exactly the whole pages between values go back, and no value changes.
func TestOfTrim(t *testing.T) {
	const n = 200
	b := budgettest.Open(t,
		budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}})
	_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*world, error) {
		c := cache.New(s, places, slabs, n)
		handles := map[int64]arena.Handle[slab]{}
		at := make([]uintptr, n+1) // the addresses of the values
		for k := range int64(n) {
			x, err := c.Add(k)
			require.NoError(t, err)
			x.fill(k)
			at[k], handles[k] = uintptr(unsafe.Pointer(x)), c.Handle(x)
			if k%10 != 0 {
				c.Unpin(x)
			}
		}
		require.Zero(t, trim(t, c), "no value is free")
		want, free, r := uint64(0), uintptr(0), rand.New(rand.NewPCG(4, 6))
		for k := range int64(n) {
			if k%10 != 0 && r.IntN(3) > 0 {
				require.NoError(t, c.Delete(k))
				delete(handles, k)
				if free == 0 {
					free = at[k]
				}
			} else if free != 0 {
				want += wholePages(free, at[k])
				free = 0
			}
		}
		if free != 0 {
			want += wholePages(free, at[n-1]+unsafe.Sizeof(slab{}))
		}
		before, measured := b.Missing()
		got := trim(t, c)
		after, _ := b.Missing()
		if givesPages && measured {
			require.Equal(t, want, got)
			require.EqualValues(t, want, (after-before)*os.Getpagesize(), "as the system counts")
		} else if arena_c.Checked || arena_c.Race {
			require.Zero(t, got)
		}
		if measured { // else each Trim counts all pages that it gives
			require.Zero(t, trim(t, c), "they went back already")
		}
		for k := range int64(n) {
			x := c.At(handles[k])
			require.Equal(t, handles[k] != 0, x != nil)
			require.Same(t, x, c.Get(k))
			if x != nil {
				require.True(t, x.is(k))
			}
		}
		return nil, nil
	})
	require.NoError(t, err)
}

// TestOfTrimInUse: a value in load, pinned, or in its finalizer stays, and the pages that went back
// hold values again.
func TestOfTrimInUse(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "test", Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB}})
	s := b.Scratch(0, 0).Open("world")
	var c *cache.Of[int64, slab]
	ends := int64(-1) // the key of the value to end
	c = cache.NewObjects(s, places, scope.Object(func(x *slab) error {
		trim(t, c)
		if ends >= 0 {
			assert.True(t, x.is(ends))
		}
		return nil
	}), 20)
	trim(t, c)
	r := rand.New(rand.NewPCG(6, 4))
	for range 500 {
		k := r.Int64N(60)
		x, err := c.GetOrLoad(background, k, func(_ context.Context, x *slab) error {
			assert.Equal(t, slab{}, *x)
			x.fill(k)
			trim(t, c)
			assert.True(t, x.is(k))
			if r.IntN(4) == 0 {
				return errLoad
			}
			return nil
		})
		switch {
		case err != nil:
			assert.Equal(t, errLoad, err)
			continue
		case r.IntN(3) == 0:
			trim(t, c)
		case r.IntN(20) == 0:
			require.NoError(t, c.Resize(1+r.IntN(20)))
		}
		require.True(t, x.is(k))
		c.Unpin(x)
		if r.IntN(4) == 0 {
			ends = k
			require.NoError(t, c.Delete(k))
			ends = -1
		}
	}
	require.NotZero(t, c.Stats().Evictions)
	require.NoError(t, walk(b))
	require.NoError(t, s.Close())
	assert.Zero(t, trim(t, c), "the scope closed")
}

// TestOfTrimInAState: a snapshot from before brings all values back, and a state has the same hash
// before and after.
func TestOfTrimInAState(t *testing.T) {
	b := budgettest.Open(t,
		budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB, State: true}}})
	var c *cache.Of[int64, slab]
	var ring *save.Ring
	_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*world, error) {
		state, w := save.Begin(b.Region("level"), s, worlds)
		c = cache.New(s, places, slabs, 40)
		ring = save.NewRing(s, 4, state)
		return w, nil
	})
	require.NoError(t, err)
	for k := range int64(40) {
		x, err := c.Add(k)
		require.NoError(t, err)
		x.fill(k)
		c.Unpin(x)
	}
	require.NoError(t, ring.Take(1))
	require.NoError(t, c.Resize(10))
	require.NoError(t, ring.Take(2))
	if bytes := trim(t, c); givesPages {
		assert.Greater(t, bytes, uint64(100_000))
	}
	require.NoError(t, ring.Take(3))
	before, err := ring.Hash(2)
	require.NoError(t, err)
	after, err := ring.Hash(3)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	for number, count := range map[uint64]int{1: 40, 3: 10, 2: 10} {
		require.NoError(t, ring.Restore(background, number))
		trim(t, c)
		found := 0
		for k := range int64(40) {
			if x := c.Get(k); x != nil {
				found++
				assert.True(t, x.is(k))
				c.Unpin(x)
			}
		}
		assert.Equal(t, count, found)
	}
}

// TestOfTrimRefused: the error names the key of the plan that holds the pages.
func TestOfTrimRefused(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "test", Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB},
		Pages: budget.Pages{Prefault: budget.Required}})
	require.NoError(t, err)
	s := b.Scratch(0, 0).Open("world")
	c := cache.New(s, places, slabs, 20)
	bytes, err := c.Trim()
	if !arena_c.Checked {
		assert.ErrorContains(t, err, `budget "test": Trim refused: pages.prefault is "required"`)
	}
	assert.Zero(t, bytes)
	require.NoError(t, s.Close())
	require.NoError(t, b.Close())
}
