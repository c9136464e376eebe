//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// page returns the text of a page, by its path from the root.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	require.NoError(t, err)
	return string(text)
}

// enclosed returns the text between two marks.
func enclosed(t *testing.T, text, from, to string) string {
	t.Helper()
	_, after, found := strings.Cut(text, from)
	require.True(t, found, from)
	text, _, found = strings.Cut(after, to)
	require.True(t, found, to)
	return text
}

// block returns the first block of a language on a page.
func block(t *testing.T, name, language string) string {
	t.Helper()
	return enclosed(t, page(t, name), "\n```"+language+"\n", "```\n")
}

// cells returns the rows of the table under a heading.
func cells(t *testing.T, text, heading string) (rows [][]string) {
	t.Helper()
	_, table, found := strings.Cut(text, "\n"+heading)
	require.True(t, found, heading)
	for _, line := range strings.Split(table, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

// program compiles a program in its own module, and returns the folder.
func program(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600))
	ownModule(t, dir)
	goCommand(t, dir, "vet", ".")
	return dir
}

// printed returns the output of the program in a folder, and its exit status.
func printed(t *testing.T, dir string, flags ...string) (text string, status int) {
	t.Helper()
	// The program prints the names of its files, so they aren't trimmed.
	goCommand(t, dir, slices.Concat([]string{"build", "-trimpath=false", "-o", "pond"}, flags, []string{"."})...)
	cmd := exec.Command(filepath.Join(dir, "pond"))
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// swims is the output of the README's program.
const swims = "1000 frogs swim\nthe pond dries up\n"

// TestReadmeProgram runs the README's program, and again with a million frogs, which don't fit.
func TestReadmeProgram(t *testing.T) {
	step.Needs(t, step.Check)
	text := block(t, "README.md", "go")
	out, status := printed(t, program(t, text))
	assert.Equal(t, 0, status)
	assert.Equal(t, swims, out)

	more := strings.Replace(text, "1000)", "1_000_000)", 1)
	require.NotEqual(t, text, more)
	out, status = printed(t, program(t, more))
	assert.Equal(t, 0, status)
	assert.Equal(t, block(t, "README.md", "text"), out)
}

const misuse = "tests/misuse/README.md"

// TestMisuseProgram runs the program of the page of misuse in a release and in a checked build.
func TestMisuseProgram(t *testing.T) {
	step.Needs(t, step.Check)
	dir := program(t, block(t, misuse, "go"))
	out, status := printed(t, dir)
	assert.Equal(t, 0, status)
	assert.Equal(t, block(t, misuse, "text"), out)

	out, status = printed(t, dir, "-tags", "checked")
	assert.Equal(t, 2, status)
	address := regexp.MustCompile(`0x[0-9a-f]+`)
	out = address.ReplaceAllString(strings.ReplaceAll(out, dir, "/pond"), "0x…")
	said := address.ReplaceAllString(block(t, misuse, "text")+block(t, misuse, "checked"), "0x…")
	assert.True(t, strings.HasPrefix(out, said), "expected: %s\ngot: %s", said, out)
}

// TestMisuseCommands runs the commands of that page on its program, and compares their output with
// the page. A command that shows nothing by the page must show nothing.
func TestMisuseCommands(t *testing.T) {
	step.Needs(t, step.Gate)
	dir := program(t, block(t, misuse, "go"))
	for _, row := range cells(t, page(t, misuse), "| command | shows |") {
		t.Run(row[0], func(t *testing.T) {
			cmd := exec.Command("sh", "-c", strings.Trim(row[0], "`"))
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			shown := strings.HasPrefix(row[1], "`")
			assert.Equal(t, shown, err != nil, "%s", out)
			if shown {
				inOrder(t, string(out), strings.Split(strings.Split(row[1], "`")[1], " … ")...)
			}
			named := strings.Contains(row[1], "main.go:35`")
			assert.Equal(t, named, strings.Contains(string(out), "main.go:35"), "%s", out)
		})
	}
	test := "package main\n\nimport \"testing\"\n\nfunc TestMain(*testing.M) { main() }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main_test.go"), []byte(test), 0o600))
	for flags, named := range map[string]bool{"-asan": false, "-asan -ldflags='-s=0 -w=0'": true} {
		cmd := exec.Command("sh", "-c", "go test "+flags+" .")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(out), "use-after-poison")
		assert.Equal(t, named, strings.Contains(string(out), "main.go:35"), "%s: %s", flags, out)
	}
}

