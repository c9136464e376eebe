//go:build linux && !race && !asan && !checked && !upfront_cgo

package guide_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget"
)

const root = "../.."

// block is a block of texts, with its mark.
var block = regexp.MustCompile("(?ms)^<!-- (.*?) -->\n```text\n.*?```\n")

// TestGoldenMessages compares each text of the page with the one that the library produces. The
// marks of the page are those of the messages, in this order.
func TestGoldenMessages(t *testing.T) {
	page := read(t, "messages.md")
	var marks []string
	blocks := map[string]string{}
	for _, m := range slices.Concat(full, ofC(t), opens, plans, lives, misuses, files, ofTool(t), ofVet(t)) {
		if blocks[m.mark] == "" {
			marks = append(marks, m.mark)
		}
		blocks[m.mark] += masked(m.text()) + "\n"
	}
	var found []string
	is := block.ReplaceAllStringFunc(page, func(old string) string {
		mark := block.FindStringSubmatch(old)[1]
		found = append(found, mark)
		return "<!-- " + mark + " -->\n```text\n" + blocks[mark] + "```\n"
	})
	require.Equal(t, marks, found)
	golden(t, "messages.md", is)
}

// varying are the parts of a text that the machine or the moment decides.
var varying = []struct {
	part *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`needs \d+KiB \((.*), \d+ more threads? \d+KiB\)`), "needs …KiB ($1, … more threads …KiB)"},
	{regexp.MustCompile(`leaves \d+KiB of`), "leaves …KiB of"},
	{regexp.MustCompile(`of the \d+KiB that are free (.*) takes \d+KiB \((.*), \d+ more threads? \d+KiB\)`),
		"of the …KiB that are free $1 takes …KiB ($2, … more threads …KiB)"},
	{regexp.MustCompile(`waited \S+(,| for)`), "waited …$1"},
	{regexp.MustCompile(`stack takes \d+KiB`), "stack takes …KiB"},
	{regexp.MustCompile(`guide_test\.`), "main."},
}

func masked(text string) string {
	for _, v := range varying {
		text = v.part.ReplaceAllString(text, v.with)
	}
	return text
}

// recorded returns messages of a file that another test compares with its program: on each line a
// name and, after a tab, a text.
func recorded(t *testing.T, mark, file string, names ...string) (list []message) {
	t.Helper()
	for line := range strings.Lines(read(t, filepath.Join(root, file))) {
		name, text, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, found, line)
		if slices.Contains(names, name) {
			list = append(list, message{mark, func() string { return text }})
		}
	}
	require.Len(t, list, len(names))
	return list
}

func ofC(t *testing.T) []message {
	const file = "tests/malloc/testdata/lines.txt"
	return append(recorded(t, "malloc", file, "full", "runtime"), recorded(t, "free", file, "bug")...)
}

func ofVet(t *testing.T) []message {
	return recorded(t, "vet", "budget/cmd/upfront-vet/lifetime/testdata/messages.txt", "escape", "unclosed")
}

// ofTool returns messages of the tool, each a part of the output that its tests record.
func ofTool(t *testing.T) (list []message) {
	for _, m := range []struct{ mark, file, command, from, to string }{
		{"check", "check", "check DATA/branch.json --against DATA/main.json --max-growth 3%", "6 metrics", "\nIf that"},
		{"tool", "report", "plan draw DATA/main.json", "DATA", "\n"},
	} {
		text := read(t, filepath.Join(root, "budget/cmd/upfront/testdata", m.file+".txt"))
		_, text, found := strings.Cut(text, "$ upfront "+m.command+"\n")
		require.True(t, found, m.mark)
		at := strings.Index(text, m.from)
		require.GreaterOrEqual(t, at, 0, m.mark)
		text, _, found = strings.Cut(text[at:], m.to)
		require.True(t, found, m.mark)
		list = append(list, message{m.mark, func() string { return strings.ReplaceAll(text, "DATA/", "") }})
	}
	return list
}

// limited names the limit under which a child opens a budget.
const limited = "UPFRONT_GUIDE_LIMITED"

// underLimit returns the error of Open in a process with a limit.
func underLimit(name string) string {
	child := exec.Command(os.Args[0], "-test.run=^TestUnderALimit$")
	child.Env = append(os.Environ(), limited+"="+name)
	return strings.TrimSpace(string(must(child.Output())))
}

// TestUnderALimit is the child: it prints the error.
func TestUnderALimit(t *testing.T) {
	set := func(resource int, limit uint64) {
		must(0, unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}))
	}
	plan := pond()
	switch os.Getenv(limited) {
	case "":
		t.Skip("TestGoldenMessages runs it")
	case "data":
		plan.Regions[1].Size = 512 * budget.MiB
		set(unix.RLIMIT_DATA, 256*budget.MiB)
	case "rest":
		plan.GoHeap = budget.Rest
		plan.Regions[1].Size = 512 * budget.MiB
		set(unix.RLIMIT_DATA, 256*budget.MiB)
	case "lock":
		runtime.LockOSThread() // a right belongs to a thread
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		must(0, unix.Capset(&header, &none[0]))
		set(unix.RLIMIT_MEMLOCK, 0)
		plan.Pages.Lock = budget.Required
	}
	_, err := budget.Open(plan)
	fmt.Println(of(err))
	os.Exit(0) // without the line of package testing
}

