package guide_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGamePage: the page of concepts shows the example as a program, and its output.
func TestGamePage(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	code, found := strings.CutPrefix(string(source), "package guide_test\n")
	require.True(t, found)
	code, output, found := strings.Cut(code, "\t// Output:\n")
	require.True(t, found)
	code = "package main\n" + strings.Replace(code, "\nfunc Example() {\n", "\nfunc main() {\n", 1) + "}\n"
	assert.Contains(t, code, "\nfunc main() {\n")
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")

	text, err := os.ReadFile("concepts.md")
	require.NoError(t, err)
	page := replaced(t, replaced(t, string(text), "\n```go\n", code), "\n```text\n", output)
	if *update {
		require.NoError(t, os.WriteFile("concepts.md", []byte(page), 0o644))
		return
	}
	assert.Equal(t, page, string(text), "make readme writes the program")
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
