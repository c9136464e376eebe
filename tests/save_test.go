//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestSavePage runs the program of the page, and its continuations.
func TestSavePage(t *testing.T) {
	step.Needs(t, step.Check)
	text := page(t, "budget/save/README.md")
	source, want := enclosed(t, text, "\n```go\n", "```\n"), enclosed(t, text, "\n```text\n", "```\n")
	dir := program(t, source)
	for _, flags := range [][]string{nil, {"-tags", "checked"}} {
		got, status := printed(t, dir, flags...)
		assert.Zero(t, status)
		assert.Equal(t, want, got)
	}
	_, text, _ = strings.Cut(text, "\n## Checkpoints\n")
	more := enclosed(t, text, "\n```go\n", "```\n")
	file := filepath.Join(t.TempDir(), "match")
	dir = program(t, strings.TrimSuffix(source, "}\n")+strings.ReplaceAll(more, "/dev/shm/match", file)+"}\n")
	for _, second := range []string{"", enclosed(t, text, "\n```second\n", "```\n")} {
		got, status := printed(t, dir)
		assert.Zero(t, status)
		assert.Equal(t, want+second, got)
	}
	_, text, _ = strings.Cut(text, "\n## Find the first difference\n")
	more = enclosed(t, text, "\n```go\n", "```\n")
	dir = program(t, strings.TrimSuffix(source, "}\n")+more+"}\n")
	got, status := printed(t, dir, "-tags", "checked")
	assert.Zero(t, status)
	want += strings.Join(strings.Fields(enclosed(t, text, "\n```checked\n", "```\n")), " ") + "\n"
	assert.Equal(t, want, strings.ReplaceAll(got, dir, "/match"))
}
