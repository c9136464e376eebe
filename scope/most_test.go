package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

type openCounts = struct{ Scopes, Pools, Owned, Labels int }

func TestMostOpen(t *testing.T) {
	for range 2 { // the second lies where the first was, and finds its generations
		b := open(t)
		scratch := b.Scratch(0, 0)
		assert.Zero(t, scratch.Stats().MostOpen)
		s := scratch.Open("a")
		assert.Equal(t, openCounts{Scopes: 1}, scratch.Stats().MostOpen, "while it is open")
		require.NoError(t, s.Open("b").Close())
		held := s.Keep(1)
		assert.True(t, held.Cancel())
		s.Keep(2)
		s.Keep(3)
		points.Pool(s, 3)
		assert.Equal(t, openCounts{Scopes: 2, Pools: 1, Owned: 2}, scratch.Stats().MostOpen)
		inner := s.Open("c")
		points.Pool(inner, 1)
		for _, name := range []string{"x", "y", "x"} {
			require.NoError(t, scope.Label(inner, name, func() error { return nil }))
		}
		require.NoError(t, inner.Close())
		require.NoError(t, s.Close())
		want := openCounts{Scopes: 2, Pools: 2, Owned: 2, Labels: 2}
		assert.Equal(t, want, scratch.Stats().MostOpen, "nobody looked while they were open")
		require.NoError(t, scratch.Open("d").Close())
		assert.Equal(t, want, scratch.Stats().MostOpen)
		assert.EqualValues(t, want, b.Report().Beside[0].MostOpen)
		require.NoError(t, b.Close())
	}
}

// TestMostOpenCountsWhatCOpens: C opens and closes without a word to Go.
func TestMostOpenCountsWhatCOpens(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	header, _ := s.C()
	h := (*arena_c.Scopes)(header)
	h.Open()
	pool, code := h.PoolOpen(h.Open(), 8, 8, 1, 0, false)
	require.Equal(t, arena_c.OK, code)
	pool.Close()
	h.Chain = h.Top().Chain
	h.Close(h.Top())
	h.Close(h.Top())
	require.NoError(t, s.Close())
	assert.Equal(t, openCounts{Scopes: 3, Pools: 1}, scratch.Stats().MostOpen)
	assert.Zero(t, scratch.Stats().Pools)
}
