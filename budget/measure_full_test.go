package budget_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

func TestMeasureErrors(t *testing.T) {
	narrowMachine(t)
	bad := errors.New("bad map")
	_, err := budget.Measure(measured(), func(b *budget.Budget) error { return bad })
	assert.Equal(t, bad, err)
	assert.PanicsWithValue(t, "oops", func() { _, _ = budget.Measure(measured(), func(b *budget.Budget) error { panic("oops") }) })
	var last *budget.Budget
	exited := attempt(func() error {
		_, err := budget.Measure(measured(), func(b *budget.Budget) error { last = b; runtime.Goexit(); return nil })
		return err
	})
	assert.True(t, exited.exited)
	assert.ErrorIs(t, last.Close(), budget.ErrClosed, "closed by Measure")

	_, err = budget.Measure(budget.Plan{}, nil)
	assert.ErrorContains(t, err, "plan \"\": name")
	_, err = budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(1 << 30); return nil })
		return err
	})
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.ErrorContains(t, err, `budget "measured": Measure: full even in a plan that is far wider: budget "measured": region level `)
	_, err = budget.Measure(measured(), func(b *budget.Budget) error {
		for {
			if _, err := b.Slots("match").Acquire(); err != nil {
				return err
			}
		}
	})
	assert.EqualError(t, err, `budget "measured": region match is full: asked for one more of 3 slots; `+
		`raise regions[1].slots in the plan to 4 or more`)
	_, err = budget.Measure(measured(), func(b *budget.Budget) error { b.Scratch(0, 0).Open("left"); return nil })
	assert.ErrorContains(t, err, `scratch 0.0: left open at NextFrame, Release or Close: scope "left"`)
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", nil)
		return errors.Join(err, b.Close())
	})
	require.NoError(t, err, "fn may close the budget")
	assert.EqualValues(t, 24, report.Plan.Regions[2].Size)
}

// A full that fn hides asks for room as one that it returns; a program that isn't the same each time gets an answer.
func TestMeasureHiddenFull(t *testing.T) {
	narrowMachine(t)
	first, calls := true, 0
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		size := 100
		if !first {
			size = 300
		}
		first = false
		_, _ = load(b, "level", func(s scope.Scope) error { s.Bytes(size); return nil })
		scratch := b.Scratch(1, 1).Open("scratch")
		if found := frogs.TrySlice(scratch, size); found != nil {
			found[99].X = 1
		}
		_ = scratch.Close()
		calls++
		return nil
	})
	require.NoError(t, err)
	assert.EqualValues(t, 24+300, report.Plan.Regions[2].Size)
	assert.EqualValues(t, 300*24, report.Plan.Scratch.Size)
	assert.Equal(t, 4, calls)

	_, err = budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(int(b.Region("level").Report().Size) + 1); return nil })
		return err
	})
	assert.ErrorIs(t, err, budget.ErrFull, "a program that wants more than it gets")
}

// A program asks for more from the second run on: what is full in a run is raised, and no further.
func TestMeasureRaises(t *testing.T) {
	narrowMachine(t)
	for name, test := range map[string]struct {
		work func(b *budget.Budget, more bool) error
		want uint64 // of level, or the scratch arenas
	}{
		"alignment": {func(b *budget.Budget, more bool) error {
			_, err := load(b, "level", func(s scope.Scope) error {
				if more {
					s.BytesUnzeroed(8, 4096)
				}
				return nil
			})
			return err
		}, 4096 + 8},
		"panic outside of Load": {func(b *budget.Budget, more bool) error {
			p := b.Scratch(1, 0).Open("scratch")
			defer p.Close()
			if more {
				frogs.Slice(p, 10)
			}
			return nil
		}, 240},
		"panic after a full": {func(b *budget.Budget, more bool) error {
			p := b.Scratch(0, 0).Open("scratch")
			defer p.Close()
			if more {
				frogs.TrySlice(p, 20)[19].X = 1
			}
			return nil
		}, 480},
		"error after a full": {func(b *budget.Budget, more bool) error {
			p := b.Scratch(0, 0).Open("scratch")
			defer p.Close()
			if more && frogs.TrySlice(p, 30) == nil {
				return errors.New("no room for frogs")
			}
			return nil
		}, 720},
	} {
		calls := 0
		report, err := budget.Measure(measured(), func(b *budget.Budget) error { calls++; return test.work(b, calls > 1) })
		require.NoError(t, err, name)
		assert.Equal(t, test.want, max(report.Plan.Regions[2].Size, report.Plan.Scratch.Size), name)
	}
	calls := 0
	_, err := budget.Measure(measured(), func(b *budget.Budget) error {
		calls++
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(min(calls/2, 7) * 256 * budget.MiB); return nil })
		return err
	})
	assert.ErrorContains(t, err, `budget "measured": Measure: full with what was enough before; fn must do the same each time: budget "mea`)
}

// What is full elsewhere is fn's own error.
func TestMeasureOthersFull(t *testing.T) {
	narrowMachine(t)
	other := small()
	other.Regions[2].Size = 100
	calls := 0
	_, err := budget.Measure(measured(), func(*budget.Budget) error {
		calls++
		b, err := budget.Open(other)
		require.NoError(t, err)
		defer b.Close()
		_, err = load(b, "level", func(s scope.Scope) error { s.Bytes(101); return nil })
		return err
	})
	assert.ErrorContains(t, err, `budget "small": region level is full`)
	assert.NotContains(t, err.Error(), "Measure")
	assert.Equal(t, 1, calls)
}

// A machine that gives little gets a plan that is no narrower than the given one.
func TestMeasureWithoutRoom(t *testing.T) {
	defer budget.SetLimits(platform.Limit{Name: "test", Bytes: 4 * budget.MiB})()
	plan := measured()
	var sizes []uint64
	_, err := budget.Measure(plan, func(b *budget.Budget) error {
		assert.LessOrEqual(t, b.Size(), uint64(4*budget.MiB))
		sizes = append(sizes, b.Plan().Regions[3].Size)
		return nil
	})
	assert.NoError(t, err)
	assert.Equal(t, []uint64{1 << 20, 1}, sizes, "as planned; then what is used")
	plan.Regions[0].Size = 8 * budget.MiB
	_, err = budget.Measure(plan, func(*budget.Budget) error { return nil })
	assert.ErrorContains(t, err, "and test leaves 4MiB of 4MiB")
}
