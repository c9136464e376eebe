//go:build linux && cgo && !race && !asan && !checked

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

	"github.com/upfront-mem/upfront/tests/step"
)

// command runs a command with more environment, and returns its output.
func command(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		step.Lacks(t, name, name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func does(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t, env, name, args...)
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return out
}

// preloaded builds the library for programs without Go.
func preloaded(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	does(t, nil, "cc", strings.Fields("-std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fPIC "+
		"-shared -fvisibility=hidden -DUPFRONT_MALLOC_PRELOAD -I../../arena_c ../../arena/with/malloc/process.c "+
		"../../arena/with/malloc/profile.c ../../arena/with/malloc/caller.c ../../arena_c/heap.c "+
		"../../arena_c/heap_walk.c -lpthread -ldl -o "+path)...)
}

// workProgram builds the programs of work.h without Go.
func workProgram(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "work")
	does(t, nil, "cc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "testdata/main.c", "-o",
		path, "-lpthread", "-ldl")
	return path
}

// shared builds a library of testdata.
func shared(t *testing.T, dir, name string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "lib"+name+".so")
	does(t, nil, "cc", "-std=c11", "-O1", "-fPIC", "-shared", "testdata/"+name+".c", "-o", path, "-lpthread")
	return path
}

// TestForkHandlers: a fork ends though a library's handlers allocate, and wait for a thread that
// does. The library's constructor ran first.
func TestForkHandlers(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	library, work, handlers := dir+"/libupfront-malloc.so", workProgram(t, dir), shared(t, dir, "handlers")
	preloaded(t, library)
	forks := step.Pick("0", "30", "300")
	env := []string{"LD_PRELOAD=" + library + " " + handlers, "UPFRONT_C_HEAP=64MiB"}
	assert.Contains(t, does(t, env, work, "handlers", forks), "handlers: 0\n")
	env = []string{"LD_PRELOAD=" + handlers, childVariable + "=1"}
	assert.Contains(t, does(t, env, os.Args[0], "-size", "64MiB", "handlers", forks), "answer 0\n")
}

// TestLateData: in a full heap ld.so gets the memory of a late library's thread-local data; its
// refusal would end the process.
func TestLateData(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	library, late := dir+"/libupfront-malloc.so", shared(t, dir, "late")
	preloaded(t, library)
	assert.Contains(t, does(t, []string{"LD_PRELOAD=" + library, "UPFRONT_C_HEAP=8MiB"}, workProgram(t, dir), "late",
		late), "late: 0\n")
	ends(t, "-size 8MiB late "+late)
}

// TestThreadThatTrims: the thread keeps no process alive, takes no signal from the program, isn't
// there before memory is free, and isn't started where libc holds a lock. The line of a full heap
// needs no lock, and survives a broken pipe.
func TestThreadThatTrims(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	library, work := dir+"/libupfront-malloc.so", workProgram(t, dir)
	preloaded(t, library)
	env := []string{"LD_PRELOAD=" + library, "UPFRONT_C_HEAP=64MiB", "UPFRONT_C_HEAP_TRIM=10ms"}
	does(t, env, work, "last")
	for _, args := range []string{"signal", "alone", "names", "stacks 10"} {
		words := strings.Fields(args)
		assert.Equal(t, words[0]+": 0\n", does(t, env, work, words...))
	}
	full := []string{"LD_PRELOAD=" + library, "UPFRONT_C_HEAP=1MiB"}
	assert.Contains(t, does(t, full, work, "children", "20"), "children: 0\n")
	assert.Contains(t, does(t, full, work, "pipe"), "pipe: 0\n")
}

