//go:build !race && !asan && !checked && !upfront_cgo

// Package core tests the C core without Go.
package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestCore runs tests/c/run.sh: gcc, g++, sanitizers, each branch taken; in make soak clang and
// valgrind. It opens each file, so that go test keeps its result until one changes. After a change
// of the compilers, run it with -count=1.
func TestCore(t *testing.T) {
	step.Needs(t, step.Check)
	for _, pattern := range []string{"../../arena_c/*.[ch]", "../c/*.*"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			_, err = os.ReadFile(name)
			require.NoError(t, err)
		}
	}
	cmd := exec.Command("sh", "tests/c/run.sh", "build/c")
	if step.Now() == step.Soak {
		cmd.Args = append(cmd.Args, "soak")
	}
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, step.Unproven) {
			t.Log(strings.TrimSpace(line))
		}
	}
	require.NoError(t, err, "%s", out)
}
