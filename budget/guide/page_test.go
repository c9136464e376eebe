package guide_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConceptsPage: the page of concepts shows the example as a program, and its output, and atlas.
func TestConceptsPage(t *testing.T) {
	code, found := strings.CutPrefix(read(t, "example_test.go"), "package guide_test\n")
	require.True(t, found)
	code, output, found := strings.Cut(code, "\t// Output:\n")
	require.True(t, found)
	code = strings.Replace(code, "\nfunc Example() {\n", "\nfunc main() {\n", 1) + "}\n"
	assert.Contains(t, code, "\nfunc main() {\n")
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")

	const atlas = "// Command atlas"
	_, server, found := strings.Cut(read(t, "../../tests/atlas/main.go"), atlas)
	require.True(t, found)

	page := replaced(t, read(t, "concepts.md"), "\n```go\npackage main\n", code)
	page = replaced(t, page, "\n```text\n", output)
	golden(t, "concepts.md", replaced(t, page, "\n```go\n"+atlas, server))
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
