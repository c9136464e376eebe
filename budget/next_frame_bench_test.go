package budget_test

import (
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

// BenchmarkNextFrame has two buffers, and nothing to finalize.
func BenchmarkNextFrame(t *testing.B) {
	plan := small()
	for name, work := range map[string]func(*budget.Budget){
		"empty":   func(*budget.Budget) {},
		"a frog":  func(b *budget.Budget) { frogs.New(b.Frame()) },
		"a scope": func(b *budget.Budget) { s := b.Frame().Open("x"); frogs.New(s); _ = s.Close() },
	} {
		t.Run(name, func(t *testing.B) {
			b := open(t, plan)
			b.Scratch(0, 0)
			for t.Loop() {
				work(b)
				_ = b.NextFrame()
			}
		})
	}
}
