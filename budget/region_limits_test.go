package budget_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// limited is a plan whose slots have all limits but one of their own.
func limited() budget.Plan {
	plan := measured()
	plan.Limits = budget.Limits{Scopes: 9, Pools: 8, Owned: 7, Labels: 6}
	plan.Regions[1].Limits = budget.Limits{Scopes: 3, Pools: 2, Owned: 1}
	return plan
}

// useUp opens as many scopes, pools, owned values and labels as an arena may have open, and returns
// the full of the next one of each.
func useUp(t *testing.T, s scope.Scope, l budget.Limits) (fulls map[string]*scope.FullError) {
	fulls = map[string]*scope.FullError{}
	full := func(table string, one func() error) {
		t.Helper()
		var full *scope.FullError
		require.ErrorAs(t, one(), &full, table)
		fulls[table] = full
	}
	in := func(do func()) func() error { return func() error { return caught(do) } }
	for range l.Pools {
		frogs.Pool(s, 1)
	}
	full("pools", in(func() { frogs.Pool(s, 1) }))
	for range l.Owned {
		s.Defer(func() {})
	}
	full("owned", in(func() { s.Defer(func() {}) }))
	for i := range l.Labels {
		_ = scope.Label(s, "label"+string(rune('a'+i)), func() error { return nil })
	}
	full("labels", in(func() { _ = scope.Label(s, "one more", func() error { return nil }) }))
	for range l.Scopes - 1 {
		s = s.Open("nested")
	}
	full("scopes", in(func() { s.Open("one more") }))
	return fulls
}

func caught(do func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	do()
	return nil
}

// A region's tables suffice for its limits, and a full names the limit to raise: the region's, or
// the plan's.
func TestRegionLimitsHold(t *testing.T) {
	plan := limited()
	b := open(t, plan)
	check := func(fulls map[string]*scope.FullError, keys map[string]string, l budget.Limits) {
		t.Helper()
		for table, size := range map[string]int{"scopes": l.Scopes, "pools": l.Pools, "owned": l.Owned,
			"labels": l.Labels} {
			assert.Equal(t, keys[table]+table, fulls[table].Key)
			assert.EqualValues(t, size, fulls[table].Size, table)
			assert.EqualValues(t, size+1, fulls[table].Need, table)
		}
	}
	slot, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	loaded := errors.New("not loaded")
	_, err = budget.Load(background, slot, func(s scope.Scope) (*int, error) {
		fulls := useUp(t, s, budget.Limits{Scopes: 3, Pools: 2, Owned: 1, Labels: 6})
		own := "regions[1].limits."
		check(fulls, map[string]string{"scopes": own, "pools": own, "owned": own, "labels": "limits."},
			budget.Limits{Scopes: 3, Pools: 2, Owned: 1, Labels: 6})
		return nil, loaded
	})
	require.ErrorIs(t, err, loaded)
	_, err = load(b, "level", func(s scope.Scope) error {
		fulls := useUp(t, s, plan.Limits)
		all := "limits."
		check(fulls, map[string]string{"scopes": all, "pools": all, "owned": all, "labels": all}, plan.Limits)
		return loaded
	})
	require.ErrorIs(t, err, loaded)
	requireWalk(t, b)
	require.NoError(t, slot.Release(background))
}

// Limits of a region that equal the plan's change no offset. Other limits change no size of an
// arena.
func TestRegionLimitsAndTheLayout(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 2))
	limits := func() budget.Limits {
		return budget.Limits{Scopes: 1 + random.IntN(80), Pools: 1 + random.IntN(80), Owned: 1 + random.IntN(300),
			Labels: 1 + random.IntN(40)}
	}
	offsets := func(plan budget.Plan) (starts []uint64, tables uint64) {
		ranges := requireWalk(t, open(t, plan))
		for _, r := range ranges {
			if r.Arena != "" && r.What == "free" {
				starts = append(starts, r.Offset)
			}
		}
		return starts, ranges[0].Size
	}
	for range 20 {
		plan := measured()
		plan.Limits = limits()
		starts, tables := offsets(plan)
		for i := range plan.Regions {
			if random.IntN(2) == 0 {
				plan.Regions[i].Limits = plan.Limits
			}
		}
		same, tablesOfSame := offsets(plan)
		require.Equal(t, starts, same)
		require.Equal(t, tables, tablesOfSame)
		need, err := plan.Need()
		require.NoError(t, err)
		plan.Regions[1].Limits = budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1}
		_, less := offsets(plan)
		require.LessOrEqual(t, less, tables)
		lessNeed, err := plan.Need()
		require.NoError(t, err)
		require.LessOrEqual(t, lessNeed, need)
	}
}

