package budgettest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// run stands for go test: it calls a test, and prints its errors.
func run(test func(t testing.TB)) {
	p := &printer{}
	test(p)
	for _, fn := range p.cleanup {
		fn()
	}
}

type printer struct {
	testing.TB
	cleanup []func()
}

func (p *printer) Helper()                           {}
func (p *printer) Context() context.Context          { return context.Background() }
func (p *printer) Cleanup(fn func())                 { p.cleanup = append(p.cleanup, fn) }
func (p *printer) Logf(string, ...any)               {}
func (p *printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

var pondPlan = budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}}

type frog struct{ X, Y int32 }

var frogs = scope.Plain[frog]()

func loadLevel(s scope.Scope) (*frog, error) { return &frogs.Slice(s, 100)[0], nil }

// A test opens its budget with Open, which closes it and looks for leaks when the test ends.
func ExampleOpen() {
	run(func(t testing.TB) {
		b := budgettest.Open(t, pondPlan)
		level, err := budget.Load(t.Context(), b.Region("level"), loadLevel)
		if err != nil {
			t.Fatal(err)
		}
		level.Get().X = 7
		fmt.Println("loaded")
	})
	// Output: loaded
}

// A loader that ignores an error passes its other tests. FailEach refuses each of its requests in
// turn.
func ExampleFailEach() {
	run(func(t testing.TB) {
		budgettest.FailEach(t, pondPlan, func(b *budget.Budget) error { // correct
			_, err := budget.Load(t.Context(), b.Region("level"), loadLevel)
			return err
		})
		budgettest.FailEach(t, pondPlan, func(b *budget.Budget) error {
			if _, err := budget.Load(t.Context(), b.Region("level"), loadLevel); err != nil {
				return fmt.Errorf("no level") // NOT OKAY: the cause is lost
			}
			return nil
		})
	})
	// Output: budgettest: FailEach: with regions[0].size = 1: no level
}
