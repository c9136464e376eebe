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

// TestListsInConstructors: a constructor that fails takes back what was allocated meanwhile. A List or Text that is older
// than it would go on using that: it is refused before.
func TestListsInConstructors(t *testing.T) {
	makers := map[string]func(s scope.Scope) func(){ // each takes bytes at its first call
		"List": func(s scope.Scope) func() { l := points.List(s); return func() { l.New() } },
		"Text": func(s scope.Scope) func() { text := s.Text(); return func() { text.Reset().Add("frog") } },
	}
	const refused = "scope: BUG: a List or Text takes bytes inside a constructor, which takes them back if it fails; " +
		"make it inside"
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			s := open(t).Pad(0, 0).Open("a")
			try := func(fn func()) { _, _ = marks.Make(s, func(*mark) error { fn(); return nil }) }
			older := maker(s)
			assert.PanicsWithError(t, refused, func() { try(older) })
			try(func() {
				middle := maker(s)
				assert.PanicsWithError(t, refused, func() { try(middle) }, "the inner constructor is younger")
				maker(s)()
			})
			older() // outside, it takes its bytes
			try(older)
			made := maker(s)
			try(func() {})
			assert.PanicsWithError(t, refused, func() { try(made) }, "an earlier constructor is no excuse")
			try(func() { maker(s.Temp())() })
			require.NoError(t, s.Close())
		})
	}
}

// TestDoThatClosesItsBudget: the range may be a newer budget's by then, whose scopes are not ours to close.
func TestDoThatClosesItsBudget(t *testing.T) {
	plan := budget.Plan{Name: "b", Regions: []budget.Region{{Name: "level", Size: 64 * budget.KiB}},
		Pads: budget.Pads{Workers: 1, Size: 64 * budget.KiB}}
	first, err := budget.Open(plan)
	require.NoError(t, err)
	var newer scope.Scope
	err = first.Pad(0, 0).Do("closes", func(s scope.Scope) error {
		assert.ErrorContains(t, first.Close(), "left open")
		second := budgettest.Open(t, plan)
		newer = second.Pad(0, 0).Open("newer")
		return errors.New("said")
	})
	assert.EqualError(t, err, "said")
	assert.NotNil(t, points.TryNew(newer), "it is still open")
	require.NoError(t, newer.Close())
}
