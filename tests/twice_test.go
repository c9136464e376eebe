//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// prefixOf returns the prefix of a module's C names in Go programs.
func prefixOf(module string) string {
	return regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(module, "_") + "_"
}

// TestPrefix: a fork, or another major version, has other names in C.
func TestPrefix(t *testing.T) {
	path := regexp.MustCompile(`(?m)^module (.*)$`).FindStringSubmatch(page(t, "go.mod"))[1]
	assert.Contains(t, page(t, "arena_c/arena.go"), "-DUPFRONT_PREFIX="+prefixOf(path)+"\n",
		"the C names of module %s begin with its path: change UPFRONT_PREFIX in arena_c/arena.go", path)
}

// TestTwoCopies: a program may have the module and a fork of it.
func TestTwoCopies(t *testing.T) {
	step.Needs(t, step.Gate)
	const fork = "example.com/fork/upfront/v2"
	dir := t.TempDir()
	copied := filepath.Join(dir, "fork")
	renamed := strings.NewReplacer(module, fork, prefixOf(module), prefixOf(fork))
	for _, name := range []string{"arena", "arena_c", "budget", "platform", "scope"} {
		require.NoError(t, fs.WalkDir(os.DirFS(".."), name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") ||
				!slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(filepath.Join("..", path))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(copied, path)), 0o755))
			return os.WriteFile(filepath.Join(copied, path), []byte(renamed.Replace(string(text))), 0o644)
		}))
	}
	goMod := bytes.Replace([]byte(page(t, "go.mod")), []byte("module "+module), []byte("module "+fork), 1)
	require.NoError(t, os.WriteFile(filepath.Join(copied, "go.mod"), goMod, 0o644))
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/twice")))
	goCommand(t, dir, "mod", "init", "example.com/twice")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	goCommand(t, dir, "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root,
		"-require="+fork+"@v2.0.0", "-replace="+fork+"="+copied, "-go=1.26")
	goCommand(t, dir, "mod", "tidy")
	flags := strings.TrimSpace(output(t, dir, nil, "go", "list", "-f", `-O2 -g -I{{.Dir}} {{join .CgoCFLAGS " "}}`,
		module+"/arena_c"))
	assert.Empty(t, output(t, dir, []string{"CGO_CFLAGS=" + flags}, "go", "build", "-trimpath", "-o", "twice", "."))
	leaks := `budget %q: region level, scope "level": an arena.Heap of %d bytes ends with 1 live block, %d bytes used; ` +
		"free each before the scope closes, or call MayLive\n"
	assert.Equal(t, fmt.Sprintf("true\n"+leaks+leaks, "ours", 4096, 128, "theirs", 8192, 5024),
		output(t, dir, nil, filepath.Join(dir, "twice")))
}
