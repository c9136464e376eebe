package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestLivePage profiles a running program, at the address for a browser.
func TestLivePage(t *testing.T) {
	step.Machine(t, step.Loopback())
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		return nil, scope.Label(s, "frogs", func() error { s.Bytes(50 * budget.KiB); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	page := live.New(b, live.Options{})
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/budget/", http.StripPrefix("/budget", page))
	mux.Handle("/profile", pprof.Handler(b))
	server, err := live.Listen("127.0.0.1:0", mux, live.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, path := range []string{"budget/", "budget/report.json"} {
		code, out, said := runs("profile", server.URL()+path)
		if code != codeFine || !strings.Contains(out, "  50KiB") || !strings.Contains(out, "frogs") {
			t.Errorf("%s: exit %d, %s%s", path, code, out, said)
		}
	}
	if code, out, said := runs("report", "diff", server.URL()+"budget/", server.URL()+"budget/"); code != codeFine {
		t.Errorf("exit %d, %s%s", code, out, said)
	}
	if code, _, said := runs("profile", server.URL()+"profile"); code != codeTrouble ||
		!strings.Contains(said, "a profile for go tool pprof") {
		t.Errorf("a profile is no report: exit %d, %s", code, said)
	}
}