// TestPrograms runs programs of the machine with the malloc and the thread that trims. Those that
// fork, start threads or unshare once hung or failed.
func TestPrograms(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	dir := t.TempDir()
	library := dir + "/libupfront-malloc.so"
	preloaded(t, library)
	numbers := filepath.Join(dir, "numbers")
	require.NoError(t, os.WriteFile(numbers, []byte(strings.Repeat("7\n3\n5\n", 200_000)), 0o600))
	env := []string{"LD_PRELOAD=" + library, "UPFRONT_C_HEAP=512MiB", "UPFRONT_C_HEAP_TRIM=10ms"}
	for _, line := range [][]string{
		{"git", "log", "--stat", "-20"},
		{"perl", "-e", `my %h; $h{$_} = $_ x 10 for 1..100000; fork and wait; exit(keys(%h) != 100000)`},
		{"python3", "-c", "import multiprocessing as m; p = m.get_context('fork').Pool(2); assert sum(p.map(abs, " +
			"range(9999))) == 49985001"},
		{"gdb", "-batch", "-ex", "run", "/bin/true"},
		{"cc", "-O2", "-c", "work.c", "-o", dir + "/work.o"},
		{"clang", "-O2", "-c", "work.c", "-o", dir + "/work.o"},
		{"ssh", "-V"},
		{"openssl", "speed", "-seconds", "1", "-multi", "2", "sha256"},
		{"xz", "-T2", "-k", "-f", numbers},
		{"sort", "-n", "--parallel=2", numbers},
		{"unshare", "-U", "true"},
	} {
		if _, err := exec.LookPath(line[0]); err != nil {
			t.Log(err)
			continue
		}
		out, err := command(t, env, line[0], line[1:]...)
		assert.NoError(t, err, "%v: %.1000s", line, out)
		assert.NotRegexp(t, `(?m)^upfront: `, out, line)
	}
}