// blocks has, for each page with blocks of Go, the test that runs each, in the page's order: a file
// and a function. Where no test runs a block, TestPageBlocks compiles it in a program, in place of
// BLOCK.
var blocks = map[string][]string{
	"README.md":                   {"tests/readme_test.go TestReadmeProgram"},
	"arena/with/lua/README.md":    {"arena/with/lua/page_test.go TestPage"},
	"arena/with/malloc/README.md": {"package main\n\nBLOCK\nfunc main() { _, _ = open() }\n"},
	"arena/with/sqlite/README.md": {"arena/with/sqlite/sqlite_test.go TestPage"},
	"budget/cmd/README.md":        {"budget/cmd/upfront-vet/main_test.go TestNewcomer", keeps},
	"budget/guide/concepts.md": {"budget/guide/page_test.go TestConceptsPage",
		"budget/guide/page_test.go TestConceptsPage"},
	"budget/guide/gomemlimit.md": {"tests/gomemlimit_test.go TestPlanOfAContainer"},
	"budget/guide/messages.md":   {fullError},
	"budget/save/README.md": {"tests/save_test.go TestSavePage", verify, "tests/save_test.go TestSavePage", resumes,
		versions, "tests/save_test.go TestSavePage"},
	"budget/guide/quotas.md":           {"budget/guide/quotas_test.go TestQuotasPage"},
	"budget/view/README.md":            {livePage, "budget/view/slowest_example_test.go TestSlowestPage"},
	"budget/with/otel/README.md":       {"budget/with/otel/page_test.go TestPage"},
	"budget/with/pprof/README.md":      {"budget/with/pprof/page_test.go TestPage"},
	"budget/with/prometheus/README.md": {"budget/with/prometheus/page_test.go TestPage"},
	"platform/README.md":               {"package main\n\nBLOCK\nfunc main() {}\n"},
	"scope/cache/README.md": {"tests/tiles/main_test.go TestPage", "tests/tiles/main_test.go TestPage",
		"tests/tiles/main_test.go TestPage", "tests/tiles/main_test.go TestPage", "tests/tiles/main_test.go TestPage"},
	"scope/README.md":             {"tests/readme_test.go TestReadmeFromGo"},
	"scope/with/arrow/README.md":  {"scope/with/arrow/page_test.go TestPage"},
	"scope/with/wazero/README.md": {"scope/with/wazero/wazero_test.go TestPage"},
	"tests/misuse/README.md":      {"tests/readme_test.go TestMisuseProgram"},
	"tests/moving/README.md": {"tests/moving_test.go TestMovingPage", "tests/moving_test.go TestMovingPage",
		"tests/moving_test.go TestMovingPage", "tests/moving_test.go TestMovingPage",
		"tests/moving_test.go TestMovingPage"},
	"tests/others/README.md": {"tests/others/main_test.go TestPageCode", "tests/others/main_test.go TestPageCode",
		"tests/others/main_test.go TestPageCode", "tests/others/main_test.go TestPageCode",
		"tests/others/main_test.go TestPageCode", "tests/others/main_test.go TestPageCode"},
}

