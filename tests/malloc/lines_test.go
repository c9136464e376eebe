//go:build linux && cgo && !race && !asan && !checked && !upfront_cgo

package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// varying are the parts of a line that libc, the runtime and the linker decide.
var varying = []struct {
	number *regexp.Regexp
	with   string
}{
	{regexp.MustCompile(`0x[0-9a-f]+`), "0x…"},
	{regexp.MustCompile(`and \d+ of`), "and … of"},
	{regexp.MustCompile(`\(\d+ refusals\): a request of \d+ `), "(… refusals): a request of … "},
	{regexp.MustCompile(`\.go:\d+`), ".go:…"},
	{regexp.MustCompile(`\(\d+KiB\)`), "(…KiB)"},
	{regexp.MustCompile(`( < [^\s;]+){2,}`), " < …"},
}

var update = flag.Bool("update", false, "write testdata/lines.txt again")

// TestLinesOfAFullHeap compares the lines on standard error with testdata/lines.txt, from which
// budget/guide/messages.md has them. An ellipsis stands for each part that varies.
func TestLinesOfAFullHeap(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?m)^upfront: .*\n`)
	var all strings.Builder
	for _, c := range []struct{ name, run string }{
		{"full", "-size 4MiB fill 5000"},
		{"larger", "-size 4MiB fill 5000000"},
		{"runtime", "-size 4MiB -runtime 4KiB requests 10 100"},
		{"static", "fill 5000"},
		{"bug", "-size 8MiB misuse double"},
	} {
		out, _ := start(c.run) // runtime and bug end the process
		lines := line.FindAllString(out, -1)
		require.NotEmpty(t, lines, "%s: %s", c.run, out)
		text := lines[0]
		if c.name == "runtime" {
			text = lines[len(lines)-1] // the lines before it are of the rest of the heap
		}
		for _, v := range varying {
			text = v.number.ReplaceAllString(text, v.with)
		}
		all.WriteString(c.name + "\t" + text)
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/lines.txt", []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/lines.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), all.String(), "go test ./tests/malloc -run LinesOfAFullHeap -update writes it again")
}