// TestPreload runs programs without Go over the library that make install builds.
func TestPreload(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	path := dir + "/usr/local/lib/libupfront-malloc.so"
	if step.Now() >= step.Gate {
		does(t, []string{"MAKEFLAGS="}, "make", "-s", "-C", "../..", "install", "DESTDIR="+dir, "LIB="+dir+"/lib")
	} else {
		preloaded(t, path)
	}
	library := "LD_PRELOAD=" + path
	work := workProgram(t, dir)
	heap := []string{library, "UPFRONT_C_HEAP=64MiB"}
	steps := step.Pick("0", "40000", "3000000")
	for _, args := range []string{"stress 8 " + steps + " 100000", "model " + steps + " 60000", "edges", "fork 20",
		"libc", "stats", "misuse right"} {
		for _, env := range [][]string{heap, {library}, {library, "UPFRONT_C_HEAP=300KiB"},
			append(heap, "UPFRONT_C_HEAP_TRIM=10ms")} {
			out := does(t, env, work, strings.Fields(args)...)
			assert.Contains(t, out, strings.Fields(args)[0]+": 0\n")
		}
	}
	out, err := command(t, heap, work, "misuse", "double")
	assert.Error(t, err)
	assert.Contains(t, out, "upfront: BUG: free of 0x")
	assert.Contains(t, does(t, []string{library}, work, "fill", "5000"),
		"Set UPFRONT_C_HEAP=64MiB, or more; the caller is ")
	// blocks in fronts merge before a refusal
	assert.Contains(t, does(t, []string{library, "UPFRONT_C_HEAP=1MiB"}, work, "fill", "64", "970000"), "fill: 0\n")
	out = does(t, heap, work, "stats")
	assert.Contains(t, out, "upfront: C's malloc: size 67108864, used ")
	assert.Contains(t, out, "<malloc version=\"1\">")

	for env, says := range map[string]string{
		"UPFRONT_C_HEAP=64X":       "give a size such as 64MiB",
		"UPFRONT_C_HEAP=0":         "give a size such as 64MiB",
		"UPFRONT_C_HEAP=-1":        "give a size such as 64MiB",
		"UPFRONT_C_HEAP=300":       "give a size such as 64MiB",
		"UPFRONT_C_HEAP=999999GiB": "give a size such as 64MiB",
		"UPFRONT_C_HEAP_TRIM=1":    "give a time such as 500ms or 1s",
	} {
		out, err := command(t, append(heap, env), work, "edges")
		assert.Error(t, err, env)
		assert.Equal(t, "upfront: "+env+": "+says+"\n", out)
	}

	program := filepath.Join(dir, "new")
	does(t, nil, "c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "testdata/new.cpp", "-o", program)
	for _, size := range []string{"4MiB", "64MiB"} {
		out := does(t, []string{library, "UPFRONT_C_HEAP=" + size}, program)
		assert.Regexp(t, `(?m)^\d+ blocks$`, out)
		assert.Regexp(t,
			`(?m)^upfront: C's malloc is full: .*; the caller is _Zn\w+\+0x[0-9a-f]+ in libstdc\+\+\.so\.6$`, out)
	}
}

// TestTwice: two copies of the malloc don't link, and the linker names the reason.
func TestTwice(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	for _, copy := range []string{"a", "b"} {
		does(t, nil, "cc", "-std=c11", "-fPIC", "-c", "-I../../arena_c", "-DUPFRONT_PREFIX="+copy+"_",
			"../../arena/with/malloc/process.c", "-o", filepath.Join(dir, copy+".o"))
	}
	out, err := command(t, nil, "cc", "-shared", filepath.Join(dir, "a.o"), filepath.Join(dir, "b.o"), "-o",
		filepath.Join(dir, "both"))
	assert.Error(t, err)
	assert.Contains(t, out, "upfront_malloc_is_linked_twice_keep_one_major_version")
	does(t, nil, "cc", "-shared", filepath.Join(dir, "a.o"), "-o", filepath.Join(dir, "one"))
}

// TestLate: in a library that is loaded late Begin is refused, because the process has another
// malloc.
func TestLate(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	dir := t.TempDir()
	library, host := filepath.Join(dir, "late.so"), filepath.Join(dir, "host")
	does(t, nil, "go", "build", "-buildmode=c-shared", "-o", library, "./testdata/late")
	does(t, nil, "cc", "-std=c11", "testdata/host.c", "-o", host, "-ldl")
	assert.Regexp(t, `^the process has another malloc, in \S+/libc\.so\.6: `, does(t, nil, host, library))
	array := arrayProgram(t, dir)
	for _, other := range otherMallocs() {
		for _, preload := range []string{other, other + " " + library} {
			assert.Contains(t, does(t, []string{"LD_PRELOAD=" + preload}, host, library),
				"the process has another malloc, in "+other+": ")
		}
		assert.Equal(t, "array: 0\n", does(t, []string{"LD_PRELOAD=" + other + " " + library}, array))
	}
	assert.Equal(t, "begun\n", does(t, []string{"LD_PRELOAD=" + library}, host, library), "loaded first")
}

// otherMallocs returns the machine's libraries with another malloc.
func otherMallocs() []string {
	others, _ := filepath.Glob("/usr/lib/*/lib*malloc.so.2")
	return others
}

// TestOtherPreloaded: a program's own malloc has precedence over a preloaded one, which the report
// names.
func TestOtherPreloaded(t *testing.T) {
	step.Needs(t, step.Check)
	others := otherMallocs()
	if len(others) == 0 {
		step.Lacks(t, "another malloc", "libjemalloc2")
	}
	for _, other := range others {
		t.Setenv("LD_PRELOAD", other)
		file, err := filepath.EvalSymlinks(other)
		require.NoError(t, err)
		name, _, _ := strings.Cut(filepath.Base(other)[len("lib"):], ".")
		assert.Regexp(t, `(?m)^not granted: c_heap: `+name+` is linked \(\w+ in `+regexp.QuoteMeta(file)+`\): `,
			ends(t, fmt.Sprintf("-size 64MiB stress 4 %d 100000", 20_000)))
	}
}

// TestOtherMallocIsReported: the report names the allocator that a library brings along. A library
// that only asks for one has no line.
func TestOtherMallocIsReported(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	library, asks := shared(t, dir, "mallctl"), shared(t, dir, "asks")
	run := func(preload string) string {
		t.Helper()
		return does(t, []string{"LD_PRELOAD=" + preload, childVariable + "=1"}, os.Args[0], "-size", "8MiB", "libc")
	}
	assert.NotContains(t, run(""), "not granted:")
	assert.NotContains(t, run(asks), "not granted:")
	assert.Contains(t, run(asks+" "+library), "not granted: c_heap: jemalloc is linked (x_je_mallctl in "+library+
		"): c_heap doesn't bound its memory; lower its own limit, or build without it\n")
	does(t, nil, "strip", library)
	assert.Contains(t, run(library), "(x_je_mallctl in "+library+")", "stripped")

	other := filepath.Join(dir, "other.so")
	require.NoError(t, os.Symlink(library, other))
	assert.Contains(t, run(other), "(x_je_mallctl in "+library+")", "by another name")

	object := filepath.Join(dir, "mallctl.o")
	does(t, nil, "cc", "-c", "testdata/mallctl.c", "-o", object)
	for _, flags := range []string{object, "-static " + object} {
		path := goBuild(t, "-ldflags", `-linkmode external -extldflags "`+flags+`"`)
		assert.Contains(t, endsFile(t, path, "-size 8MiB libc"), "(x_je_mallctl in "+path+")", flags)
	}
}

// arrayProgram builds a program that calls functions that jemalloc lacks.
func arrayProgram(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "array")
	does(t, nil, "cc", "-std=c11", "-O1", "-fno-builtin", "testdata/array.c", "-o", path)
	return path
}