const (
	keeps = `package main

func main() {
	var g struct{ playerCommands []int }
	commands := []int{1}
BLOCK
	println(len(g.playerCommands))
}
`
	fullError = `package main

import (
	"errors"
	"log"

	"github.com/upfront-mem/upfront/scope"
)

func main() {
	var err error
BLOCK
}
`
	livePage = `package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view/live"
)

func main() {
	b, _ := budget.Open(budget.Plan{})
BLOCK
	println(server, err)
}
`
	verify = `package main

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

const Blue = 1

type (
	Card   struct{ Rank uint32 }
	Player struct{ Team, Card uint32 }
	Match  struct{ Cards arena.Slice[Card] }
)

func verify(state *save.State, match *Match, players scope.Pool[Player]) {
BLOCK
}

func main() { verify(nil, nil, scope.Pool[Player]{}) }
`
	versions = `package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type (
	Frog struct {
		Ticks uint32
		Speed float32
	}
	Pond  struct{ Frogs [2]Frog }
	frog0 struct{ Speed uint8 }
)

var ponds = scope.Plain[Pond]()

func load(region budget.Region, s scope.Scope) *Pond {
BLOCK
	return pond
}

func main() { _ = load }
`
	resumes = `package main

import (
	"context"
	"errors"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type (
	hall struct{ Tick uint64 }
	frog struct{ X, Y int32 }
	room struct {
		slot       budget.Region
		hall       *hall
		frogs      scope.HandlePool[frog]
		checkpoint *save.Checkpoint
	}
	server struct {
		slots       *budget.Slots
		checkpoints *save.Checkpoints
		rooms       map[string]*room
	}
)

var (
	halls = scope.Plain[hall]()
	frogs = scope.Plain[frog]()
)

BLOCK
func main() { _ = new(server).resume(0) }
`
)

// TestPageBlocks compiles the blocks of Go that no other test runs, and finds pages with others.
func TestPageBlocks(t *testing.T) {
	step.Needs(t, step.Check)
	for _, name := range pages(t) {
		on := strings.Split(page(t, name), "\n```go\n")[1:]
		assert.Len(t, blocks[name], len(on), "%s has these blocks of Go, and a test of each", name)
		for i, by := range blocks[name][:min(len(on), len(blocks[name]))] {
			if file, test, found := strings.Cut(by, " Test"); found {
				assert.Contains(t, page(t, file), "\nfunc Test"+test+"(", name)
				continue
			}
			block, _, _ := strings.Cut(on[i], "```\n")
			program(t, strings.ReplaceAll(by, "BLOCK", block))
		}
	}
}

// TestCoreShows compares the table of the core's page with the rows that tests/c/shows.c proves.
func TestCoreShows(t *testing.T) {
	rows := ""
	source := page(t, "tests/c/shows.c")
	for _, row := range cells(t, page(t, "arena_c/README.md"), "| misuse | upfront | upfront-checked |") {
		text := "    {\"" + strings.Join(row, `", "`) + "\",\n"
		assert.True(t, strings.Contains(source, text), "tests/c/shows.c has no row %s", text)
		rows += text
	}
	assert.Equal(t, strings.Count(rows, "    {\""), strings.Count(source, "    {\""))
}

