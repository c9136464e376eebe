// Package budgettest is for tests of programs that live in a budget: [Open] fails a test that leaks, [FailEach] has each
// request of a program fail once.
package budgettest

import (
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

// Open opens the plan and closes it at the end of the test. The test fails when the plan can't be opened, when the walk
// doesn't cover the budget at the end, when Close returns an error, and when something leaked.
func Open(t testing.TB, plan budget.Plan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(plan)
	if err != nil {
		t.Fatalf("budgettest: %v", err)
	}
	t.Cleanup(func() {
		if _, err := b.Walk(); err != nil {
			t.Errorf("budgettest: at the end: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("budgettest: Close: %v", err)
		}
		if leaks := b.Report().Leaks; leaks != (budget.Leaks{}) {
			t.Errorf("budgettest: leaks: %+v", leaks)
		}
	})
	return b
}
