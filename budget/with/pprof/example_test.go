package pprof_test

import (
	"fmt"
	"net/http"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/pprof"
)

// routes serves the profiles of a budget and of C's heap next to a program's pages.
func routes(b *budget.Budget) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/budget", with.Handler(b))
	mux.Handle("/debug/pprof/cmalloc", with.CHeapHandler())
	return mux
}

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	server := &http.Server{Addr: "127.0.0.1:0", Handler: routes(b)}
	defer server.Close()
	p, err := with.Profile(b.Report()) // a value, to write to a file
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range p.SampleType {
		if t.Type != "outside_space" { // not known in race builds
			fmt.Println(t.Type)
		}
	}
	// Output:
	// alloc_space
	// labels_inuse_space
	// labels_alloc_space
	// labels_peak_space
	// scopes_peak_space
	// planned_space
	// inuse_space
	// peak_space
}