func TestRegionLimitsStay(t *testing.T) {
	plan := limited()
	plan.Regions[2].Size = 2 * 64 * budget.KiB
	b := open(t, plan)
	other := b.Plan()
	other.Regions[1].Limits.Labels = 6 // the plan's own
	other.Regions[0].Size, other.Regions[2].Size = other.Regions[0].Size+64*budget.KiB,
		other.Regions[2].Size-64*budget.KiB
	require.NoError(t, b.Reconfigure(background, other))
	slot, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	_, err = budget.Load(background, slot, func(s scope.Scope) (*int, error) {
		s.Open("two").Open("three")
		return nil, caught(func() { frogs.Pool(s, 1) })
	})
	require.Error(t, err)
	requireWalk(t, b)
	require.NoError(t, slot.Release(background))
	other.Regions[1].Limits.Pools = 3
	assert.ErrorContains(t, b.Reconfigure(background, other),
		"Reconfigure: regions[1].limits.pools is 2 and can't change; the plan has 3")
}

// The limits that Measure and Suggest return for slots suffice, and don't grow with the frame's
// many scopes.
func TestRegionLimitsMeasured(t *testing.T) {
	step.Machine(t, step.Addresses(4*budget.GiB)) // of wide plans, whose ranges stay reserved
	fn := func(b *budget.Budget) error {
		slot, err := b.Slots("match").Acquire()
		if err != nil {
			return err
		}
		_, err = budget.Load(background, slot, func(s scope.Scope) (*int, error) {
			frogs.Pool(s, 3)
			frogs.Pool(s, 3)
			for range 5 {
				s.Defer(func() {})
			}
			_ = scope.Label(s, "a", func() error { return nil })
			return nil, s.Open("inner").Close()
		})
		nested := []scope.Scope{b.Frame()}
		for range 20 {
			nested = append(nested, nested[len(nested)-1].Open("nested"))
		}
		for i := range 20 {
			err = errors.Join(err, nested[20-i].Close())
		}
		return errors.Join(err, b.NextFrame(), slot.Release(background))
	}
	slots, rest := budget.Limits{Scopes: 2, Pools: 2, Owned: 5, Labels: 1},
		budget.Limits{Scopes: 21, Pools: 1, Owned: 1, Labels: 1}
	for _, planned := range []budget.Limits{{}, {Owned: 2, Labels: 300}} {
		plan := measured()
		plan.Regions[1].Limits = planned
		report, err := budget.Measure(plan, fn)
		require.NoError(t, err)
		assert.Equal(t, slots, report.Plan.Regions[1].Limits)
		assert.Equal(t, rest, report.Plan.Limits)
		b := open(t, report.Plan)
		require.NoError(t, fn(b), "in the plan that was measured")
		suggested, err := budget.Suggest(b.Report())
		require.NoError(t, err)
		assert.Equal(t, slots, suggested.Regions[1].Limits)
		assert.Zero(t, suggested.Limits, "no more than the default")
		more := suggested.Headroom(10)
		assert.Equal(t, budget.Limits{Scopes: 3, Pools: 3, Owned: 6, Labels: 2}, more.Regions[1].Limits)
		assert.Equal(t, slots, suggested.Regions[1].Limits, "it is a copy")

		full := b.Report()
		full.Arenas[2].Fulls, full.Plan.Regions[1].Limits.Pools = 1, 40
		suggested, err = budget.Suggest(b.Report(), full)
		require.NoError(t, err)
		assert.Equal(t, 40, suggested.Regions[1].Limits.Pools, "it was full, so that no figure says what it needs")
		never := full
		for i := range never.Arenas {
			never.Arenas[i].Peak, never.Arenas[i].Fulls = 0, 0
		}
		suggested, err = budget.Suggest(never)
		require.NoError(t, err)
		assert.Equal(t, never.Plan.Regions[1].Limits, suggested.Regions[1].Limits, "never used: as planned")
	}
}

// Each row of the table has its own counts, wherever the head is. The core and the plan agree on
// them.
func TestRegionLimitsInTheTable(t *testing.T) {
	b := open(t, limited())
	table := tableOf(b)
	var slots, pools uint64
	for i, kind := range []int{0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0} {
		row := table.Row(uint64(i))
		if kind == 1 {
			assert.EqualValues(t, []uint64{3, 3, 2}, []uint64{row.Arena.Slots, row.Temp.Slots, row.Pools}, "%d", i)
		} else {
			assert.EqualValues(t, []uint64{9, 9, 8}, []uint64{row.Arena.Slots, row.Temp.Slots, row.Pools}, "%d", i)
		}
		slots, pools = slots+row.Arena.Slots, pools+row.Pools
	}
	assert.Equal(t, slots, table.Slots)
	assert.Equal(t, pools, table.Pools)
	assert.Equal(t, table.Tables, arena_c.MapTables(table.Rows, slots, pools).Size)
}