// TestCorePrograms compiles the core in each build, and the programs of its page against it.
func TestCorePrograms(t *testing.T) {
	step.Needs(t, step.Check)
	tools(t, "cc")
	dir := t.TempDir()
	folder, err := filepath.Abs("../arena_c")
	require.NoError(t, err)
	core, err := filepath.Glob(filepath.Join(folder, "*.c"))
	require.NoError(t, err)
	text := page(t, "arena_c/README.md")
	mirror := enclosed(t, text, "\n```mirror\n", "```\n")
	for name, text := range map[string]string{
		"level":  enclosed(t, text, "\n```c\n", "```\n"),
		"mirror": mirror,
		"pools":  page(t, "tests/testdata/pools/pools.c"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".c"), []byte(text), 0o600))
	}
	lineOf := func(mark string) string {
		before, _, found := strings.Cut(mirror, mark)
		require.True(t, found, mark)
		return strconv.Itoa(strings.Count(before, "\n") + 1)
	}
	for _, build := range []struct {
		flag   string
		step   step.Step
		mirror string // the output of that program, which fails in all builds but release
	}{
		{"-O0", step.Check, "0 0\n"},
		{"-DUPFRONT_CHECKED", step.Gate, "past 4 bytes, made at line " + lineOf("UPFRONT_SITE(")},
		{"-fsanitize=address", step.Gate, "mirror.c:" + lineOf("memcpy(")},
	} {
		t.Run(build.flag, func(t *testing.T) {
			step.Needs(t, build.step)
			objects := t.TempDir()
			output(t, objects, nil, "cc", append([]string{"-g", build.flag, "-c"}, core...)...)
			built, err := filepath.Glob(filepath.Join(objects, "*.o"))
			require.NoError(t, err)
			says := func(name string) (text string, ended bool) {
				binary := filepath.Join(objects, name)
				args := []string{"-Wall", "-Wextra", "-Wshadow", "-Werror", "-g", build.flag, "-I", folder,
					name + ".c", "-o", binary}
				output(t, dir, nil, "cc", append(args, built...)...)
				out, err := exec.Command(binary).CombinedOutput()
				return string(out), err == nil
			}
			text, ended := says("level")
			assert.True(t, ended)
			assert.Equal(t, "1000 floats, full\n", text)
			text, ended = says("pools")
			assert.True(t, ended)
			assert.Equal(t, "ada closes\nstatus 0\ncy closes\nlog closes\nstatus 7\n", text)
			text, ended = says("mirror")
			assert.Equal(t, build.step == step.Check, ended)
			assert.Contains(t, text, build.mirror)
		})
	}
}

// around declares the names that the examples of scope's page use; the page declares the types.
const around = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type Frog struct{ X, Y, Age int32 }

var packet = []byte("ada joins")

func main() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB}})
	if err != nil {
		panic(err)
	}
	for row, example := range examples {
		file, err := os.Open(os.Args[0])
		if err == nil {
			_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Frog, error) {
				heap, err := arena.NewHeap(s.BytesUnzeroed(8192, 64), 0)
				if err != nil {
					return nil, err
				}
				example(context.Background(), b, s, b.Region("level").Base(), heap, frogs.New(s), file, 100)
				return nil, nil
			})
		}
		if err != nil {
			panic(fmt.Sprint("row ", row, ": ", err))
		}
	}
	fmt.Println("closed:", b.Close())
}

var _ = container.NewList[int32]
var _ arena.Base

var examples = []` + example + `{
`

// example is the type of a row's function.
const example = `func(ctx context.Context, b *budget.Budget, s scope.Scope, base arena.Base, heap arena.Heap, frog *Frog, file *os.File, n int)`

// TestReadmeFromGo compiles and runs the example of each row of the table.
func TestReadmeFromGo(t *testing.T) {
	step.Needs(t, step.Check)
	text := around
	for _, row := range cells(t, page(t, "scope/README.md"), "| in Go | here |") {
		text += "\t" + example + " {\n\t\t" + strings.Trim(row[2], "`") + "\n\t},\n"
	}
	out, status := printed(t, program(t, text+"}\n\n"+block(t, "scope/README.md", "go")))
	assert.Equal(t, 0, status, out)
	assert.True(t, strings.HasSuffix(out, "closed: <nil>\n"), out)
}

