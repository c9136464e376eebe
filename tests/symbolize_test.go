package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crash dies in C, two functions deep.
const crash = `package main

// static volatile int *nowhere;
// static __attribute__((noinline)) void deep_in_c(void) { *nowhere = 1; }
// static __attribute__((noinline)) void called_from_go(void) { deep_in_c(); *nowhere = 2; }
import "C"

func main() { C.called_from_go() }
`

// TestCrashInC shows what the blank import of platform/symbolize is for, and that without it the C frames have no names.
func TestCrashInC(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(crash), 0o600))
	goCommand(t, dir, "mod", "init", "example.com/crash")
	run := func() string {
		goCommand(t, dir, "mod", "tidy")
		goCommand(t, dir, "build", "-o", "crash", ".")
		out, err := exec.Command(filepath.Join(dir, "crash")).CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	assert.NotContains(t, run(), "deep_in_c")
	goCommand(t, dir, "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root, "-go=1.26")
	symbolize := "package main\n\nimport _ \"" + module + "/platform/symbolize\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "symbolize.go"), []byte(symbolize), 0o600))
	with := run()
	assert.Contains(t, with, "deep_in_c")
	assert.Contains(t, with, "called_from_go")
	assert.Contains(t, with, "main.go:4")
}
