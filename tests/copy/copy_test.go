package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestPond copies pond, then builds, vets and tests the copy as a module of its own.
func TestPond(t *testing.T) {
	step.Needs(t, step.Check)
	dir := copied(t, "pond")
	goRuns(t, dir, "test", "./...")
}

// TestFrogpond copies frogpond and package step, which is outside of frogpond's folder.
func TestFrogpond(t *testing.T) {
	step.Needs(t, step.Gate)
	dir := copied(t, "frogpond")
	assert.NoDirExists(t, filepath.Join(dir, "mods"), "a module of its own")
	assert.FileExists(t, filepath.Join(dir, "internal", "step", "step.go"))
	goRuns(t, dir, "test", "-timeout=1h", "./...")

	server := filepath.Join(dir, "server")
	goRuns(t, dir, "build", "-trimpath", "-o", server, ".")
	out, err := exec.Command(server, "-ticks", "35", "-json").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), `"identity_ok": true`)
	for _, command := range []string{"serve", "bots", "watch", "offline", "scores"} {
		out, err := exec.Command(server, command, "-h").CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "frogpond "+command)
	}
}

// copied returns a program in a module of its own. The program builds, and doesn't name its origin.
func copied(t *testing.T, program string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "new", program) // copy makes the parents
	var said bytes.Buffer
	require.NoError(t, run([]string{program, dir, "example.com/my" + program}, &said))
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	assert.Equal(t, program+" is in "+dir+", as module example.com/my"+program+"\n"+
		"its go.mod replaces "+library+" by "+root+"\n"+
		"next: cd "+dir+" && go test ./... && go run .\n", said.String())
	goRuns(t, dir, "build", "./...")
	assert.Empty(t, outputOf(t, dir, "gofmt", "-l", "."))
	assert.FileExists(t, filepath.Join(dir, "LICENSE"))
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(mod), "\ngo 1.26.0\n", "the library's, not this machine's")
	for _, file := range strings.Fields(outputOf(t, dir, "find", ".", "-name", "*.go")) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		assert.NotContains(t, string(text), `"`+library+"/tests", file)
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	assert.NotContains(t, string(page), "](../")
	assert.NotContains(t, string(page), "./tests/"+program)
	return dir
}

func goRuns(t *testing.T, dir string, args ...string) { outputOf(t, dir, "go", args...) }

func outputOf(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), step.Variable+"=") // the step that a user runs
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// TestWorkspace: a workspace above the folder that doesn't have the module doesn't disturb copy.
func TestWorkspace(t *testing.T) {
	step.Needs(t, step.Check)
	work := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(work, "go.work"), []byte("go 1.26\n"), 0o600))
	var said bytes.Buffer
	require.NoError(t, run([]string{"pond", filepath.Join(work, "pond"), "example.com/mypond"}, &said))
	assert.Contains(t, said.String(), "/pond && go work use . && go test ./... && go run .\n")
	goRuns(t, filepath.Join(work, "pond"), "work", "use", ".")
	goRuns(t, filepath.Join(work, "pond"), "vet", ".")
}

// TestRefused: each refusal gives its reason, and leaves the folder as it was.
func TestRefused(t *testing.T) {
	full, empty, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	for _, name := range []string{filepath.Join(full, "mine.go"), file} {
		require.NoError(t, os.WriteFile(name, []byte("mine"), 0o600))
	}
	fresh, linked := filepath.Join(t.TempDir(), "new", "fresh"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(empty, linked))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"pond", fresh}, "got 2 arguments, want 3: program, folder, module path"},
		{[]string{"lake", fresh, "example.com/x"}, `unknown program "lake"; choose pond or frogpond`},
		{[]string{"pond", full, "example.com/x"}, full + " isn't empty: it has mine.go; choose a new one"},
		{[]string{"pond", file, "example.com/x"}, "file: not a directory"},
		{[]string{"pond", fresh, library + "/mine"}, "is the library's; choose your own"},
		{[]string{"pond", fresh, "not a path"}, `malformed module path "not a path"`},
		{[]string{"pond", empty, "example.com/"}, `malformed module path "example.com/"`},
		{[]string{"pond", linked, "example.com/"}, `malformed module path "example.com/"`},
		{[]string{"-replace", empty, "pond", fresh, "example.com/x"}, empty + ": no checkout of " + library},
		{[]string{"-replace", "../bench", "pond", fresh, "example.com/x"}, "../bench: no checkout"},
	} {
		err := run(c.args, new(bytes.Buffer))
		require.Error(t, err, c.args)
		assert.Contains(t, err.Error(), c.says)
		assert.NoDirExists(t, filepath.Dir(fresh), c.args)
	}
	info, err := os.Lstat(linked)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&fs.ModeSymlink, "a link is one still")
	assert.DirExists(t, empty)
	for _, dir := range []string{full, empty} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, entries, map[string]int{full: 1, empty: 0}[dir])
	}
}

// TestImports: only imports below tests change, and the imports are sorted again.
func TestImports(t *testing.T) {
	c := copier{root: "../..", dir: t.TempDir(), module: "example.com/my",
		folders: map[string]string{"tests/frogpond": "."}}
	before := `package main

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	game "github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/step"
)

var _ = "github.com/upfront-mem/upfront/tests/frogpond/internal/game"
`
	after := `package main

import (
	"fmt"

	game "example.com/my/internal/game"
	"example.com/my/internal/step"
	"github.com/upfront-mem/upfront/budget"
)

var _ = "github.com/upfront-mem/upfront/tests/frogpond/internal/game"
`
	text, err := c.imports("main.go", []byte(before))
	require.NoError(t, err)
	assert.Equal(t, after, string(text))
	assert.FileExists(t, filepath.Join(c.dir, "internal", "step", "step.go"))
}

// TestLinks: a page links to copied files, and to the library for the rest.
func TestLinks(t *testing.T) {
	c := copier{root: "../..", folders: map[string]string{"tests/frogpond": "."}}
	page := "[a](PROTOCOL.md) [b](internal/disk/doc.go) [c](mods/README.md) " +
		"[d](../../budget/cmd/README.md#recordings) [e](https://example.com/x) [f](#here) " +
		"go run ./tests/frogpond, ./tests/frogpond/internal/serve ./tests/pond"
	assert.Equal(t, "[a](PROTOCOL.md) [b](internal/disk/doc.go) "+
		"[c](https://github.com/upfront-mem/upfront/blob/main/tests/frogpond/mods/README.md) "+
		"[d](https://github.com/upfront-mem/upfront/blob/main/budget/cmd/README.md#recordings) "+
		"[e](https://example.com/x) [f](#here) go run ., ./internal/serve ./tests/pond",
		string(c.links("tests/frogpond", []byte(page))))
}