// TestOtherComesFirst: a malloc that is preloaded before the library takes precedence. The
// functions that it lacks serve its blocks.
func TestOtherComesFirst(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	others := otherMallocs()
	if len(others) == 0 {
		step.Lacks(t, "another malloc", "libjemalloc2")
	}
	dir := t.TempDir()
	library, program := filepath.Join(dir, "libupfront-malloc.so"), arrayProgram(t, dir)
	preloaded(t, library)
	for _, preload := range append(others, "") {
		for _, list := range []string{preload + " " + library, library + " " + preload} {
			assert.Equal(t, "array: 0\n", does(t, []string{"LD_PRELOAD=" + list}, program), list)
		}
	}
}

// TestClients runs the tests of the modules that put a library in C into a budget, with C's malloc
// in a heap.
func TestClients(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	for folder, tags := range map[string]string{"arena/with/sqlite": "libsqlite3", "arena/with/lua": "",
		"scope/with/wazero": ""} {
		dir, err := filepath.Abs("../../" + folder)
		require.NoError(t, err)
		added, overlay := filepath.Join(t.TempDir(), "begin_test.go"), filepath.Join(t.TempDir(), "overlay.json")
		const library = "github.com/upfront-mem/upfront/"
		text := fmt.Sprintf("package %s_test\n\nimport (\n\t%q\n\t_ %q\n)\n\nfunc init() {\n"+
			"\tif _, err := arena_c.ProcessHeapOf().Begin(arena_c.ProcessPlan{Size: 256 << 20}); err != nil "+
			"{\n\t\tpanic(err)\n\t}\n}\n",
			filepath.Base(folder), library+"arena_c", library+"arena/with/malloc")
		require.NoError(t, os.WriteFile(added, []byte(text), 0o600))
		list := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(dir, "begin_test.go"), added)
		require.NoError(t, os.WriteFile(overlay, []byte(list), 0o600))
		out := does(t, []string{"UPFRONT_STEP=check"}, "go", "test", "-C", dir, "-count=1", "-vet=off", "-tags="+tags,
			"-overlay="+overlay, ".")
		assert.Regexp(t, `^ok\s`, out)
	}
}
