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

// TestPage: the page shows the example.
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
}
