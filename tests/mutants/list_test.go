package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMutants: each old text stands once in its file, and each killer is a test function.
func TestMutants(t *testing.T) {
	const root = "../.."
	all, err := readAll(root)
	require.NoError(t, err)
	functions := map[string]string{} // of a package's test files
	for _, m := range all {
		files, err := m.apply(root)
		if !assert.NoError(t, err) {
			continue
		}
		k := m.killer
		for file := range files {
			assert.True(t, k.folder != "" || filepath.Dir(file) == "arena_c",
				"%s: %s: a test of tests/c kills mutants of arena_c alone", m.at, m.name)
		}
		if k.folder != "" && functions[k.folder] == "" {
			functions[k.folder] = testFiles(t, filepath.Join(root, k.folder))
		}
		for _, test := range k.tests {
			if k.folder == "" {
				_, err = fileOfC(root, test)
				assert.NoError(t, err, "%s: %s", m.at, m.name)
				continue
			}
			found := regexp.MustCompile(`(?m)^func ` + test + `\(`).MatchString(functions[k.folder])
			assert.True(t, found, "%s: %s: %s has no %s", m.at, m.name, k.folder, test)
		}
	}
}

// testFiles returns the text of a package's test files.
func testFiles(t *testing.T, folder string) string {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

const section = `what stands here is for people
=== plus
fault: abc: it was
fault: a minus
test: sum TestSum TestMore
flags: -tags checked
step: check
hangs: 2s
--- old sum/sum.go
	return a + b

--- new
	return a - b

--- old sum/sum.go
// Sum
--- new

`

func TestParse(t *testing.T) {
	all, err := parse("a.txt", []byte(section))
	require.NoError(t, err)
	require.Len(t, all, 1)
	m := all[0]
	assert.Equal(t, "abc: it was a minus", m.fault)
	assert.Equal(t, []place{{"sum/sum.go", "\treturn a + b\n", "\treturn a - b\n"}, {"sum/sum.go", "// Sum\n", ""}},
		m.places)
	assert.Equal(t, "UPFRONT_STEP=check go test sum -tags checked -run '^(TestSum|TestMore)$'", m.killer.String())
	assert.Equal(t, "2s", m.killer.hangs.String())
}

// TestParseRefuses: an error names the line and the key.
func TestParseRefuses(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"=== plus", "=== Plus", "a.txt:2: name \"Plus\": want small letters, digits and -"},
		{"fault: abc: it was\nfault: a minus\n", "", "a.txt:2: plus: no fault"},
		{"test: sum TestSum TestMore\n", "", "a.txt:2: plus: no test, and no c"},
		{"TestSum", "Sum", "a.txt:5: test: \"Sum\" isn't a test function"},
		{"sum TestSum TestMore", "sum", "a.txt:5: test: no test function"},
		{"step: check", "step: night", "a.txt:7: step: \"night\": want check or soak"},
		{"hangs: 2s", "hangs: 2", "a.txt:8: hangs: time: missing unit"},
		{"hangs: 2s", "hangs: 2ms", "a.txt:8: hangs: 2ms: want a second at least"},
		{"hangs: 2s", "limit: 2s", "a.txt:8: limit: want fault, test, c, flags"},
		{"step: check", "flags: -race", "a.txt:7: flags: a second one"},
		{"step: check", "step:", "a.txt:7: step:: no value"},
		{"step: check", "c: test_x", "a.txt:7: c: a test, and c"},
		{"--- old sum/sum.go\n// Sum\n--- new\n", "--- new\n", "a.txt:15: --- new: no --- old before it"},
		{"--- new\n\treturn", "--- old x\n\treturn", "a.txt:12: --- old: the one before it has no --- new"},
		{"--- new\n\treturn", "--- now\n\treturn", `a.txt:12: "--- now": want --- old FILE, or --- new`},
		{"\n// Sum\n", "\n\n", "a.txt:2: plus: an old text is empty"},
		{"a - b", "a + b", "a.txt:2: plus: old and new are the same"},
		{section[strings.Index(section, "--- old"):], "", "a.txt:2: plus: no --- old, or one without its --- new"},
	} {
		require.Contains(t, section, row.from)
		_, err := parse("a.txt", []byte(strings.Replace(section, row.from, row.to, 1)))
		assert.ErrorContains(t, err, row.want)
	}
}

// TestApply: an old text is of whole lines, and stands once.
func TestApply(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("one\n\ttwo\ntwo\nthree\nthree\n"), 0o644))
	apply := func(old string) (string, error) {
		m := &mutant{name: "m", at: "a.txt:1", places: []place{{"a.go", old, "new\n"}}}
		files, err := m.apply(root)
		return files["a.go"], err
	}
	text, err := apply("two\n")
	require.NoError(t, err)
	assert.Equal(t, "one\n\ttwo\nnew\nthree\nthree\n", text)
	text, err = apply("one\n")
	require.NoError(t, err)
	assert.Equal(t, "new\n\ttwo\ntwo\nthree\nthree\n", text)
	_, err = apply("three\n")
	assert.ErrorContains(t, err, "a.txt:1: m: its old text stands 2 times in a.go, instead of once")
	_, err = apply("four\n")
	assert.ErrorContains(t, err, "stands 0 times")
}
