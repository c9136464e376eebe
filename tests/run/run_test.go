package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

var update = flag.Bool("update", false, "write testdata/matrix.txt, and the table of cross/README.md")

// inRoot moves the test to the root of the repository.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
}

// TestMatrix compares the builds and packages of make check with a golden file, as each pair costs
// time.
func TestMatrix(t *testing.T) {
	golden, err := filepath.Abs("testdata/matrix.txt")
	require.NoError(t, err)
	inRoot(t)
	m, err := newMatrix()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(m.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), m.String(), "go test ./tests/run -run Matrix -update writes it anew")
}

// TestMatrixRule has a package for each reason, and one without a reason.
func TestMatrixRule(t *testing.T) {
	t.Chdir(t.TempDir())
	const none = "package p\n"
	for name, text := range map[string]string{
		"plain/p.go": none, "plain/p_test.go": none,
		"tagged/p_test.go": none, "tagged/only_checked.go": "//go:build checked\n\npackage p\n",
		"raced/p_test.go": none, "raced/p.go": "//go:build !race\n\npackage p\n",
		"named/p.go": "package p\n\nconst C = arena_c.Asan\n", "named/p_test.go": none,
		"starts/p_test.go": "package p\n\nfunc f() { go f() }\n",
		"locks/p.go":       "package p\n\nvar mu sync.Mutex\n", "locks/p_test.go": none,
		"untested/p.go": "package p\n\nconst C = arena_c.Race\n",
		"counts/p.go":   "package p\n\nconst C = arena_c.Race\n", "counts/p_test.go": none,
		"tests/p.go": "package p\n\nvar mu sync.Mutex\n", "tests/p_test.go": none,
		"tests/pond/p.go": none, "tests/pond/p_test.go": none,
		"nested/go.mod":   "module nested\n",
		"nested/p.go":     "package p\n\nconst C = arena_c.Race\n",
		"arena/a_test.go": "package a\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	m, err := newMatrix()
	require.NoError(t, err)
	assert.Equal(t, []string{"arena", "counts", "locks", "named", "plain", "raced", "starts", "tagged", "tests",
		"tests/pond"}, m.packages)
	assert.Equal(t, map[[2]string]string{
		{"checked", "tagged"}: "only_checked.go", {"race", "raced"}: "p.go", {"asan", "named"}: "arena_c.Asan",
		{"race", "starts"}: "go in p_test.go", {"race", "locks"}: "sync.Mutex in p.go",
		{"race", "tests/pond"}: "listed", {"bindings", "arena"}: "listed"}, m.why)
	assert.Equal(t, []string{"./locks", "./raced", "./starts", "./tests/pond"}, m.of("race"))
}

// TestParts: the parts of a step have different names, and make gate and make soak have a part for
// each build.
func TestParts(t *testing.T) {
	inRoot(t)
	for s := step.Test; s <= step.Soak; s++ {
		list, err := parts(s)
		require.NoError(t, err)
		names := map[string]bool{}
		for _, part := range list {
			assert.False(t, names[part.name], "%s has two parts %q", s, part.name)
			assert.NotEmpty(t, part.what)
			names[part.name] = true
		}
		for _, f := range flavours {
			assert.Equal(t, s != step.Test, names[f.name], "%s, %s", s, f.name)
		}
	}
	assert.ErrorContains(t, prove(step.Check, []string{"rase"}), `make check has no part "rase"`)
	assert.ErrorContains(t, run([]string{"chekc"}), `no command "chekc"`)
	assert.Error(t, run(nil))
}

const failed = `{"Action":"output","Package":"m/a","Test":"TestGood","Output":"it says nothing\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"    bad_test.go:7: 3 isn't 4\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
{"Action":"output","Package":"m/a","Test":"TestTool","Output":"    a_test.go:9: not proven here: strace is missing; Debian's package strace brings it\n"}
{"Action":"skip","Package":"m/a","Test":"TestTool"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.1s\n"}
{"Action":"fail","Package":"m/a"}
{"Action":"output","Package":"m/b","Output":"PASS\n"}
{"Action":"output","Package":"m/b","Output":"ok  \tm/b\t(cached)\n"}
{"Action":"pass","Package":"m/b"}
{"ImportPath":"m/c","Action":"build-output","Output":"c.go:1: undefined: x\n"}
{"ImportPath":"m/c","Action":"build-fail"}
`

// TestResults: the output of failed tests is shown, that of good ones isn't, and the missing tools
// of skipped tests are kept.
func TestResults(t *testing.T) {
	var shown, done, unproven []string
	r := results{
		show:     func(_ string, args ...any) { shown = append(shown, args[0].(string)) },
		done:     func(line string) { done = append(done, line) },
		unproven: func(text string) { unproven = append(unproven, text) },
		said:     map[[2]string]*strings.Builder{},
	}
	require.NoError(t, r.read(strings.NewReader(failed)))
	assert.Equal(t, []string{"    bad_test.go:7: 3 isn't 4", "FAIL\tm/a\t0.1s", "c.go:1: undefined: x"}, shown)
	assert.Equal(t, []string{"ok  \tm/b\t(cached)"}, done)
	assert.Equal(t, []string{"TestTool of m/a: strace is missing; Debian's package strace brings it"}, unproven)
	assert.ErrorContains(t, r.read(strings.NewReader("FAIL")), "go test -json")
}

// TestProver: a part that fails is named, its command's output is shown, and the step ends.
func TestProver(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	p := newProver(&out, step.Check)
	p.requireAll = false
	ran := ""
	sh := func(script string) func(p *prover) error {
		return func(p *prover) error {
			ran += script + ";"
			return p.do(command{args: []string{"sh", "-c", script}}.with("WORD=frog"))
		}
	}
	require.NoError(t, p.prove([]part{{"good", "", sh("echo fine")}, {"also", "", sh("[ $WORD = frog ]")}}))
	assert.Regexp(t, `^good       ok    .* s of CPU\nalso       ok .*\nmake check passed in 0 s\n$`, out.String())

	out.Reset()
	err := p.prove([]part{{"bad", "", sh("echo why; exit 3")}, {"never", "", sh("echo never")}})
	assert.ErrorContains(t, err, "bad: WORD=frog sh -c echo why; exit 3: exit status 3; all output is in "+
		"build/run/bad.log")
	assert.Contains(t, out.String(), "why\nbad        FAILED")
	assert.NotContains(t, ran, "never")
	log, err := os.ReadFile("build/run/bad.log")
	require.NoError(t, err)
	assert.Equal(t, "$ WORD=frog sh -c echo why; exit 3\nwhy\n", string(log))
}

// TestNarrowParts: narrow parts run at once, each with its own log. If one fails, the step ends
// after the others.
func TestNarrowParts(t *testing.T) {
	t.Chdir(t.TempDir())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var out bytes.Buffer
	p := newProver(&out, step.Check)
	there, here := make(chan bool), make(chan bool)
	err := p.prove([]part{
		{"modules", "", func(p *prover) error {
			there <- <-here
			return p.do(command{args: []string{"sh", "-c", "echo wrong; exit 3"}})
		}},
		{"counts", "", func(p *prover) error {
			here <- true
			<-there
			return p.do(command{args: []string{"echo", "right"}})
		}},
		{"test", "", func(*prover) error { panic("a part before it failed") }},
	})
	assert.ErrorContains(t, err, "modules: sh -c echo wrong; exit 3: exit status 3")
	assert.Regexp(t, `(?m)^modules    FAILED`, out.String())
	assert.Regexp(t, `(?m)^counts     ok`, out.String())
	assert.Equal(t, "$ echo right\nright\n", read(t, "build/run/counts.log"))
}

// TestVet: a package with C is vetted also if the build cache holds it from a folder that is gone.
// A Go pointer that it passes to C is found.
func TestVet(t *testing.T) {
	t.Setenv("GOFLAGS", compiling())
	p := newProver(io.Discard, step.Check)
	once := t.TempDir() // in the source, so that no cache has the package
	module := func(call string) (dir string) {
		dir = t.TempDir()
		require.NoError(t, os.WriteFile(dir+"/go.mod", []byte("module m\n\ngo 1.26\n"), 0o644))
		text := "package m\n\n// static void f(void *p) {} // " + once + "\nimport \"C\"\n" +
			"import \"unsafe\"\n\nfunc F(p unsafe.Pointer, c chan int) { C.f(" + call + ") }\n"
		require.NoError(t, os.WriteFile(dir+"/m.go", []byte(text), 0o644))
		t.Chdir(dir)
		return dir
	}
	gone := module("p")
	require.NoError(t, p.do(goCommand(".", "build", ".")))
	module("p")
	require.NoError(t, os.RemoveAll(gone))
	assert.NoError(t, p.vet(".", "-tags="))
	module("unsafe.Pointer(&c)")
	assert.ErrorContains(t, p.vet(".", "-tags="), "go vet")
}

// TestUnproven: a missing tool is named at the end, once, and fails the step with REQUIRE_ALL.
func TestUnproven(t *testing.T) {
	t.Chdir(t.TempDir())
	lacks := []part{{"counts", "", func(p *prover) error {
		p.lacks("counts", "valgrind", "valgrind")
		return p.do(command{args: []string{"echo",
			step.Unproven + "counts: valgrind is missing; Debian's package valgrind brings it"}})
	}}}
	for _, all := range []bool{false, true} {
		var out bytes.Buffer
		p := newProver(&out, step.Check)
		p.requireAll = all
		err := p.prove(lacks)
		assert.Equal(t, all, err != nil)
		assert.Equal(t, 1, strings.Count(out.String(), "not proven here: counts: valgrind is missing; Debian's "+
			"package valgrind brings it\n"))
	}
}

// TestSpeaks: a silent part makes a line each interval, and a part that prints doesn't.
func TestSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProver(&out, step.Test)
		stop := p.speak("race")
		p.does("go test")
		time.Sleep(interval + time.Second)
		synctest.Wait()
		p.say("ok m/a")
		time.Sleep(interval)
		synctest.Wait()
		time.Sleep(interval)
		synctest.Wait()
		stop()
		assert.Equal(t, "... race, 15 s: go test\nok m/a\n... race, 45 s: go test\n", out.String())
	})
}

