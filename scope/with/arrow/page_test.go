package arrow_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPage: the page shows the example as it stands, and what that prints.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	between := func(text, from, to string) string {
		_, text, found := strings.Cut(text, from)
		require.True(t, found, from)
		text, _, found = strings.Cut(text, to)
		require.True(t, found, to)
		return text
	}
	code := "func countAges(" + between(string(source), "\nfunc countAges(", "\n}\n") + "\n}\n"
	assert.Equal(t, code, between(string(page), "```go\n", "```"))
	printed := strings.ReplaceAll(between(string(source), "// Output:\n", "}\n"), "\t// ", "")
	assert.Equal(t, printed, between(string(page), "```text\n", "```"))
}