// TestBenchTable: the table names its machine, and has each work.
func TestBenchTable(t *testing.T) {
	text := page(t, "tests/bench/README.md")
	table := enclosed(t, text, "<!-- make bench -->\n", "<!-- end -->\n")
	assert.Regexp(t, `^\d{4}-\d\d-\d\d, .+, \d+ cores; Go 1\.\d+\S*, gcc \d\S* -O2\.\n`, table, "what machine?")
	for _, letter := range strings.Split("ABCDEFIJOSV", "") {
		assert.Regexp(t, `(?m)^\| `+letter+` `, table, "a work is missing")
	}
	for letter, row := range map[string]string{"H": "16-256 bytes, 1k live", "T": "upfront: alloc"} {
		own := enclosed(t, text, "<!-- make bench: "+letter+" -->\n", "<!-- end -->\n")
		assert.Contains(t, own, "\n| "+row+" | ns a ", letter)
	}
	own := enclosed(t, page(t, "tests/bench/caches/README.md"), "<!-- make bench: K -->\n", "<!-- end -->\n")
	for _, row := range []string{"hits, 64 bytes, Zipf 0.8", "time, 256 bytes, Get", "resident, 4096 bytes, loop",
		"longest, 64 bytes, Set", "keys and values, 256 bytes", "goal: resident, the most of all rows"} {
		assert.True(t, strings.Contains(own, "\n| "+row+" | "), "caches has no row %q", row)
	}
	own = enclosed(t, page(t, "tests/bench/resident/README.md"), "<!-- make bench: M -->\n", "<!-- end -->\n")
	for _, row := range []string{"glibc", "glibc, two variables", "jemalloc, no decay", "SQLite's module, one Trim",
		"c_heap, trim 1s", "c_heap, one Trim"} {
		assert.Contains(t, own, "\n| "+row+" | a process |")
	}
	assert.Regexp(t, `^.* -O2,\nglibc \S+, jemalloc \S+, mimalloc \S+\.\n`, own, "which versions?")
	own = enclosed(t, page(t, "tests/bench/resident/README.md"), "<!-- make bench: L -->\n", "<!-- end -->\n")
	for _, row := range []string{"tree-sitter, at the end", "libvips, at the end", "RocksDB, at the end"} {
		assert.Contains(t, own, "\n| "+row+" | MB a process |")
	}
}

// others is the page of other people's programs, and shown the rows of its table that README has,
// each by its first two cells: for a task one with upfront, and the one without it that has the
// least resident memory.
const others = "tests/others/README.md"

var shown = [][2]string{{"sqlite", "in a region, heap of 16 MiB"}, {"sqlite", "as published, serialized"},
	{"fight", "in a region"}, {"fight", "cloned by hand"}, {"guests", "in a budget"},
	{"guests", "wazero's own, carefully"}, {"trees", "in a c_heap, trim 1s"},
	{"trees", "as published, jemalloc without decay"}}

// shownColumns are the columns of that table that README has.
var shownColumns = []string{"task", "program", "resident", "garbage", "collections", "CPU time"}

// TestReadmeRows compares README's rows with the table on the page.
func TestReadmeRows(t *testing.T) {
	const begin, end = "<!-- make others -->\n", "<!-- end -->\n"
	var rows [][]string
	for line := range strings.SplitSeq(enclosed(t, page(t, others), begin, end), "\n") {
		if row, found := strings.CutPrefix(line, "| "); found {
			rows = append(rows, strings.Split(strings.TrimSuffix(row, " |"), " | "))
		}
	}
	require.Greater(t, len(rows), 2)
	table, dashes := "", regexp.MustCompile("^-+")
	add := func(row []string) {
		for column, name := range rows[0] {
			if slices.Contains(shownColumns, strings.TrimSpace(name)) {
				table += "| " + dashes.ReplaceAllString(strings.TrimSpace(row[column]), "---") + " "
			}
		}
		table += "|\n"
	}
	add(rows[0])
	add(rows[1])
	for _, names := range shown {
		i := slices.IndexFunc(rows, func(row []string) bool {
			return strings.TrimSpace(row[0]) == names[0] && strings.TrimSpace(row[1]) == names[1]
		})
		if !assert.Positive(t, i, "%s has no row %q", others, names) {
			continue
		}
		add(rows[i])
		for _, row := range rows[2:] {
			if with := strings.HasPrefix(row[1], "in a "); !with && strings.TrimSpace(row[0]) == names[0] &&
				!strings.HasPrefix(names[1], "in a ") {
				assert.LessOrEqual(t, mib(t, rows[i][2]), mib(t, row[2]), "%s: %s is a better choice", names[0], row[1])
			}
		}
	}
	text := page(t, "README.md")
	old := enclosed(t, text, begin, end)
	if *update {
		text = strings.Replace(text, begin+old+end, begin+table+end, 1)
		require.NoError(t, os.WriteFile("../README.md", []byte(text), 0o644))
		return
	}
	assert.Equal(t, table, old, "make readme writes it")
}