// TestMakefile: the targets fit one screen, and CI calls them.
func TestMakefile(t *testing.T) {
	inRoot(t)
	makefile := read(t, "Makefile")
	assert.LessOrEqual(t, strings.Count(makefile, "\n"), 150)
	helped := regexp.MustCompile(`(?m)^[a-z-]+:.*## .*$`).FindAllString(makefile, -1)
	assert.LessOrEqual(t, len(helped), 24, "make help fits a screen")
	for _, line := range helped {
		name, text, _ := strings.Cut(line, ":")
		_, text, _ = strings.Cut(text, "## ")
		assert.LessOrEqual(t, len("  make ")+11+1+len(text), 80, name)
	}
	steps := regexp.MustCompile(`(?m)^ *(?:- run: )?(make .*)$`)
	var here, there []string
	for _, found := range steps.FindAllStringSubmatch(read(t, ".ci/run"), -1) {
		here = append(here, found[1])
	}
	for _, found := range steps.FindAllStringSubmatch(read(t, ".github/workflows/ci.yml"), -1) {
		there = append(there, found[1])
	}
	for _, file := range []string{"ci.yml", "others.yml"} {
		for _, used := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(read(t, ".github/workflows/"+file),
			-1) {
			assert.Regexp(t, `@[0-9a-f]{40} # v\d`, used[1], "a commit, which can't move as a tag can")
		}
	}
	assert.Equal(t, []string{"make deps", "make run", "make test", "make check"}, here)
	assert.Equal(t, append(here, "make deps", "make deps-wine", "make gate"), there)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
