package prometheus

import (
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/metrics"
	"github.com/upfront-mem/upfront/tests/step"
)

var update = flag.Bool("update", false, "write the recorded scrape again")

// TestAgree: a scrape of the report that each reader knows is the recorded one, which the other
// clients compare with theirs. Package metrics compares its values with the report.
func TestAgree(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.json"))
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(data, &r))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(newCollector(r.Name, func() budget.Report { return r })))
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w,
		httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	lines := ""
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines += line
		}
	}
	recorded := filepath.Join(step.Root(t), "budget/testdata/metrics.txt")
	if *update {
		require.NoError(t, os.WriteFile(recorded, []byte(lines), 0o644))
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	assert.Equal(t, string(want), lines, "go test -run Agree -update writes it")
}

// TestPageNames: the page names each metric that isn't a figure of a part.
func TestPageNames(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	figures := map[string]bool{}
	for _, f := range budget.Figures() {
		figures["region_"+f.Name] = true
	}
	for _, m := range metrics.Table() {
		if !figures[m.Name] {
			assert.Contains(t, string(page), "`"+nameOf(m)+"`")
		}
	}
}
