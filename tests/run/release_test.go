package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// consumer imports a package of each published module. The tool is a program, so it has no import.
const consumer = `package main

import (
	_ "github.com/upfront-mem/upfront/arena/with/lua"
	_ "github.com/upfront-mem/upfront/arena/with/malloc"
	_ "github.com/upfront-mem/upfront/arena/with/sqlite"
	_ "github.com/upfront-mem/upfront/budget/save/s2"
	_ "github.com/upfront-mem/upfront/budget/view/live"
	_ "github.com/upfront-mem/upfront/budget/with/otel"
	_ "github.com/upfront-mem/upfront/budget/with/pprof"
	_ "github.com/upfront-mem/upfront/budget/with/prometheus"
	_ "github.com/upfront-mem/upfront/platform/symbolize"
	_ "github.com/upfront-mem/upfront/scope/with/arrow"
	_ "github.com/upfront-mem/upfront/scope/with/wazero"
)
`

// TestConsumer makes a release of this tree. An empty module then requires each published module,
// and is built, tidied and vendored, and gets the tool in both ways, without the network: our
// modules come from the release's tags alone, and others from the files in testdata/consumed.txt.
func TestConsumer(t *testing.T) {
	step.Needs(t, step.Check)
	tools := map[string]string{"git": "git", "pkg-config": "pkg-config"}
	if step.Now() >= step.Gate {
		tools["aarch64-linux-gnu-gcc"], tools["qemu-aarch64-static"] = "gcc-aarch64-linux-gnu", "qemu-user-static"
	}
	for tool, debian := range tools {
		if !have(tool) {
			step.Lacks(t, tool, debian)
		}
	}
	for library, debian := range map[string]string{"sqlite3": "libsqlite3-dev", "lua5.4": "liblua5.4-dev"} {
		if exec.Command("pkg-config", "--exists", library).Run() != nil {
			step.Lacks(t, library, debian)
		}
	}
	inRoot(t)
	p := newProver(t.Output(), step.Check)
	if !*update {
		require.NoError(t, p.fetch())
	}
	downloads, err := p.downloads()
	require.NoError(t, err)
	version := "v" + regexp.MustCompile(`UPFRONT_VERSION "(.*)"`).FindStringSubmatch(read(t, "arena_c/upfront.h"))[1]
	readme := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(read(t, "README.md"))[1]
	golden, err := filepath.Abs(consumed)
	require.NoError(t, err)
	all, err := modules()
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(dir string) bool { return !published(dir) })

	committed(t, p, version)
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, p.release(version, out))

	dir, cache := t.TempDir(), t.TempDir()
	proxy := "file://" + filepath.ToSlash(offered(t, golden, downloads))
	if *update {
		online, err := p.output(goCommand("", "env", "GOPROXY"))
		require.NoError(t, err)
		proxy += "," + strings.TrimSpace(online)
	}
	env := slices.Concat(fromTags(out, cache, proxy), []string{"GOBIN=" + dir, "GOSUMDB=off",
		// With -trimpath, the build cache also holds for the new module cache.
		"GOFLAGS=" + os.Getenv("GOFLAGS") + " -trimpath -modcacherw -tags=libsqlite3"})
	run := func(args ...string) string {
		t.Helper()
		text, err := p.output(command{dir: dir, env: env, args: args})
		require.NoError(t, err)
		return text
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(readme), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "clients.go"), []byte(consumer), 0o644))
	run("go", "mod", "init", "example.com/pond")
	get := []string{"go", "get"}
	for _, module := range all {
		if module != "budget/cmd" {
			get = append(get, pathOf(module)+"@"+version)
		}
	}
	run(get...)
	run("go", "mod", "tidy")
	run("go", "build", "-o", "pond")
	assert.Contains(t, run("./pond"), "1000 frogs swim\n")
	// go mod vendor copies the C files of a folder only if the folder has Go files.
	run("go", "mod", "vendor")
	run("go", "build", "-o", "pond")
	assert.Contains(t, run("./pond"), "1000 frogs swim\n")
	if step.Now() >= step.Gate { // for a device; the clients' C libraries are this machine's
		run("env", "GOARCH=arm64", "CGO_ENABLED=1", "CC=aarch64-linux-gnu-gcc", "go", "build", "-o", "pond", "main.go")
		assert.Contains(t, run("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "./pond"), "1000 frogs swim\n")
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "vendor")))
	tool := home + "/budget/cmd/upfront"
	run("go", "get", "-tool", tool+"@"+version)
	assert.Contains(t, run("go", "tool", "upfront", "--version"), version)
	run("go", "install", tool+"@"+version, tool+"-vet@"+version)
	assert.Contains(t, run("./upfront", "--version"), version)

	status, err := p.output(command{dir: out, args: []string{"git", "status", "--porcelain"}})
	require.NoError(t, err)
	assert.Empty(t, status, "the tags have all files")
	for _, module := range all[1:] { // the sums of the tags
		in := command{dir: filepath.Join(out, module), env: env, args: []string{"go", "list", "-deps", "./..."}}
		require.NoError(t, p.do(in))
	}

	used, err := downloaded(filepath.Join(cache, "cache", "download"))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(used, "\n")+"\n"), 0o644))
	}
	assert.Equal(t, strings.Split(strings.TrimSpace(read(t, golden)), "\n"), used,
		"UPFRONT_STEP=check go test ./tests/run -run Consumer -update writes it, with the network")

	if step.Now() >= step.Gate { // a copy of a program requires the same version
		assert.NotContains(t, run("go", "run", home+"/tests/copy", "pond", "mypond", "example.com/mypond"), "replaces")
		mod := read(t, filepath.Join(dir, "mypond", "go.mod"))
		assert.Contains(t, mod, home+" "+version+"\n")
		assert.NotContains(t, mod, "replace ")
		run("go", "-C", "mypond", "test", "./...")
	}
}

