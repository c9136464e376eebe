//go:build linux && cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// does runs a command and returns its output.
func does(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		require.NoError(t, err, "%s %v: %s", name, args, failed.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

// leak returns the file and the line of a program's leak, and the line's text.
func leak(t *testing.T, program string) (place, text string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		before, _, found := strings.Cut(string(source), " // the leak: "+program+"\n")
		if found {
			lines := strings.Split(before, "\n")
			return fmt.Sprintf("%s:%d", file, len(lines)), strings.TrimSpace(lines[len(lines)-1])
		}
	}
	require.Fail(t, "no leak", program)
	return "", ""
}

// first returns the first row of a table of go tool pprof.
func first(table string) string {
	_, rows, _ := strings.Cut(table, "cum%\n")
	row, _, _ := strings.Cut(rows, "\n")
	return row
}

// TestLeaks: go tool pprof shows the line of each leak first, also in a stripped program. So does
// the difference of two profiles, and the first stack.
func TestLeaks(t *testing.T) {
	step.Needs(t, step.Check)
	if arena_c.Asan || arena_c.Race || arena_c.Checked {
		t.Skip("the programs are release builds whatever this build is: UPFRONT_STEP=check go test ./leaks runs it")
	}
	for build, flags := range map[string]string{"release": "", "stripped": "-s -w"} {
		path := filepath.Join(t.TempDir(), "leaks")
		does(t, "go", "build", "-ldflags="+flags, "-o", path, ".")
		for program := range programs {
			place, _ := leak(t, program)
			dir := t.TempDir()
			does(t, path, program, dir)
			before, after := filepath.Join(dir, "before.pb.gz"), filepath.Join(dir, "after.pb.gz")
			top := []string{"tool", "pprof", "-symbolize=none", "-top", "-lines", `-show=^main\.`}
			row := regexp.MustCompile(`MB +\d.*main\.\w+ (\S+/)?` + regexp.QuoteMeta(place) + `( \(inline\))?$`)
			assert.Regexp(t, row, first(does(t, "go", append(top, after)...)), "%s, %s", program, build)
			assert.Regexp(t, row, first(does(t, "go", append(top, "-diff_base="+before, after)...)), "%s, %s", program,
				build)
			traces := does(t, "go", "tool", "pprof", "-symbolize=none", "-lines", "-traces", after)
			stack := strings.Split(traces, "-----------+-------------------------------------------------------\n")[1]
			assert.Contains(t, stack, place, "%s, %s", program, build)
			assert.Contains(t, stack, " C.", "the function of C has a name: %s, %s", program, build)
		}
	}
}

// TestPage: the page has the lines of the leaks.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(step.Root(t), "arena/with/malloc/profile.md"))
	require.NoError(t, err)
	for program := range programs {
		_, text := leak(t, program)
		assert.Contains(t, string(page), text)
	}
}
