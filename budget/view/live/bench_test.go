package live_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view/live"
)

// BenchmarkMoment is the cost of a quarter of a second for a server of 66 rooms with viewers: the
// figures and the page's main part, or the picture. All viewers share them.
func BenchmarkMoment(b *testing.B) {
	plan, err := budget.ReadPlan(filepath.Join("..", "..", "..", "tests", "frogpond", "serve.json"))
	require.NoError(b, err)
	plan.GoHeap = 0
	p := &pond{}
	p.Budget, err = budget.Open(plan)
	require.NoError(b, err)
	defer p.Close()
	for range 66 {
		slot, err := p.Slots("level").Acquire()
		require.NoError(b, err)
		require.NoError(b, p.load(slot, 1000))
	}
	page := live.New(p.Budget, live.Options{Every: 1})
	defer page.Close()
	for _, path := range []string{"", "map.svg"} {
		b.Run("/"+path, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(body(b, ask(page, "GET", "/"+path)))
			}
			b.ReportMetric(float64(size), "bytes/page")
		})
	}
}
