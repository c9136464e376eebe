package budget_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// TestWalkOfRandomLoads: whatever was there before, a walk finds no fault in a load that did none. In checked builds it looks at each
// byte that nobody has.
func TestWalkOfRandomLoads(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "walked", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}}})
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
			for range 1 + random.IntN(60) {
				size := 1 + random.IntN(1<<(3+random.IntN(10)))
				s.BytesUnzeroed(size, 1<<random.IntN(7))[size-1] = 7
			}
			return &struct{}{}, nil
		})
		require.NoError(t, err)
		_, err = b.Walk()
		require.NoError(t, err, "seed %d", seed)
	}
}
