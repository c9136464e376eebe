package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// tree is a module with a package and its tests.
var tree = map[string]string{
	"go.mod":           "module example.com/sum\n\ngo 1.26\n",
	"sum/sum.go":       "package sum\n\n// Sum adds.\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n",
	"sum/main/main.go": "package main\n\nimport \"example.com/sum/sum\"\n\nfunc main() { println(sum.Sum(2, 3)) }\n",
	"sum/sum_test.go": `package sum

import (
	"os"
	"os/exec"
	"testing"
)

func TestSum(t *testing.T) {
	if Sum(2, 3) != 5 {
		t.Error("it doesn't add")
	}
}

func TestZero(t *testing.T) {
	if Sum(0, 0) != 0 {
		t.Error("it isn't 0")
	}
}

func TestRed(t *testing.T) { t.Error("it always fails") }

func TestProgram(t *testing.T) {
	if output, err := exec.Command("go", "run", "./main").CombinedOutput(); string(output) != "5\n" {
		t.Error(string(output), err)
	}
}

func TestLong(t *testing.T) {
	if os.Getenv("UPFRONT_STEP") != "check" {
		t.Skip("make check runs it")
	}
	TestSum(t)
}
`,
}

// lines has, by the name of a mutant, its new line, its keys, and the expected output.
var lines = map[string]struct{ keys, line, want string }{
	"minus":     {"test: sum TestSum", "\treturn a - b", "killed by TestSum, "},
	"program":   {"test: sum TestProgram", "\treturn a - b", "killed by TestProgram, "},
	"crash":     {"test: sum TestSum", "\tpanic(a + b)", "killed by TestSum, "},
	"long":      {"test: sum TestLong\nstep: check", "\treturn a - b", "killed by TestLong, "},
	"hangs":     {"test: sum TestSum\nhangs: 1s", "\tselect {}", "killed by TestSum, which hangs, "},
	"survivor":  {"test: sum TestZero", "\treturn a - b", "SURVIVED go test sum -run '^(TestZero)$', "},
	"no-go":     {"test: sum TestSum", "\treturn a - c", "ERROR, "},
	"red":       {"test: sum TestRed", "\treturn a - b", "ERROR, "},
	"skipped":   {"test: sum TestLong", "\treturn a - b", "ERROR, "},
	"nowhere":   {"test: sum TestNone", "\treturn a - b", "ERROR, "},
	"long-gone": {"test: sum TestSum\nflags: -tags none", "\treturn a - b", "killed by TestSum, "},
}

func plant(t *testing.T) (root string) {
	root = t.TempDir()
	files := map[string]string{}
	for name, text := range tree {
		files[name] = text
	}
	for name, m := range lines {
		files["tests/mutants/testdata/"+name+".txt"] = "=== " + name + "\nfault: none\n" + m.keys +
			"\n--- old sum/sum.go\n\treturn a + b\n--- new\n" + m.line + "\n"
	}
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return root
}

// TestRun: a mutant that is killed, one that survives, and one that proves nothing have a line
// each.
func TestRun(t *testing.T) {
	step.Needs(t, step.Check)
	root := plant(t)
	var out strings.Builder
	ok, err := mutants(&out, root, "", false, false)
	require.NoError(t, err)
	assert.False(t, ok)
	killed := 0
	for name, m := range lines {
		assert.Regexp(t, `(?m)^`+name+` +`+regexpQuoted(m.want), out.String())
		if strings.HasPrefix(m.want, "killed") {
			killed++
		}
	}
	for _, want := range []string{
		"undefined: c", "it doesn't compile", "it always fails",
		"go test sum -run '^(TestRed)$' fails without a mutant", "TestLong didn't run: it is skipped, or isn't there",
		"TestNone didn't run", "6 of 11 killed, "} {
		assert.Contains(t, out.String(), want)
	}
	require.Equal(t, 6, killed)

	out.Reset()
	ok, err = mutants(&out, root, "^(minus|crash)$", false, true)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Contains(t, out.String(), "2 of 2 killed, ")
	assert.Contains(t, out.String(), "it doesn't add", "with -v")

	text, err := os.ReadFile(filepath.Join(root, "sum/sum.go"))
	require.NoError(t, err)
	assert.Equal(t, tree["sum/sum.go"], string(text), "the tree is as it was")
}

func regexpQuoted(text string) string {
	return strings.NewReplacer("^", `\^`, "$", `\$`, "(", `\(`, ")", `\)`).Replace(text)
}

// TestList: nothing runs.
func TestList(t *testing.T) {
	root := plant(t)
	var out strings.Builder
	ok, err := mutants(&out, root, "mi", true, false)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "minus                                    go test sum -run '^(TestSum)$'\n", out.String())

	_, err = mutants(&out, root, "none such", false, false)
	assert.ErrorContains(t, err, `no mutant matches "none such"`)
	_, err = mutants(&out, root, "(", false, false)
	assert.Error(t, err)
	_, err = mutants(&out, t.TempDir(), "", false, false)
	assert.ErrorContains(t, err, "run it in the root of the repository")

	twin := filepath.Join(root, "tests/mutants/testdata/zwin.txt")
	text, err := os.ReadFile(filepath.Join(root, "tests/mutants/testdata/minus.txt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(twin, text, 0o644))
	_, err = mutants(&out, root, "", false, false)
	assert.ErrorContains(t, err, "zwin.txt:1: minus.txt:1 has the name minus, too")
}

// TestC: a mutant of the C core is killed by a test of tests/c.
func TestC(t *testing.T) {
	step.Needs(t, step.Check)
	root := t.TempDir()
	for name, text := range map[string]string{
		"arena_c/sum.c":   "#include \"sum.h\"\n\nint sum(int a, int b) {\n    return a + b;\n}\n",
		"arena_c/sum.h":   "int sum(int a, int b);\n",
		"tests/c/check.h": "#include <stdio.h>\n#include <stdlib.h>\n#include \"sum.h\"\nvoid test_sum(void);\n",
		"tests/c/sum.c": "#include \"check.h\"\n\nvoid test_sum(void) {\n    if (sum(2, 3) != 5)\n        " +
			"exit(1);\n}\n",
		"tests/mutants/testdata/c.txt": "=== minus\nfault: none\nc: test_sum\n--- old arena_c/sum.c\n    return a + " +
			"b;\n--- new\n    return a - b;\n\n=== twin\nfault: none\nc: test_sum\nflags: -O2\n--- old " +
			"arena_c/sum.c\n    return a + b;\n--- new\n    return b + a;\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	var out strings.Builder
	ok, err := mutants(&out, root, "", false, false)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Contains(t, out.String(), "killed by test_sum, ")
	assert.Contains(t, out.String(), "SURVIVED tests/c -O2 test_sum, ")
	assert.Contains(t, out.String(), "1 of 2 killed, ")
}
