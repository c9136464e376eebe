package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// builds are the ways to build the programs. The last is release with Go's own check of stores.
var builds = []build{
	{name: "release"},
	{name: "race", flags: []string{"-race"}},
	{name: "asan", flags: []string{"-asan"}},
	{name: "checked", flags: []string{"-tags", "checked"}},
	{name: "cgocheck2", env: "GOEXPERIMENT=cgocheck2"},
}

type build struct {
	name  string
	flags []string
	env   string
}

// TestMisuse runs every program in every build and compares its end with the table. It also runs
// the program without the wrong step, which no build may catch.
func TestMisuse(t *testing.T) {
	if arena_c.Crossing || arena_c.Race {
		t.Skip("the programs are the same in each build: UPFRONT_STEP=check go test ./tests/misuse runs it")
	}
	step.Needs(t, step.Check)
	dir := t.TempDir()
	for _, b := range builds {
		binary := filepath.Join(dir, b.name)
		t.Run(b.name, func(t *testing.T) {
			if b.env != "" { // Go's library is compiled again
				step.Needs(t, step.Gate)
			}
			compile(t, b, binary)
			for _, l := range lines() {
				a, caught := l.answer(b.name)
				if b.name == "cgocheck2" && !caught {
					continue
				}
				for _, p := range l.programs {
					if p.only != "" && p.only != b.name {
						continue
					}
					t.Run(p.name, func(t *testing.T) {
						t.Parallel()
						p.compare(t, binary, a, caught)
					})
				}
			}
		})
	}
}

func compile(t *testing.T, b build, binary string) {
	cmd := exec.Command("go", append(append([]string{"build", "-o", binary}, b.flags...), ".")...)
	cmd.Env = append(os.Environ(), b.env)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", b.name, out)
}

func (p program) compare(t *testing.T, binary string, a answer, caught bool) {
	// A check of all builds needs one control.
	if a.builds != every || filepath.Base(binary) == builds[0].name {
		finished(t, binary, "-right", p.name).expect(t, goneOn, p.right, "done")
	}
	wrong := finished(t, binary, p.name)
	switch {
	case !caught:
		wrong.expect(t, goneOn, p.goesOn, "done")
	case a.status == goneOn:
		wrong.expect(t, goneOn, a.says, "done")
	default:
		wrong.expect(t, cmp.Or(p.status, a.status), a.says, p.says)
	}
	if p.right != "" && filepath.Base(binary) == builds[0].name {
		assert.False(t, says(wrong.out, p.right), "done right and done wrong it says the same: %s", wrong.out)
	}
}

type process struct {
	command string
	out     string
	status  int
}

// finished returns the process after its end.
func finished(t *testing.T, binary string, args ...string) process {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0",
		"GOTRACEBACK=single")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return process{filepath.Base(binary) + " " + strings.Join(args, " "), string(out), cmd.ProcessState.ExitCode()}
}

// expect fails with the build, the program, the expected output and the output.
func (p process) expect(t *testing.T, status int, texts ...string) {
	for _, text := range texts {
		ended := p.status == status
		if !ended || !says(p.out, text) {
			t.Errorf("%s\nexpected: status %d, %q\ngot:      status %d,\n%s", p.command, status, text, p.status, p.out)
			return
		}
	}
}

// says reports whether out has the parts of one of the texts, divided by "…", in this order.
func says(out, texts string) bool {
	for text := range strings.SplitSeq(texts, " / ") {
		if inOrder(out, strings.Split(text, "…")) {
			return true
		}
	}
	return false
}

func inOrder(out string, parts []string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(out, strings.TrimSpace(part))
		if !found {
			return false
		}
		out = after
	}
	return true
}

func TestNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range lines() {
		for _, p := range l.programs {
			assert.False(t, seen[p.name], p.name)
			seen[p.name] = true
		}
		for _, a := range l.answers {
			for name := range strings.SplitSeq(a.builds, ", ") {
				known := name == every
				for _, b := range builds {
					known = known || b.name == name
				}
				assert.True(t, known, name)
			}
		}
	}
}

// TestVet compares the programs in which upfront-vet reports the misuse with the table. The comment
// that silences the reports is left out.
func TestVet(t *testing.T) {
	if arena_c.Crossing || arena_c.Race {
		t.Skip("the source is the same in each build: UPFRONT_STEP=check go test ./tests/misuse runs it")
	}
	step.Needs(t, step.Check)
	dir := t.TempDir()
	vet := filepath.Join(dir, "upfront-vet")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", vet, "./upfront-vet")
	build.Dir = "../../budget/cmd"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	fset := token.NewFileSet()
	replace := make(map[string]string)
	var all []found
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		from, err := filepath.Abs(name)
		require.NoError(t, err)
		replace[from] = filepath.Join(dir, name)
		loud := strings.Replace(string(text), "//upfront:keeps", "//", 1)
		require.NoError(t, os.WriteFile(replace[from], []byte(loud), 0o600))
		all = append(all, programsOf(t, fset, name, loud)...)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	out, _ = exec.Command("go", "vet", "-overlay", list, "-vettool", vet, ".").CombinedOutput()

	seen := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)(\w+\.go):(\d+):\d+: (.*)`).FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		for _, p := range all {
			if says := vetted[p.name]; p.file == m[1] && p.begin <= n && n <= p.end && says != "" &&
				strings.Contains(m[3], says) {
				seen[p.name] = says
			}
		}
	}
	assert.Equal(t, vetted, seen, "%s", out)
}

// found is the place of a program in the source.
type found struct {
	name, file string
	begin, end int
}

func programsOf(t *testing.T, fset *token.FileSet, name, text string) (list []found) {
	file, err := parser.ParseFile(fset, name, text, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		lit, _ := n.(*ast.CompositeLit)
		if lit == nil {
			return true
		}
		for _, e := range lit.Elts {
			kv, _ := e.(*ast.KeyValueExpr)
			if kv == nil {
				continue
			}
			key, _ := kv.Key.(*ast.Ident)
			if value, _ := kv.Value.(*ast.BasicLit); key != nil && key.Name == "name" && value != nil {
				unquoted, err := strconv.Unquote(value.Value)
				require.NoError(t, err)
				list = append(list, found{unquoted, name, fset.Position(lit.Pos()).Line, fset.Position(lit.End()).Line})
			}
		}
		return true
	})
	return list
}

var update = flag.Bool("update", false, "write README.md's tables anew")

// TestReadme compares the tables on the page, each between two marks.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	page := string(text)
	for begin, table := range map[string]string{"<!-- make readme: short -->\n": shortTable(),
		"<!-- make readme -->\n": table()} {
		const end = "<!-- end -->\n"
		head, rest, found := strings.Cut(page, begin)
		require.True(t, found, begin)
		_, tail, found := strings.Cut(rest, end)
		require.True(t, found, begin)
		page = head + begin + table + end + tail
	}
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(page), 0o644))
		return
	}
	assert.Equal(t, page, string(text), "make readme writes it anew")
}
