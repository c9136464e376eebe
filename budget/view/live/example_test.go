package live_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view/live"
)

// A program shows its memory on a page, for users of this machine.
func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	use := timeline.Start(b, 0) // the program calls use.Sample each tick

	page := live.New(b, live.Options{Timeline: use, Every: time.Second, Viewers: 4,
		Hosts: []string{"pond.example"}})
	defer page.Close()
	server, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{Connections: 16})
	if err != nil {
		panic(err)
	}
	defer server.Close()

	answer, err := http.Get(server.URL() + "report.json") // or open server.URL() in a browser
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
	// Output: 200 OK
}

// A program that has a server mounts the page there.
func ExamplePage() {
	b, err := budget.OpenScratch(2, budget.MiB)
	if err != nil {
		panic(err)
	}
	defer b.Close()
	page := live.New(b, live.Options{Links: []live.Link{{Name: "Goroutines", Path: "/debug/pprof/goroutine?debug=1"}}})
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", page))
	// Output:
}
