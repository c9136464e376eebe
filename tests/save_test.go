//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSavePage runs the page's program as it says.
func TestSavePage(t *testing.T) {
	text := page(t, "budget/save/README.md")
	dir := program(t, enclosed(t, text, "\n```go\n", "```\n"))
	for _, flags := range [][]string{nil, {"-tags", "checked"}} {
		got, status := printed(t, dir, flags...)
		assert.Zero(t, status)
		assert.Equal(t, enclosed(t, text, "\n```text\n", "```\n"), got)
	}
}
