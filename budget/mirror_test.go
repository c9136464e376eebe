package budget_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestBudgetsSideBySide in one block, and one in a block of another: in checked and asan builds what each gives lies
// elsewhere, and is found again.
func TestBudgetsSideBySide(t *testing.T) {
	need, err := small().Need()
	require.NoError(t, err)
	block := make([]byte, 2*need)
	outer := []*budget.Budget{openIn(t, block[:need]), openIn(t, block[need:])}
	var inner *budget.Budget
	for _, b := range outer {
		mustLoad(t, b, "systems", func(s scope.Scope) { checkPlaces(t, b, s) })
	}
	plan := budget.Plan{Name: "inner", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}}
	size, err := plan.Need()
	require.NoError(t, err)
	mustLoad(t, outer[0], "level", func(s scope.Scope) {
		inner, err = budget.OpenIn(s.BytesUnzeroed(int(size), 64), plan)
		require.NoError(t, err)
		mustLoad(t, inner, "level", func(s scope.Scope) { checkPlaces(t, inner, s) })
		checkPlaces(t, outer[0], s)
		requireWalk(t, inner)
		require.NoError(t, inner.Close())
	})
	for _, b := range outer {
		requireWalk(t, b)
		require.NoError(t, b.Close())
	}
}

func openIn(t *testing.T, block []byte) *budget.Budget {
	b, err := budget.OpenIn(block, small())
	require.NoError(t, err)
	return b
}

// checkPlaces makes things, whose bytes are where the budget's base says.
func checkPlaces(t *testing.T, b *budget.Budget, s scope.Scope) {
	frog, list := frogs.New(s), frogs.Slice(s, 100)
	frog.X, list[99].Age = 3, 5
	base := b.Base()
	ptr, slice := arena.PtrTo(base, frog), arena.SliceOf(base, list[50:])
	assert.Same(t, frog, ptr.Get(base))
	assert.Same(t, &list[99], &slice.Get(base)[49])
	saved := arena.BaseOf(append([]byte(nil), base.Bytes()...)) // a save game
	assert.Equal(t, *frog, *ptr.Get(saved))
	assert.Equal(t, list[50:], slice.Get(saved))
}