// TestEachErrorIsNamed: the page names each exported error of the module, by the list of its
// exported names.
func TestEachErrorIsNamed(t *testing.T) {
	page, api := read(t, "messages.md"), read(t, filepath.Join(root, "tests/testdata/api.txt"))
	errs := regexp.MustCompile(`(?m)^(\S+): (?:var (Err\w+)|func \(\*?(\w+)\) Error\(\) string)$`)
	found := errs.FindAllStringSubmatch(api, -1)
	require.Greater(t, len(found), 15)
	for _, one := range found {
		if strings.Contains(one[1], "internal") {
			continue
		}
		from := strings.TrimSuffix(one[1], "/stack") // scope has aliases
		name := filepath.Base(from) + "." + one[2] + one[3]
		assert.Contains(t, page, "`"+name+"`")
	}
}

// packages are those whose errors a program gets.
var packages = []string{"arena", "arena/with/malloc", "budget", "budget/record", "budget/save", "budget/with/agones",
	"platform", "scope", "scope/cache", "scope/stack", "scope/container", "scope/flow"}

// TestGoldenUnlisted: an error whose format no text of the page has is in testdata/unlisted.txt, so
// a new error is on the page or, by intent, in that list. The list leaves out errors with BUG, for
// which tests/misuse has a table, and formats that only continue another.
func TestGoldenUnlisted(t *testing.T) {
	page := read(t, "messages.md")
	var shown []string
	for _, block := range strings.Split(page, "```text\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		shown = append(shown, text)
	}
	assert.True(t, slices.ContainsFunc(shown, matches("budget %q: pages.%s is required: %w")))
	assert.False(t, slices.ContainsFunc(shown, matches("budget %q: pages.%s is refused: %w")), "the control")
	var list []string
	count := 0
	for _, name := range packages {
		for _, format := range append(formats(t, name), linesOfC(t, name)...) {
			if strings.Contains(format, "BUG") || !begins.MatchString(format) {
				continue
			}
			if count++; !slices.ContainsFunc(shown, matches(format)) {
				list = append(list, name+"\t"+strconv.Quote(format))
			}
		}
	}
	assert.Greater(t, count, len(list)+20, "some are on the page")
	slices.Sort(list)
	golden(t, "testdata/unlisted.txt", strings.Join(slices.Compact(list), "\n")+"\n")
}

// begins matches the format of a whole error.
var begins = regexp.MustCompile(`^(%w: |%sa |budget|plan|pages|go_heap|c_heap|the plan|scope|container|cache|arena|save|record|flow|platform|agones|upfront)`)

// verb is a verb of package fmt.
var verb = regexp.MustCompile(`%[+#]?(\[\d\])?[a-z%]`)

func matches(format string) func(text string) bool {
	parts := verb.Split(format, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)" + strings.Join(parts, ".*")).MatchString
}

// formats returns the formats of a package's errors.
func formats(t *testing.T, name string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, name)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if version.Compare(file.GoVersion, runtime.Version()) <= 0 { // not of a later Go
			require.NoError(t, err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			switch fn, _ := call.Fun.(*ast.SelectorExpr); {
			case fn == nil:
			case fn.Sel.Name == "Errorf" || fn.Sel.Name == "New" && fmt.Sprint(fn.X) == "errors":
				if format, ok := literal(call.Args[0]); ok {
					list = append(list, format)
				}
			}
			return true
		})
	}
	return list
}

// linesOfC returns the beginnings of the lines that the C code of a package prints.
func linesOfC(t *testing.T, name string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, name, "*.c"))
	require.NoError(t, err)
	for _, path := range paths {
		for _, line := range regexp.MustCompile(`"(upfront: [^"\\]+)"`).FindAllStringSubmatch(read(t, path), -1) {
			list = append(list, line[1])
		}
	}
	return list
}

// literal returns the text of a literal, or of a sum of literals.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, first := literal(e.X)
		b, second := literal(e.Y)
		return a + b, first && second
	}
	return "", false
}

// TestFullTexts: the page has each part of the text of a FullError, except those of notShown.
func TestFullTexts(t *testing.T) {
	page := read(t, "messages.md")
	text := read(t, filepath.Join(root, "scope/stack/full.go"))
	_, text, found := strings.Cut(text, "func (e *FullError) Error() string {")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n}\n")
	count := 0
	for _, quoted := range regexp.MustCompile(`"(?:\\.|[^"\\])*"`).FindAllString(text, -1) {
		said, err := strconv.Unquote(quoted)
		require.NoError(t, err)
		if len(said) < 12 || slices.Contains(notShown, said) {
			continue
		}
		count++
		assert.True(t, matches(said)(page), said)
	}
	assert.Greater(t, count, 10)
}

var notShown = []string{" refused on purpose (budgettest.FailEach): ", "asked for one more of %d %s",
	" at a multiple of %d", ", but not from such an address", "; no plan has as much",
	" isn't in the plan, which has %d %s", "a StringMap has %d of %d keys; make it with an n of %d or more"}

// TestEachLimitIsNamed: the page has the name of each limit that may refuse a plan, and the prefix
// of each bug.
func TestEachLimitIsNamed(t *testing.T) {
	page := strings.Join(strings.Fields(read(t, "messages.md")), " ")
	limits := regexp.MustCompile(`(?s)// Name is (.*?)\.\n`).FindString(read(t,
		filepath.Join(root, "platform/limits.go")))
	names := regexp.MustCompile(`"[^"]+"`).FindAllString(strings.ReplaceAll(limits, "\n\t// ", " "), -1)
	require.Len(t, names, 9)
	for _, name := range names {
		assert.Contains(t, page, strings.Trim(name, `"`))
	}
	for _, name := range append(packages, "arena_c") {
		paths, err := filepath.Glob(filepath.Join(root, name, "*.[cg]*"))
		require.NoError(t, err)
		for _, path := range paths {
			for _, prefix := range regexp.MustCompile(`"([a-z]+: BUG: )`).FindAllStringSubmatch(read(t, path), -1) {
				assert.Contains(t, page, "`"+strings.TrimSpace(prefix[1])+"`", path)
			}
		}
	}
}
