//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	return string(text)
}

// block is what stands in the README between the marks of a language.
func block(t *testing.T, language string) string {
	t.Helper()
	_, after, found := strings.Cut(readme(t), "\n```"+language+"\n")
	require.True(t, found, language)
	text, _, _ := strings.Cut(after, "```\n")
	return text
}

func TestReadmePlan(t *testing.T) {
	plan, err := budget.ReadPlan(filepath.Join("frogpond", "plan.json"))
	require.NoError(t, err)
	assert.Equal(t, plan.String(), block(t, "plan"))
}

// TestReadmeProgram compiles the README's program in a module of its own, runs it, and compares what it prints.
func TestReadmeProgram(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(block(t, "go")), 0o600))
	goCommand(t, dir, "mod", "init", "example.com/pond")
	goCommand(t, dir, "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root, "-go=1.26")
	goCommand(t, dir, "mod", "tidy")
	goCommand(t, dir, "vet", ".")
	goCommand(t, dir, "build", "-o", "pond", ".")
	out, err := exec.Command(filepath.Join(dir, "pond")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, block(t, "text"), string(out))
}

// TestReadmeTable: the table is what tests/bench wrote, with each work, and what is said of it isn't more than it shows.
func TestReadmeTable(t *testing.T) {
	_, after, found := strings.Cut(readme(t), "<!-- make bench -->\n")
	require.True(t, found, "the table's mark is missing")
	table, text, found := strings.Cut(after, "<!-- end -->\n")
	require.True(t, found, "the table's other mark is missing")
	assert.Regexp(t, `^\d{4}-\d\d-\d\d, .+, \d+ cores; Go 1\.\d+\S*, gcc \d\S* -O2\.\n`, table, "what machine?")
	for _, work := range strings.Split("ABCDEFGIJKLM", "") {
		assert.Regexp(t, `(?m)^\| `+work+` [^|]+\| [^|]+\|(?: [\d.()% ]*\|){5}[^|]*\|$`, table)
	}
	assert.NotRegexp(t, `(?i)sync\.Pool[^.]*\b([7-9]|\d\d+) ?(×|x|times)`, text, "6 times over sync.Pool at most")
}

// TestReadmeSaysWhatItCannotDoFirst: a reader who has come to the wrong place knows it after two paragraphs.
func TestReadmeSaysWhatItCannotDoFirst(t *testing.T) {
	assert.Regexp(t, `\A# upfront\n\n(?:[^\n]+\n)+\n\*\*What it cannot do\.\*\* `, readme(t))
	var headings []string
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(readme(t), -1) {
		headings = append(headings, heading[1])
	}
	assert.Equal(t, []string{"A program", "Two commands", "Full", "Misuse", "Speed", "Platforms", "The tree", "Development"}, headings)
}

func TestReadmeLinksLead(t *testing.T) {
	text := readme(t)
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(link[1], "://") {
			_, err := os.Stat(filepath.Join("..", link[1]))
			assert.NoError(t, err)
		}
	}
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	require.NoError(t, err)
	for _, target := range regexp.MustCompile("(?m)(?:^ {4}|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
		assert.Regexp(t, `(?m)^`+target[1]+`:`, string(makefile), "README names make %s", target[1])
	}
}
