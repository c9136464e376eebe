package budget_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope/stack"
)

// TestDryHolds plays events in dry arenas in any order; after each, the core finds the tables
// whole. An event that can't come now, or for which an arena is full, leaves the headers unchanged.
func TestDryHolds(t *testing.T) {
	plan := measured()
	plan.Regions[0].Size, plan.Limits = 1001, budget.Limits{Scopes: 4, Pools: 2, Owned: 2, Labels: 2}
	b, err := openDry(plan)
	require.NoError(t, err)
	st := stacks(b)[0]
	r := rand.New(rand.NewPCG(1, 2))
	did := map[string]int{}
	for range 20000 {
		e := stack.Event{Kind: stack.EventKind(r.IntN(int(stack.EventLabels) + 2)), Size: r.Uint64N(300), Name: "s"}
		if r.IntN(100) == 0 {
			e.Size = r.Uint64()
		}
		before := *st.Row()
		err := st.Play(e)
		_, damage := b.Walk()
		require.NoError(t, damage, "%v", e)
		switch h := st.Row().Arena; {
		case err == nil:
			did["done"]++
			require.LessOrEqual(t, st.Row().Used(), uint64(1001))
		case errors.Is(err, budget.ErrFull):
			did["full"]++
			require.Equal(t, before.Arena.Cursor, h.Cursor)
			require.Equal(t, before.Arena.Limit, h.Limit)
		default:
			did["impossible"]++
			require.Equal(t, before, *st.Row())
		}
	}
	require.Len(t, did, 3)
	for st.Depth() > 0 {
		require.NoError(t, st.Play(stack.Event{Kind: stack.EventClose}))
	}
	require.Zero(t, st.Row().Temp.Depth)
	require.Zero(t, st.Row().Used())
}
