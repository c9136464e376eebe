//go:build !race && !asan && !checked && !upfront_cgo

package lua

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build compiles the client with the core; flags come before the sources.
func build(t *testing.T, flags ...string) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a C compiler")
	}
	for _, tool := range []string{"cc", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	out, err := exec.Command("pkg-config", "--cflags", "--libs", "lua5.4").Output()
	if err != nil {
		t.Skip("Lua 5.4 is not here: apt-get install liblua5.4-dev pkg-config")
	}
	sources, err := filepath.Glob("../../arena_c/*.c")
	require.NoError(t, err)
	program = filepath.Join(t.TempDir(), "client")
	args := append([]string{"-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-I../../arena_c", "-o", program}, flags...)
	args = append(append(args, sources...), "testdata/client.c")
	text, err := exec.Command("cc", append(args, strings.Fields(string(out))...)...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.Empty(t, string(text))
	return program
}

func run(t *testing.T, program string) {
	t.Helper()
	out, err := exec.Command(program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	assert.Contains(t, string(out), "not enough memory", "Lua's own words")
	assert.True(t, strings.HasSuffix(string(out), "ok\n"))
}

// TestLuaLivesInAHeap: 8 MiB to the brim, Lua's own error, on again, and one free block at the end.
func TestLuaLivesInAHeap(t *testing.T) { run(t, build(t, "-O2")) }

func TestLuaLivesInAHeapUnderTheSanitizers(t *testing.T) {
	run(t, build(t, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
}

func TestLuaLivesInAHeapOfACheckedBuild(t *testing.T) { run(t, build(t, "-DUPFRONT_MEMDEBUG")) }
