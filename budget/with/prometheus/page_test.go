package prometheus_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// gather returns the lines of some metrics in a scrape.
func gather(b *budget.Budget, names ...string) (lines string) {
	w := httptest.NewRecorder()
	metrics(b).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		for _, name := range names {
			if strings.HasPrefix(line, name+"{") {
				lines += line
			}
		}
	}
	return lines
}

// TestPage: the page shows the example, and names each metric that isn't a figure of a part.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	page := string(text)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\n// metrics")
	code, _, found := strings.Cut(code, "\n}\n")
	require.True(t, found)
	assert.Contains(t, page, "```go\n// metrics"+code+"\n}\n```\n")
	b := open(t, plan("game"))
	play(t, b)
	families := scrape(t, registry(t, b))
	for _, f := range budget.Figures() {
		name := "upfront_region_" + f.Name
		delete(families, name)
		delete(families, name+"_bytes")
		delete(families, name+"_total")
	}
	assert.Len(t, families, 14)
	for name := range families {
		assert.Contains(t, page, "`"+name+"`")
	}
}