// offered returns a proxy of the files in consumed alone. The module cache may have newer versions,
// which the go command would look at.
func offered(t *testing.T, consumed, downloads string) (proxy string) {
	t.Helper()
	proxy = t.TempDir()
	for line := range strings.Lines(read(t, consumed)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, alone := strings.CutSuffix(version, "/go.mod")
		from, to := filepath.Join(downloads, escape(path), "@v"), filepath.Join(proxy, escape(path), "@v")
		require.NoError(t, os.MkdirAll(to, 0o755))
		for _, ext := range []string{".info", ".mod", ".zip"} {
			if name := escape(version) + ext; ext != ".zip" || !alone {
				require.NoError(t, os.Symlink(filepath.Join(from, name), filepath.Join(to, name)))
			}
		}
		list, err := os.OpenFile(filepath.Join(to, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = fmt.Fprintln(list, version)
		require.NoError(t, errors.Join(err, list.Close()))
	}
	return proxy
}

// committed moves the test to a clone of the repository, and commits the files of this folder
// there. It checks that a release needs the commit.
func committed(t *testing.T, p *prover, version string) {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) string {
		t.Helper()
		text, err := p.output(command{args: append([]string{"git"}, args...)})
		require.NoError(t, err)
		return text
	}
	git("clone", "-q", ".", clone)
	names := strings.Split(git("ls-files", "-cmoz", "--exclude-standard", "--deduplicate"), "\x00")
	for _, name := range names[:len(names)-1] {
		there := filepath.Join(clone, name)
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, os.Remove(there))
			continue
		}
		require.NoError(t, err)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(there), 0o755))
		require.NoError(t, os.WriteFile(there, text, info.Mode()))
	}
	t.Chdir(clone)
	require.NoError(t, os.WriteFile("more.txt", nil, 0o644))
	assert.ErrorContains(t, p.release(version, "out"), "?? more.txt")
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "test")
		t.Setenv("GIT_"+role+"_EMAIL", "test@example.com")
	}
	git("add", "-A")
	git("commit", "-q", "-m", "all files")
	assert.ErrorContains(t, p.release("v0.0.9", "out"), `it lacks the line`)
	assert.ErrorContains(t, p.release("0.1", "out"), `"0.1" is no version such as v0.1.0`)
	assert.ErrorContains(t, p.release(version, "tests"), "tests exists")
}

// outward matches a path in quotes that leads out of its folder, and the number of folders.
var outward = regexp.MustCompile(`["<{/ ]((?:\.\./)+)|"((?:\.\./)*\.\.)"`)

// leavesModule returns the paths in a file of a module that lead out of the module. depth is the
// number of folders between the module and the file.
func leavesModule(text string, depth int) (paths []string) {
	for _, found := range outward.FindAllStringSubmatch(text, -1) {
		if path := found[1] + found[2]; strings.Count(path+"/", "../") > depth {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestModulesStandAlone: no file of a published module names a file outside of the module, as the
// root module is elsewhere in a module cache. Tests of the tool, a program, may.
func TestModulesStandAlone(t *testing.T) {
	assert.Equal(t, []string{"../../../"}, leavesModule(`#include "../../../arena_c/heap.h"`, 2))
	assert.Equal(t, []string{"../"}, leavesModule("// #cgo CFLAGS: -I${SRCDIR}/../arena_c", 0))
	assert.Empty(t, leavesModule(`#include "../../inner.h"`, 2), "control: it stays in the module")
	inRoot(t)
	list, err := modules()
	require.NoError(t, err)
	files := 0
	for _, dir := range list {
		if dir == "." || !published(dir) {
			continue
		}
		require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if ext := filepath.Ext(name); err != nil || d.IsDir() || ext != ".go" && ext != ".c" && ext != ".h" ||
				dir == "budget/cmd" && strings.HasSuffix(name, "_test.go") {
				return err
			}
			files++
			inner, err := filepath.Rel(dir, name)
			depth := strings.Count(filepath.ToSlash(inner), "/")
			assert.Empty(t, leavesModule(read(t, name), depth), name)
			return err
		}))
	}
	assert.Greater(t, files, 50)
}
