package arrow_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestPage: the page shows the example as it is, and its output.
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

// TestArrowsGenerator shows the fault of arrow-go's own tests that the page describes. Its program
// has a path below arrow's, so it may import internal packages there.
func TestArrowsGenerator(t *testing.T) {
	step.Needs(t, step.Gate)
	dir := t.TempDir()
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	path := "module github.com/apache/arrow-go/v18/arrow/released"
	own := regexp.MustCompile(`(?m)^(module .*|.*upfront-mem/upfront .*)$`).ReplaceAllString(string(mod), "")
	sum, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	source, err := os.ReadFile("testdata/released/main.go")
	require.NoError(t, err)
	for name, text := range map[string]string{"go.mod": path + "\n" + own, "go.sum": string(sum),
		"main.go": string(source)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "valid: true\nvalid: false\n", string(out),
		"if both are valid arrow-go has mended it: README and this test need it no more")
}
