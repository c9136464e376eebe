//go:build linux && cgo

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// A process has one malloc, so each program runs in a process of its own: this test's program with
// childVariable set.
const childVariable = "UPFRONT_FULL_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	if arena_c.Asan {
		fmt.Println("an asan build has AddressSanitizer's malloc")
		return
	}
	os.Exit(m.Run())
}

// deadline ends a program that hangs. No program needs a hundredth of it.
const deadline = 20 * time.Minute

// start runs a program of this package, in the executable at a path, and returns its output,
// standard error included.
func start(t *testing.T, path, arguments string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, strings.Fields(arguments)...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "%s hangs: %.4000s", arguments, out)
	return string(out), err
}

// assertFull: the first full is one line on standard error. It names the file in Go above the call
// that was refused.
func assertFull(t *testing.T, arguments, out, file string) {
	t.Helper()
	assert.Regexp(t, full+`.*, from Go at .*\b`+file+`:\d`, out, arguments)
	assert.Len(t, regexp.MustCompile(full).FindAllString(out, -1), 1, "%s: %.4000s", arguments, out)
}

const full = `upfront: C's malloc is full: a request of \d+ bytes, and \d+ of \d+ bytes of c_heap are used`

// lives runs a program that has to outlive the full.
func lives(t *testing.T, path, arguments, file, last string) {
	t.Helper()
	out, err := start(t, path, arguments)
	require.NoError(t, err, "%s: %.4000s", arguments, out)
	assert.Regexp(t, `(^|\n)`+last+`\n$`, out, arguments)
	assertFull(t, arguments, out, file)
}

// served ends the output of the daemon after at least one full answer.
const served = `alive fulls [1-9]\d*`

// sizes are those of C's heap and its reserve, in MiB.
var sizes = [][2]int{{6, 1}, {7, 1}, {8, 2}, {9, 2}, {10, 2}, {24, 2}, {64, 2}}

// TestDaemon: a process with SQLite serves its clients while C's malloc is full. As a control, Go
// code that takes and keeps more than its part ends the process.
func TestDaemon(t *testing.T) {
	t.Parallel()
	for _, s := range sizes {
		arguments := fmt.Sprintf("-size %dMiB -reserve %dMiB daemon", s[0], s[1])
		for range step.Pick(1, 3, 100) {
			lives(t, os.Args[0], arguments, `sqlite3\.go`, served)
		}
		out, err := start(t, os.Args[0], arguments+" leak")
		assert.Error(t, err)
		assert.Contains(t, out, "fatal error: runtime: C malloc failed")
	}
}

// TestTrees: the line of the full comes before the library ends the process, and the warning comes
// before the full.
func TestTrees(t *testing.T) {
	t.Parallel()
	const warning = "warning: c_heap holds "
	for program, its := range map[string]struct{ file, end string }{
		"trees":    {`trees\.go`, `tree-sitter failed to (re)?allocate \d+ bytes`},
		"trees go": {`allocator\.go`, `runtime: C malloc failed|SIGSEGV`}, // NULL isn't checked
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			out, err := start(t, os.Args[0], "-size 48MiB -warn 80 "+program)
			assert.Error(t, err)
			assertFull(t, program, out, its.file)
			assert.Regexp(t, `(?s)`+warning+`.*`+full+`.*(`+its.end+`)`, out)
			assert.Equal(t, 1, strings.Count(out, warning), out)

			out, err = start(t, os.Args[0], "-size 48MiB "+program)
			assert.Error(t, err)
			assert.NotContains(t, out, warning, "the control")
		})
	}
}

// tags returns the build tags of this test.
func tags(t *testing.T) string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}

// TestBuilds: the programs outlive the full in each build. The go command strips the test's own
// program.
func TestBuilds(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	for name, flags := range map[string][]string{
		"dynamic":  nil,
		"pie":      {"-buildmode=pie"},
		"stripped": {"-ldflags=-s -w"},
		"race":     {"-race"},
		"static":   {`-ldflags=-linkmode external -extldflags "-static -lm"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name)
			out, err := exec.Command("go", append([]string{"build", "-o", path, "-tags=" + tags(t)},
				flags...)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			for _, s := range sizes {
				for range step.Pick(1, 1, 20) {
					lives(t, path, fmt.Sprintf("-size %dMiB -reserve %dMiB daemon", s[0], s[1]), `sqlite3\.go`, served)
				}
			}
		})
	}
}