// mib returns the number in a cell such as "16.5 MiB".
// TestBoundary: each row of the table names a test of its folder.
func TestBoundary(t *testing.T) {
	rows := cells(t, page(t, ".github/SECURITY.md"), "| beyond ")
	require.NotEmpty(t, rows)
	for _, row := range rows {
		folder, name, _ := strings.Cut(row[3], " ")
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			return bytes.Contains(text, []byte("\nfunc "+name+"("))
		}), "%s has no %s", folder, name)
	}
}

func mib(t *testing.T, cell string) float64 {
	t.Helper()
	number, found := strings.CutSuffix(strings.TrimSpace(cell), " MiB")
	require.True(t, found, cell)
	f, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err)
	return f
}

// TestRooms: the table of packages names every package of the layers, and only existing files. The
// table of additions names existing files.
func TestRooms(t *testing.T) {
	packages := map[string]bool{}
	folder := ""
	for _, row := range cells(t, page(t, ".github/CONTRIBUTING.md"), "| package | files |") {
		if row[0] != "" {
			folder = strings.Trim(row[0], "`")
			packages[folder] = true
		}
		for _, file := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			found, err := filepath.Glob(filepath.Join("..", folder, file[1]))
			require.NoError(t, err)
			assert.NotEmpty(t, found, "%s/%s", folder, file[1])
		}
	}
	for name := range arrows {
		assert.True(t, packages[name], "%s has no room", name)
	}
	for _, row := range cells(t, page(t, ".github/CONTRIBUTING.md"), "| to add | files") {
		files := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		assert.Greater(t, len(files), 1, row[0])
		for _, file := range files {
			assert.FileExists(t, filepath.Join("..", file[1]))
		}
	}
}

// pages returns the paths of all pages from the root.
func pages(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "build" || d.Name() == "testdata" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			names = append(names, strings.TrimPrefix(path, "../"))
		}
		return err
	})
	require.NoError(t, err)
	return names
}

// TestPagesLead: every link, make target, package and exported name on a page exists.
func TestPagesLead(t *testing.T) {
	var targets []string
	for _, rule := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(page(t, "Makefile"), -1) {
		targets = append(targets, rule[1])
	}
	api := page(t, "tests/testdata/api.txt")
	target := regexp.MustCompile("(?m)(?:^ {4}|`)make ([a-z][a-z0-9-]+)")
	name := regexp.MustCompile("`(arena|scope|container|budget|budgettest|view|platform)" +
		"\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?`")
	for _, file := range pages(t) {
		text := page(t, file)
		// Code has no links.
		said := regexp.MustCompile("(?s)```.*?```|`[^`]*`").ReplaceAllString(text, "")
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)(#[^)]+)?\)`).FindAllStringSubmatch(said, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path := filepath.Join(filepath.Dir(file), link[1])
			_, err := os.Stat(filepath.Join("..", path))
			assert.NoError(t, err, file)
			if link[2] != "" {
				heading := strings.ReplaceAll(strings.TrimPrefix(link[2], "#"), "-", " ")
				assert.Contains(t, strings.ToLower(page(t, path)), "\n## "+heading+"\n", file)
			}
		}
		for _, target := range target.FindAllStringSubmatch(text, -1) {
			assert.Contains(t, targets, target[1], "%s names make %s", file, target[1])
		}
		if file == ".github/CHANGELOG.md" { // it names names that are gone
			continue
		}
		for _, found := range name.FindAllStringSubmatch(text, -1) {
			declared := `(?m)^(\w+/)?` + found[1] + `: (func|type|const|var) ` + found[2] + `\b`
			if found[3] != "" {
				method := `func \(\*?` + found[2] + `(\[.*\])?\) ` + found[3]
				declared = `(?m)^(\w+/)?` + found[1] + `: (` + method + `|type ` + found[2] + `, ` + found[3] + `)\b`
			}
			assert.Regexp(t, declared, api, "%s names %s", file, found[0])
		}
	}
}
