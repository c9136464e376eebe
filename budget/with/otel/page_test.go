package otel

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/metrics"
)

// TestPage: the page shows the example, and names each metric that isn't a figure of a part, and
// each attribute.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	page := string(text)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\n// export")
	code, _, found := strings.Cut(code, "\n}\n")
	require.True(t, found)
	assert.Contains(t, page, "```go\n// export"+code+"\n}\n```\n")
	figures := map[string]bool{}
	for _, f := range budget.Figures() {
		figures["region_"+f.Name] = true
	}
	for _, m := range metrics.Table() {
		if !figures[m.Name] {
			assert.Contains(t, page, "`"+nameOf(m)+"`")
		}
	}
	assert.Contains(t, page, "`"+string(budgetName)+"`")
	assert.Contains(t, page, "`"+string(regionName)+"`")
	for _, key := range seconds {
		assert.Contains(t, page, "`"+string(key)+"`")
	}
}
