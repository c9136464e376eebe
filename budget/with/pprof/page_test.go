package pprof_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPage: the page shows the example, and each sample type.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\n// routes")
	code, _, found := strings.Cut(code, "\n}\n")
	require.True(t, found)
	assert.Contains(t, string(page), "```go\n// routes"+code+"\n}\n```\n")
	_, types, _ := strings.Cut(string(source), "// Output:\n")
	for _, name := range strings.Fields(strings.NewReplacer("//", "", "}", "").Replace(types)) {
		assert.Contains(t, string(page), "`"+name+"`")
	}
}
