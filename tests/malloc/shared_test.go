//go:build linux && cgo && !asan

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestProfileOfShared: the sums for the blocks of a Shared in a region are those of the arena, as
// precise as for C's malloc. Nothing is left when all blocks are free.
func TestProfileOfShared(t *testing.T) {
	t.Parallel()
	type sums struct {
		kind, rate string
		each       float64
	}
	all := []sums{{"heap", "512KiB", 0.25}}
	if step.Now() >= step.Check && !arena_c.Race && !arena_c.Checked {
		all = append(all, sums{"heap", "32KiB", 0.06}, sums{"buddy", "512KiB", 0.25})
	}
	for _, test := range all {
		program := fmt.Sprintf("-size 64MiB -profile %s shared %s", test.rate, test.kind)
		assert.InDelta(t, 1, isRight(t, program, test.each), 0.05, program)
	}
}

// TestProfileOfSharedThreads: threads of C and goroutines use a Shared at once. A Shared without a
// profile has the same blocks.
func TestProfileOfSharedThreads(t *testing.T) {
	t.Parallel()
	steps := few(step.Pick(5_000, 50_000, 1_000_000))
	for _, line := range []string{"-profile 16KiB shared-threads heap 8 %d", "-profile 16KiB shared-threads buddy 4 %d",
		"-profile 1 shared-threads heap 4 %d"} {
		out := ends(t, fmt.Sprintf("-size 64MiB "+line, steps))
		assert.Contains(t, out, "left 1 0 0\n", line)
	}
}

// TestProfileOfSharedEnds: the samples of an arena end with the arena. It ends at a load, a Rewind,
// a Reset, the close of a scope and of the budget. An arena outside a budget has no samples.
func TestProfileOfSharedEnds(t *testing.T) {
	t.Parallel()
	ends(t, "-size 64MiB -profile 16KiB shared-ends")
}

// TestProfileOfSharedStates: after a restore the profile has the blocks of the snapshot, each with
// the function that made it.
func TestProfileOfSharedStates(t *testing.T) {
	t.Parallel()
	plays := step.Pick(8, 25, 1000)
	if arena_c.Race {
		plays = 3
	}
	for _, line := range []string{"heap state 1", "buddy plain 2", "packed state 3"} {
		out := ends(t, fmt.Sprintf("-size 64MiB -profile 16KiB shared-states %s %d", line, plays))
		v := numbers(t, out, "restores")
		assert.Greater(t, v[0], uint64(plays), line)
		assert.Greater(t, v[1], uint64(0), line)
		assert.Contains(t, out, "lost 0\n")
	}
}

// TestProfileOfSharedHashes: a play after a restore has the hash of the play before, with other
// blocks sampled.
func TestProfileOfSharedHashes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"heap", "buddy"} {
		plays := map[string]bool{}
		out := ends(t, fmt.Sprintf("-size 64MiB -profile 16KiB shared-hashes %s state", kind))
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "play ") {
				plays[line] = true
			}
		}
		assert.Len(t, plays, 1, out)
	}
}

// TestProfileOfSharedNamesLines: go tool pprof shows the lines of Go, and which arena has the
// blocks.
func TestProfileOfSharedNamesLines(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	file := t.TempDir() + "/users.pb.gz"
	ends(t, "-size 64MiB -profile 16KiB shared-users "+file)
	text, err := os.ReadFile("shared.go")
	require.NoError(t, err)
	line := func(mark string) int {
		return 1 + strings.Count(strings.Split(string(text), " // line "+mark)[0], "\n")
	}
	tool := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"tool", "pprof", "-symbolize=none"}, append(args, file)...)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	_, top, _ := strings.Cut(tool("-top", "-lines", `-show=^(main|.*/tests/malloc)\.`), "cum%\n")
	rows := strings.Split(top, "\n")
	require.Greater(t, len(rows), 3, top)
	assert.Regexp(t, fmt.Sprintf(`\.sharedFromC(\.func1)? \S+/shared\.go:%d( \(inline\))?$`, line("KEEP")), rows[0])
	assert.Regexp(t, fmt.Sprintf(`\.sharedFromGo \S+/shared\.go:%d( \(inline\))?$`, line("ALLOC")), rows[1])
	assert.Regexp(t, `\.large `, rows[2])
	traces := tool("-traces")
	assert.Regexp(t, `(?s)\n +arena: +budget "pond": region level\n +1\d\.\d+MB .*C\.shared_keep\n`, traces)
	assert.Regexp(t, `(?m)^ +[23]\.\d+MB +\S+/arena\.Shared\.Alloc\n +\S+\.sharedFromGo`, traces)
	assert.Regexp(t, `(?m)arena: Total .*\n.*: budget "pond": region level$`, tool("-tags"))
}
