package budget_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// static is memory that nobody allocated.
var static [2 << 20]byte

func TestOpenIn(t *testing.T) {
	outer := open(t, budget.Plan{Name: "outer", Regions: []budget.RegionPlan{{Name: "all", Size: 4 * budget.MiB}}})
	var inside []byte
	mustLoad(t, outer, "all", func(s scope.Scope) { inside = s.Bytes(3 * budget.MiB) })
	for name, block := range map[string][]byte{"static": static[:], "Go heap": make([]byte, 2*budget.MiB+5)[5:], "a region": inside} {
		t.Run(name, func(t *testing.T) {
			for i := range block {
				block[i] = 0xA5 // what is there may be anything
			}
			b, err := budget.OpenIn(block, small())
			require.NoError(t, err)
			l := mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
			assert.NotNil(t, l.Get())
			requireCovers(t, b, requireWalk(t, b))
			_, measured := b.Missing()
			assert.False(t, measured)
			s := b.Scratch(0, 0).Open("kept")
			require.Error(t, b.Close(), "a scratch scope was open")
			assert.Contains(t, panics(t, func() { frogs.New(s) }), "closed")

			again, err := budget.OpenIn(block, small())
			require.NoError(t, err)
			fresh := again.Scratch(0, 0).Open("fresh")
			assert.Nil(t, frogs.TryNew(s), "handles of the budget before stay dead in the same block")
			assert.NotNil(t, frogs.TryNew(fresh))
			require.NoError(t, fresh.Close())
			require.NoError(t, again.Close())
		})
	}
}

func TestOpenInTooSmall(t *testing.T) {
	need, err := small().Need()
	require.NoError(t, err)
	_, err = budget.OpenIn(static[:need-budget.KiB*64-1], small())
	assert.EqualError(t, err, fmt.Sprintf(`budget "small": the block has %d bytes, the plan needs %d (Plan.Need)`,
		need-64*budget.KiB-1, need))
	_, err = budget.OpenIn(nil, small())
	assert.ErrorContains(t, err, "the block has 0 bytes")
	for skip := range 3 {
		b, err := budget.OpenIn(static[skip*1000:][:need], small())
		require.NoError(t, err, "wherever it begins")
		require.NoError(t, b.Close())
	}
	_, err = budget.Plan{}.Need()
	assert.Error(t, err)
}
