package budget_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestOneBudgetIsStrict: a second strict budget is refused also in builds without the check, so
// that a program that runs in them runs in a checked build.
func TestOneBudgetIsStrict(t *testing.T) {
	other := small()
	other.Name = "other"
	a, b := open(t, small()), open(t, other)
	require.NoError(t, a.SealStrict())
	require.NoError(t, a.SealStrict(), "again is nothing new")
	taken := `budget "other": SealStrict: budget "small" is strict already; the process has one Go heap, so use Seal`
	assert.EqualError(t, b.SealStrict(), taken)
	require.NoError(t, b.Seal())
	assert.EqualError(t, b.SealStrict(), taken, "Seal took nothing")
	require.NoError(t, a.Seal())
	require.NoError(t, b.SealStrict())
	require.NoError(t, b.Close())
	require.NoError(t, a.SealStrict(), "who is closed is strict no longer")
	require.NoError(t, a.Seal())
}

func moved(b *budget.Budget) budget.Plan {
	plan := b.Plan()
	plan.Regions[0].Size -= 64 * budget.KiB
	plan.Regions[1].Size += 64 * budget.KiB
	return plan
}

func TestSealedReconfigureAsksTheSystemForNothing(t *testing.T) {
	plan := small()
	plan.Pages.Guards = budget.Wished
	b := open(t, plan)
	require.NoError(t, b.Reconfigure(background, moved(b)), "before Seal")
	require.NoError(t, b.Seal())
	before := b.Plan()
	back := b.Plan()
	back.Regions[0].Size, back.Regions[1].Size = plan.Regions[0].Size, plan.Regions[1].Size
	assert.EqualError(t, b.Reconfigure(background, back),
		`budget "small": Reconfigure after Seal: to move regions[0].size, `+
			`regions[1].size, the system would have to move the guards between them; set pages.guards to "off", or Reconfigure before Seal`)
	assert.Equal(t, before, b.Plan(), "nothing has changed")
	requireWalk(t, b)
	assert.NoError(t, b.Reconfigure(background, before), "nothing to move")
	mustLoad(t, b, "level", nil)
	require.NoError(t, b.Close())
	again := open(t, plan)
	require.NoError(t, again.Reconfigure(background, moved(again)), "another budget is not sealed")
}

// TestSealedBudgetDoesAllItDid: a sealed budget loads, rewinds, ends frames, reconfigures and
// closes. Only checked builds look for allocations of a strict one.
func TestSealedBudgetDoesAllItDid(t *testing.T) {
	b := open(t, small())
	require.NoError(t, b.Seal())
	require.NoError(t, b.Reconfigure(background, moved(b)))
	assert.EqualValues(t, 64*budget.KiB, regionReport(b, "init").Size)
	if !arena_c.Checked {
		require.NoError(t, b.SealStrict())
	}
	for range 3 {
		mustLoad(t, b, "systems", fill)
		mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 1, 0) })
		frogs.New(b.Frame())
		escape()
		require.NoError(t, b.NextFrame())
		require.NoError(t, b.NextFrame())
		require.NoError(t, b.Region("systems").Rewind(background))
	}
	require.NoError(t, b.Close())
}
