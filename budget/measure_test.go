package budget_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// narrowMachine gives Measure no more than 16 MiB for the widest plan: some builds touch all of it.
func narrowMachine(t testing.TB) {
	t.Cleanup(budget.SetLimits(platform.Limit{Name: "test", Bytes: 32 * budget.MiB}))
}

// measured is a plan with a part of every kind.
func measured() budget.Plan {
	return budget.Plan{
		Name: "measured",
		Regions: []budget.RegionPlan{{Name: "init", Size: 1000}, {Name: "match", Size: 1000, Slots: 3},
			{Name: "level", Size: 1000, Note: "kept"}, {Name: "spare", Size: 1 << 20}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 1000},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 1000},
		Limits:  budget.Limits{Scopes: 4, Pools: 1, Owned: 1, Labels: 1},
	}
}

// runs says whether fn runs in the plan, or is full.
func runs(t testing.TB, plan budget.Plan, fn func(b *budget.Budget) error) bool {
	t.Helper()
	plan.Pages.Prefault = budget.Off
	b, err := budget.Open(plan)
	require.NoError(t, err)
	defer b.Close()
	o := attempt(func() error { return fn(b) })
	if o.panicked != nil {
		o.err = o.panicked.(error)
	}
	if o.err != nil {
		require.ErrorIs(t, o.err, budget.ErrFull)
	}
	return o.err == nil
}

// What the plan says beside sizes stays, and the rest is a size of its own.
func TestMeasureKeepsThePlan(t *testing.T) {
	narrowMachine(t)
	told := 0
	plan := small()
	plan.Size, plan.Base, plan.GoHeap, plan.OnError = 4*budget.MiB, 1<<40, 8*budget.MiB, func(error) { told++ }
	plan.Pages = budget.Pages{Lock: budget.Required, Guards: budget.Wished}
	plan.Regions[2].Size = budget.Rest
	governor := open(t, budget.Plan{Name: "governor", Regions: plan.Regions[:1], GoHeap: 8 * budget.MiB})
	report, err := budget.Measure(plan, func(b *budget.Budget) error {
		assert.Zero(t, b.Plan().GoHeap)
		assert.Equal(t, budget.Pages{Prefault: budget.Off, Lock: budget.Off, Huge: budget.Off, Guards: budget.Off, Base: budget.Off},
			b.Plan().Pages)
		return errors.Join(replaceFailing(b), b.Region("level").Rewind(background))
	})
	require.NoError(t, err)
	require.NoError(t, governor.Close())
	assert.Equal(t, 2, told, "once in each run")
	got := report.Plan
	assert.EqualValues(t, 24, got.Regions[2].Size, "the mark and its finalizer")
	assert.Equal(t, []any{"small", uint64(0), plan.Base, plan.GoHeap}, []any{got.Name, got.Size, got.Base, got.GoHeap})
	assert.Equal(t, budget.Pages{Prefault: budget.Wished, Lock: budget.Required, Huge: budget.Off, Guards: budget.Wished,
		Base: budget.Wished}, got.Pages)
	assert.NotNil(t, got.OnError)
}

// replaceFailing loads twice; the finalizer of the first fails.
func replaceFailing(b *budget.Budget) error {
	for _, do := range []int64{doFail, 0} {
		_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*mark, error) { return newMark(s, 1, do), nil })
		if err != nil {
			return err
		}
	}
	return nil
}

func TestMeasureLimits(t *testing.T) {
	narrowMachine(t)
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error {
			for range 5000 { // more than the wide plan has at first
				s.Defer(func() {})
			}
			for i := range 7 {
				require.NoError(t, scope.Label(s, fmt.Sprint(i), func() error { frogs.Pool(s, 1); frogs.Pool(s, 1); return nil }))
			}
			for range 4 {
				s = s.Open("deeper")
				defer s.Close()
			}
			return nil
		})
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, 5000, report.Plan.Limits.Owned)
	assert.Equal(t, 5, report.Plan.Limits.Scopes)
	assert.Equal(t, 14, report.Plan.Limits.Pools)
	assert.Equal(t, 7, report.Plan.Limits.Labels)
}

// What temporaries take is exact, but that they end at a line.
func TestMeasureTemporaries(t *testing.T) {
	narrowMachine(t)
	for n := range 8 {
		calls := 0
		fn := func(b *budget.Budget) error {
			calls++
			_, err := load(b, "level", func(s scope.Scope) error {
				for range 4 {
					temp := s.Temp(300)
					temp.Bytes(300)
					require.NoError(t, temp.Close())
				}
				s.Temp(1000).Bytes(1000)
				s.Bytes(40000 + 13*n)
				return nil
			})
			return err
		}
		report, err := budget.Measure(measured(), fn)
		require.NoError(t, err)
		assert.LessOrEqual(t, calls, 3)
		size := &report.Plan.Regions[2].Size
		least := uint64(24 + 5*16 + 40000 + 13*n + 1000)
		assert.GreaterOrEqual(t, *size, least, "the frog, a node for each Temp, and what was asked for")
		assert.Less(t, *size, least+2*64)
		assert.True(t, runs(t, report.Plan, fn))
		*size -= 64
		assert.False(t, runs(t, report.Plan, fn), "%d bytes", 40000+13*n)
	}
}

// A program that asks for more than Temp gave it is full in every plan: that is its own error.
func TestMeasureTooFewTemporaries(t *testing.T) {
	narrowMachine(t)
	calls := 0
	_, err := budget.Measure(measured(), func(b *budget.Budget) error {
		calls++
		_, err := load(b, "level", func(s scope.Scope) error { s.Temp(10).Bytes(11); return nil })
		return err
	})
	assert.Equal(t, 1, calls)
	assert.EqualError(t, err, `budget "measured": region level is full: scope "temp" asked for 11 bytes, 10 of the 10 that Temp gave `+
		`are free; ask Temp for 11 or more`)
}
