package record_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// TestReconfigure: Reconfigure moves edges and forgets peaks. A recording goes on, and has the
// peaks of before and after.
func TestReconfigure(t *testing.T) {
	plan := game()
	plan.Regions = []budget.RegionPlan{{Name: "sound", Size: 6 << 16}, {Name: "map", Size: 2 << 16}}
	trace, was := recorded(t, plan, func(b *budget.Budget, r *record.Recording) {
		r.Mark("city")
		load(t, b.Region("sound"), func(s scope.Scope) { octets.Slice(s, 5<<16) })
		require.NoError(t, b.Region("sound").Rewind(ctx))
		other := b.Plan()
		other.Regions[0].Size, other.Regions[1].Size = 2<<16, 6<<16
		require.NoError(t, b.Reconfigure(ctx, other))
		r.Mark("desert")
		load(t, b.Region("map"), func(s scope.Scope) { octets.Slice(s, 4<<16); s.Temp(1 << 16) })
		load(t, b.Region("sound"), func(s scope.Scope) { octets.Slice(s, 100) })
	})
	assert.EqualValues(t, 100, was.Arenas[0].Peak)
	before, err := record.Plan(bytes.NewReader(trace))
	require.NoError(t, err)
	assert.EqualValues(t, 6<<16, before.Regions[0].Size) // as at Start
	require.EqualValues(t, "desert", failed(t, before, bytes.NewReader(trace)).Mark)
	require.EqualValues(t, "city", failed(t, was.Plan, bytes.NewReader(trace)).Mark)

	both := before
	both.Regions = []budget.RegionPlan{{Name: "sound", Size: 5 << 16}, {Name: "map", Size: 5<<16 + 64}}
	report, played, err := record.Replay(both, bytes.NewReader(trace))
	require.NoError(t, err)
	assert.True(t, played.Whole)
	assert.EqualValues(t, 5<<16, report.Arenas[0].Peak)
	assert.EqualValues(t, 5<<16+16, report.Arenas[1].Peak)
}
