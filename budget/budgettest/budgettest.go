// Package budgettest tests programs that use a budget. [Open] fails a test that leaks, and
// [FailEach] makes allocations of a program fail, one after another:
//
//	func TestLevel(t *testing.T) {
//		budgettest.FailEach(t, plan, func(b *budget.Budget) error {
//			_, err := budget.Load(t.Context(), b.Region("level"), loadLevel)
//			return err
//		})
//	}
package budgettest

import (
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

// Open opens a budget of the plan and closes it at the end of the test. If the plan can't be
// opened, Open ends the test. At the end, the test fails if Walk or Close returns an error, or if
// there is a leak.
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
