//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// clients are C libraries whose memory is a heap or a buddy. The folder tests/c/clients has a
// program for each. says is the library's own error when memory is short, or the program's report
// of it.
var clients = []struct{ name, library, debian, says string }{
	{"sqlite", "sqlite3", "libsqlite3-dev", "ended with an error"},
	{"enet", "libenet", "libenet-dev", "ended with an error"},
	{"physfs", "physfs", "libphysfs-dev", "ended with an error"},
	{"lua", "lua5.4", "liblua5.4-dev", "not enough memory"},
}

// strict are the compiler's flags for our C programs.
var strict = []string{"-std=c11", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"}

// TestClients runs each library in smaller and smaller heaps, with front lists and without, and in
// buddies. The library does its work or ends with its own error, and frees all its memory. Under
// AddressSanitizer and in the checked build, only our own code is instrumented.
func TestClients(t *testing.T) {
	step.Needs(t, step.Check)
	tools(t, "cc", "pkg-config")
	core, err := filepath.Glob("../arena_c/*.c")
	require.NoError(t, err)
	archive, sizes := ponds(t), step.Pick("10", "30", "100")
	for build, flags := range map[string][]string{
		"release":    {"-O2"},
		"sanitizers": {"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"},
		"checked":    {"-O1", "-DUPFRONT_CHECKED"},
	} {
		t.Run(build, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			flags := slices.Concat(strict, flags, []string{"-I../arena_c"})
			library := filepath.Join(dir, "core.o")
			output(t, ".", nil, "cc", slices.Concat(flags, []string{"-r", "-o", library}, core)...)
			for _, c := range clients {
				t.Run(c.name, func(t *testing.T) {
					if output(t, ".", nil, "sh", "-c", "pkg-config --exists "+c.library+" || echo absent") != "" {
						step.Lacks(t, c.library, c.debian)
					}
					libs := strings.Fields(output(t, ".", nil, "pkg-config", "--cflags", "--libs", c.library))
					for arena, parked := range map[string][]string{"IN_HEAP": {"0", "256"}, "IN_BUDDY": {"0"}} {
						program := filepath.Join(dir, c.name+arena)
						output(t, ".", nil, "cc", slices.Concat(flags, []string{"-D" + arena, "-o", program,
							"c/clients/" + c.name + ".c", library}, libs)...)
						for _, blocks := range parked {
							said := output(t, ".", nil, program, blocks, sizes, t.TempDir(), archive)
							assert.Contains(t, said, c.says)
							assert.True(t, strings.HasSuffix(said, "ok\n"), said)
						}
					}
				})
			}
		})
	}
}

// ponds returns the path of an archive of the files that physfs.c, the program for PhysFS, writes.
func ponds(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ponds.zip")
	file, err := os.Create(path)
	require.NoError(t, err)
	archive := zip.NewWriter(file)
	for n := range 8 {
		w, err := archive.Create(fmt.Sprintf("ponds/frog%d.txt", n))
		require.NoError(t, err)
		for i := range n * 977 {
			_, err = w.Write([]byte{'a' + byte((n+i/7)%26)})
			require.NoError(t, err)
		}
	}
	require.NoError(t, archive.Close())
	require.NoError(t, file.Close())
	return path
}
