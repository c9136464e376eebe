package prometheus_test

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/prometheus"
)

// metrics serves the figures of budgets with different names.
func metrics(budgets ...*budget.Budget) http.Handler {
	registry := prometheus.NewRegistry()
	for _, b := range budgets {
		registry.MustRegister(with.NewCollector(b))
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "match", Size: 2 * budget.MiB, Slots: 16}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	http.Handle("/metrics", metrics(b))
	fmt.Print(gather(b, "upfront_region_arena_size_bytes", "upfront_region_size_bytes"))
	// Output:
	// upfront_region_arena_size_bytes{budget="pond",region="match"} 2.097152e+06
	// upfront_region_size_bytes{budget="pond",region="match"} 3.3554432e+07
}
