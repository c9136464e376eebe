package cache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/scope/stack"
)

// TestReport: a report lists the caches of open scopes with their counts, and keeps the counts of
// those that ended.
func TestReport(t *testing.T) {
	plan := budget.Plan{Name: "reports", Regions: []budget.RegionPlan{{Name: "init", Size: 1 << 20},
		{Name: "level", Size: 1 << 20}}}
	b, err := budget.Open(plan)
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	level := b.Region("level")
	loads := uint64(0)
	load := func(s scope.Scope) (*[8]byte, error) {
		c := cache.NewBytes(s, 64<<10, cache.Options{Shards: 4, Seed: 1})
		for i := range 1000 {
			require.NoError(t, c.Set(fmt.Append(nil, i), make([]byte, 100)))
		}
		require.ErrorIs(t, c.Set(nil, make([]byte, c.Most())), cache.ErrLarge)
		_, ok := c.Get(nil, []byte("999"))
		require.True(t, ok)
		_, ok = c.Get(nil, []byte("none"))
		require.False(t, ok)
		st := c.Stats()
		require.NotZero(t, st.Evictions)
		inner := s.Open("inside")
		of := cache.New(inner, scope.Plain[int](), scope.Plain[[100]byte](), 2)
		one, err := of.Add(1)
		require.NoError(t, err)
		two, err := of.Add(2)
		require.NoError(t, err)
		_, err = of.Add(3)
		require.ErrorIs(t, err, scope.ErrFull)
		of.Unpin(two)
		of.Unpin(of.Get(1))
		three, err := of.Add(3)
		require.NoError(t, err)

		bytes := stack.Inner{Kind: "cache", Of: "bytes", Scope: "level", Size: 64 << 10,
			Used: st.KeyBytes + st.ValueBytes, Live: st.Entries, Failed: 1,
			CacheCounts: stack.CacheCounts{Hits: 1, Misses: 1, Evictions: st.Evictions}}
		values := stack.Inner{Kind: "cache", Of: "[100]uint8", Scope: "inside", Size: 200, Used: 200,
			Live: 2, Failed: 1,
			CacheCounts: stack.CacheCounts{Hits: 1, Evictions: 1}}
		assert.Equal(t, []stack.Inner{bytes, values}, caches(level.Report()))
		assert.Contains(t, b.Report().String(),
			`level: cache of [100]uint8 in scope "inside" used 0.2KiB of 0.2KiB in 2 values; 100.0% hits of 1 reads, evicted 1, refused 1`)
		of.Unpin(one)
		of.Unpin(three)
		require.NoError(t, inner.Close())
		assert.Equal(t, []stack.Inner{bytes}, caches(level.Report()))
		loads++
		assert.Equal(t, stack.CacheCounts{Hits: 2 * loads, Misses: loads, Evictions: loads * (st.Evictions + 1)},
			level.Report().Caches)
		return scope.Plain[[8]byte]().New(s), nil
	}
	_, err = budget.Load(t.Context(), level, load)
	require.NoError(t, err)
	assert.Len(t, caches(b.Published().Arena("level")), 1)
	_, err = budget.Load(t.Context(), level, load)
	require.NoError(t, err)
	twice := level.Report().Caches
	require.NoError(t, level.Rewind(t.Context()))
	assert.Equal(t, twice, level.Report().Caches)
	assert.Empty(t, level.Report().Inner)
	parts := b.Report().Parts()
	assert.Equal(t, twice.Evictions, parts[1].Value("cache_evictions"))
}

// caches returns the caches of a report, without the lines that made them.
func caches(r budget.ArenaReport) (list []stack.Inner) {
	for _, in := range r.Inner {
		in.Made = nil
		list = append(list, in)
	}
	return list
}

// TestWarningNamesTheCache: a region that a cache fills up to its share warns, and the label around
// the cache is the largest holder.
func TestWarningNamesTheCache(t *testing.T) {
	var warned []budget.Warning
	b, err := budget.Open(budget.Plan{Name: "warns", OnWarn: func(w budget.Warning) { warned = append(warned, w) },
		Regions: []budget.RegionPlan{{Name: "level", Size: 1 << 20, Warn: 50}}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*[8]byte, error) {
		return scope.Plain[[8]byte]().New(s), scope.Label(s, "blocks", func() error {
			cache.NewBytes(s, 600<<10, cache.Options{})
			return nil
		})
	})
	require.NoError(t, err)
	require.Len(t, warned, 1)
	assert.Equal(t, "level", warned[0].Arena)
	assert.Equal(t, "blocks", warned[0].Labels[0].Name)
	assert.GreaterOrEqual(t, warned[0].Labels[0].Bytes, uint64(600<<10))
}
