package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// changes returns the faults of a text: each with its description and the lines that change.
func changes(text string, faults []fault) (all []string) {
	s := &source{text: text}
	old := strings.Split(text, "\n")
	for _, f := range faults {
		changed := strings.Split(s.with(f), "\n")
		from, behind := 0, 0
		for changed[from] == old[from] {
			from++
		}
		for behind < len(changed)-from && changed[len(changed)-1-behind] == old[len(old)-1-behind] {
			behind++
		}
		lines := strings.Join(strings.Fields(strings.Join(changed[from:len(changed)-behind], " ")), " ")
		all = append(all, strings.TrimSpace(f.is+": "+lines))
	}
	return all
}

const goText = `package sum

// Sum is 1 < 2.
func Sum(a, b int) (int, error) {
	if a < b && b != 7 {
		a += b
	} else {
		defer print("1 < 2")
	}
	switch {
	case a >= 0x10:
		a--
		print(a)
	}
	c := a
	return c, nil
}

func (s *sum) String() string { return s.of(1) }

func one() *int { return new(int) }
`

// TestFaultsOfGo: each kind, and none in comments, texts and String.
func TestFaultsOfGo(t *testing.T) {
	faults, err := faultsOfGo(goText)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"a function returns early: return *new(int), *new(error)",
		"a condition is negated: if !(a < b && b != 7) {",
		"an else is dropped:",
		"< becomes <=: if a <= b && b != 7 {",
		"&& becomes ||: if a < b || b != 7 {",
		"a number is one more: if a < b && b != 8 {",
		"an assignment is dropped:",
		"a defer is dropped:",
		"a condition is negated: case !(a >= 0x10):",
		">= becomes >: case a > 0x10:",
		"a number is one more: case a >= 17:",
		"a count is dropped:",
		"a call is dropped:",
		"a function returns early: func one() *int { return *new(*int) return new(int) }",
	}, changes(goText, faults))
}

const cText = `#define MOST 5 /* 1 < 2 */
static inline int sum(int a, int b) { return a << b; }

void add(sum *s,
         int a) {
    // 1 < 2
    if (a > 0 || s->a <= a) {
        s->a += a;
        s->b[a] = *s->c;
    } else {
        note("1 < 2", '<');
    }
    s->n++;
}
`

// TestFaultsOfC: each kind, and none in comments, strings and preprocessor lines.
func TestFaultsOfC(t *testing.T) {
	assert.ElementsMatch(t, []string{
		"a function returns early: static inline int sum(int a, int b) { return 0; return a << b; }",
		"a function returns early: return;",
		"a condition is negated: if (!(a > 0 || s->a <= a)) {",
		"> becomes >=: if (a >= 0 || s->a <= a) {",
		"<= becomes <: if (a > 0 || s->a < a) {",
		"|| becomes &&: if (a > 0 && s->a <= a) {",
		"a number is one more: if (a > 1 || s->a <= a) {",
		"an assignment is dropped: ;",
		"an assignment is dropped: ;",
		"an assignment is dropped: ;",
		"an else is dropped: }",
		"a call is dropped: ;",
	}, changes(cText, faultsOfC(cText)))
}

// TestRandom: a seed's faults are mutants, whose old texts stand once, of lines that are compiled.
func TestRandom(t *testing.T) {
	step.Needs(t, step.Check)
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sum\n\ngo 1.26\n",
		"sum/sum.go": "package sum\n\nimport \"fmt\"\n\nfunc a() {\n\tx := 1\n\tfmt.Println(x)\n}\n\nfunc b() " +
			"{\n\tx := 1\n\tfmt.Println(x)\n}\n",
		"sum/windows.go":  "//go:build windows\n\npackage sum\n\nfunc c() int { return 1 }\n",
		"sum/sum_test.go": "package sum\n\nconst one = 1\n",
		"core/sum.c": "#include \"sum.h\"\n\nint sum(int a) {\n#ifdef _WIN32\n    a = 1;\n#endif\n    return " +
			"a + one();\n}\n",
		"core/sum.h":       "static inline int one(void) { return 1; }\n",
		"core/unused.h":    "static inline int two(void) { return 2; }\n",
		"core/texts/x.txt": "",
		"tests/sum.go":     "package tests\n\nfunc d() int { return 1 }\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	choose := func(match string, n int, seed uint64) (string, error) {
		var out strings.Builder
		err := random(&out, root, match, "", n, seed)
		return out.String(), err
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		text, err := choose("", 3, seed)
		require.NoError(t, err)
		if seed == 0 {
			again, err := choose("", 3, seed)
			require.NoError(t, err)
			require.Equal(t, text, again)
		}
		all, err := parse("x.txt", []byte(text))
		require.NoError(t, err)
		require.Len(t, all, 3)
		for _, m := range all {
			files, err := m.apply(root)
			require.NoError(t, err)
			require.Len(t, files, 1)
			seen[m.places[0].file+": "+m.fault] = true
		}
	}
	assert.Equal(t, map[string]bool{
		"core/sum.c: core/sum: a function returns early.": true,
		"core/sum.h: core/sum: a function returns early.": true,
		"core/sum.h: core/sum: a number is one more.":     true, "sum/sum.go: sum/sum: a function returns early.": true,
		"sum/sum.go: sum/sum: a number is one more.": true,
	}, seen, "a dropped Println leaves x unused")

	_, err := choose("sum.h", 2, 1)
	assert.EqualError(t, err, "2 faults: want 1 to 1, the lines that can have one")
	_, err = choose("(", 2, 1)
	assert.Error(t, err)
}

// TestSince: a line has no fault if it stands as in the commit, even if its file was renamed.
func TestSince(t *testing.T) {
	step.Needs(t, step.Check)
	root := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = root
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	old := "package sum\n\n" + strings.Repeat("// A line.\n", 20) + "func a() int { return 1 }\n"
	git("init", "-q")
	write("go.mod", "module example.com/sum\n\ngo 1.26\n")
	write("sum/sum.go", old)
	git("add", "-A")
	git("commit", "-q", "-m", "a sum")
	git("mv", "sum/sum.go", "sum/of.go")
	write("sum/of.go", old+"\nfunc b() int {\n\treturn 2\n}\n\nfunc c() int {\n\treturn 3\n}\n")
	git("add", "-A")

	var out strings.Builder
	require.NoError(t, random(&out, root, "", "HEAD", 4, 1))
	assert.Contains(t, out.String(), "one fault in each 1 lines of 4")
	assert.NotContains(t, out.String(), "func a()")
	assert.Error(t, random(&out, root, "", "HEAD", 5, 1))
	assert.ErrorContains(t, random(&out, root, "", "no-such", 1, 1), "git diff no-such: ")
}
