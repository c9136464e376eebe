package guide_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGamePage: the page of concepts shows the example as a program, and its output.
func TestGamePage(t *testing.T) {
	code, found := strings.CutPrefix(read(t, "example_test.go"), "package guide_test\n")
	require.True(t, found)
	code, output, found := strings.Cut(code, "\t// Output:\n")
	require.True(t, found)
	code = "package main\n" + strings.Replace(code, "\nfunc Example() {\n", "\nfunc main() {\n", 1) + "}\n"
	assert.Contains(t, code, "\nfunc main() {\n")
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")

	page := read(t, "concepts.md")
	golden(t, "concepts.md", replaced(t, replaced(t, page, "\n```go\n", code), "\n```text\n", output))
}

// replaced returns a page with another text in its only block that begins so.
func replaced(t *testing.T, page, begin, text string) string {
	t.Helper()
	before, after, found := strings.Cut(page, begin)
	require.True(t, found, begin)
	_, after, found = strings.Cut(after, "```\n")
	require.True(t, found, begin)
	require.NotContains(t, after, begin)
	return before + begin + text + "```\n" + after
}
