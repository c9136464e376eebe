package scope_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// TestTextsInConstructors: a constructor that fails takes back what was allocated meanwhile. A Text that is older than it
// would go on using that: it is refused before.
func TestTextsInConstructors(t *testing.T) {
	const refused = "scope: BUG: Add inside a constructor to a Text that is older: what it takes goes back if the constructor fails; " +
		"make it, or a Clone of it, inside"
	s := open(t).Scratch(0, 0).Open("a")
	text := func(s scope.Scope) func() { // takes bytes at its first call
		text := s.Text()
		return func() { text.Reset().Add("frog") }
	}
	try := func(fn func()) { _, _ = marks.Make(s, func(*mark) error { fn(); return nil }) }
	older := text(s)
	assert.PanicsWithError(t, refused, func() { try(older) })
	try(func() {
		middle := text(s)
		assert.PanicsWithError(t, refused, func() { try(middle) }, "the inner constructor is younger")
		text(s)()
	})
	older() // outside, it takes its bytes
	try(older)
	made := text(s)
	try(func() {})
	assert.PanicsWithError(t, refused, func() { try(made) }, "an earlier constructor is no excuse")
	try(func() { text(s.Temp(64))() })
	require.NoError(t, s.Close())
}

// TestDoThatClosesItsBudget: the range may be a newer budget's by then, whose scopes are not ours to close.
func TestDoThatClosesItsBudget(t *testing.T) {
	plan := budget.Plan{Name: "b", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}}
	first, err := budget.Open(plan)
	require.NoError(t, err)
	var newer scope.Scope
	err = first.Scratch(0, 0).Do("closes", func(s scope.Scope) error {
		assert.ErrorContains(t, first.Close(), "left open")
		second := budgettest.Open(t, plan)
		newer = second.Scratch(0, 0).Open("newer")
		return errors.New("said")
	})
	assert.EqualError(t, err, "said")
	assert.NotNil(t, points.TryNew(newer), "it is still open")
	scratch := first.Scratch(0, 0)
	assert.PanicsWithError(t, "scope: BUG: Do on scratch 0.0, whose budget is closed", func() { _ = scratch.Do("do", nil) })
	require.NoError(t, newer.Close())
}
