package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/others/row"
)

// TestMain runs one program if the test runs itself as the command does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-child=") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestShort does a small part of each task, each in a process, and looks at the rows.
func TestShort(t *testing.T) {
	rows, err := table(true)
	require.NoError(t, err)
	require.Len(t, rows, len(programs))
	for i, r := range rows {
		assert.Equal(t, [2]string{programs[i].Task, programs[i].Name}, [2]string{r.Task, r.Name})
		assert.Greater(t, r.Resident, uint64(1<<20), r.Name)
		assert.Positive(t, r.Time, r.Name)
		assert.NotEmpty(t, r.Bound, r.Name)
		assert.NotContains(t, r.Task+r.Name, "|", "a cell of a table")
	}
}

// hideSource is a library that maps 64 MiB behind everyone's back.
const hideSource = `
#include <sys/mman.h>
__attribute__((constructor)) static void hide(void) {
    mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}
`

// TestHidden: memory that a library maps for itself is outside. Nearly nothing else is, in programs
// whose libraries are in a budget.
func TestHidden(t *testing.T) {
	folder := t.TempDir()
	source, library := filepath.Join(folder, "hide.c"), filepath.Join(folder, "libhide.so")
	require.NoError(t, os.WriteFile(source, []byte(hideSource), 0o600))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	require.NoError(t, err, "%s", out)

	const hidden, most = 64 << 20, 3 << 20
	found := func(name string, outside, error uint64) {
		t.Logf("%s: %.2f MiB outside, at most %.2f of them Go's", name, float64(outside)/(1<<20),
			float64(error)/(1<<20))
		assert.GreaterOrEqual(t, outside, uint64(hidden), name)
		assert.LessOrEqual(t, outside, hidden+most+error, name)
	}
	t.Setenv("LD_PRELOAD", library)
	for i, p := range programs {
		if slices.Contains([]string{"sqlite, in a region, heap of 16 MiB", "guests, in a budget",
			"trees, in a c_heap, trim 1s"}, p.Task+", "+p.Name) {
			r, err := runChild(i, true)
			require.NoError(t, err)
			found(p.Task, r.Outside, r.MaybeGo)
		}
	}
	os.Unsetenv("LD_PRELOAD")
	program, file := filepath.Join(folder, "malloc"), filepath.Join(folder, "visits")
	out, err = exec.Command("go", "build", "-C", "../bench", "-o", program, "./resident/malloc").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, exec.Command(program, file, "make").Run())
	c := exec.Command(program, file, "1s")
	c.Env = append(os.Environ(), "LD_PRELOAD="+library)
	out, err = c.Output()
	require.NoError(t, err)
	var f map[string]float64
	require.NoError(t, json.Unmarshal(out, &f))
	found("SQLite in a c_heap", uint64(f["outside"]), uint64(f["outside_error"]))
}

// TestPrograms: a task's programs stand together, and no two have one name.
func TestPrograms(t *testing.T) {
	seen, last := map[string]bool{}, ""
	for _, p := range programs {
		assert.False(t, p.Task != last && seen[p.Task], "%s isn't together", p.Task)
		assert.False(t, seen[p.Task+", "+p.Name], "two of %s, %s", p.Task, p.Name)
		seen[p.Task], seen[p.Task+", "+p.Name], last = true, true, p.Task
	}
}

// TestPage: the page's table has a row for each program, and no other.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), begin)
	require.True(t, found)
	table, _, found = strings.Cut(table, end)
	require.True(t, found)
	var listed, here []string
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(strings.TrimPrefix(line, "| "), " | "); len(cells) == len(columns) {
			listed = append(listed, strings.TrimSpace(cells[0])+", "+strings.TrimSpace(cells[1]))
		}
	}
	for _, p := range programs {
		here = append(here, p.Task+", "+p.Name)
	}
	require.Greater(t, len(listed), 2)
	assert.Equal(t, here, listed[2:], "make others ARGS='-readme README.md' writes it")
}

func TestMarkdown(t *testing.T) {
	rows := []row.Row{
		{Task: "frogs", Name: "in a pond", Resident: 16 << 20, Outside: 5 << 20, Garbage: 3 << 29, Collections: 7,
			Time: 1234 * time.Millisecond,
			More: []row.Figure{{Name: "hops", Value: 1200}, {Name: "a hop", Value: 0.000012345, Unit: "s"},
				{Name: "eggs", Value: 2048, Unit: "bytes"}}, Bound: "it\n| croaks"},
		{Task: "frogs", Name: "outside", Resident: 1023, Time: 56789 * time.Microsecond},
	}
	assert.Equal(t, `
| task  | program   | resident | outside | garbage | collections | CPU time | figures of the task                  | at the bound |
| ----- | --------- | -------: | ------: | ------: | ----------: | -------: | ------------------------------------ | --- |
| frogs | in a pond |   16 MiB |   5 MiB | 1.5 GiB |           7 |   1.23 s | hops 1200, a hop 12.3 µs, eggs 2 KiB | it; \| croaks |
| frogs | outside   |   1023 B |     0 B |     0 B |           0 |  56.8 ms |                                      |  |
`, "\n"+markdown(rows))
}

func TestRenew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	for text, expected := range map[string]string{
		"a\n" + begin + "old\n" + end + "b\n": "a\n" + begin + "new\n" + end + "b\n",
		"a\n" + begin + "old\n":               "", end + begin: "", "old\n" + end: "",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		err := renew(name, "new\n")
		assert.Equal(t, expected == "", err != nil, "%v", err)
		if err != nil {
			assert.ErrorContains(t, err, "no table between")
			expected = text
		}
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, expected, string(after))
	}
	assert.ErrorIs(t, renew(name+".txt", ""), os.ErrNotExist)
	assert.ErrorContains(t, run(true, name, -1), "leave out -short")
}

// TestPageCode: the page's code is in the sources of the folder that its section links to, part by
// part.
func TestPageCode(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	sections := strings.Split(string(text), "\n## ")[1:]
	assert.Len(t, sections, len(tasks()), "the page has a section for each task")
	for _, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		folder := regexp.MustCompile(`\]\(([\w./]+)/`).FindStringSubmatch(section)
		require.NotNil(t, folder, heading)
		files, err := filepath.Glob(filepath.Join(folder[1], "*.go"))
		require.NoError(t, err)
		sources := ""
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.HasSuffix(file, "_test.go") {
				sources += string(source)
			}
		}
		_, code, found := strings.Cut(section, "\n```go\n")
		require.True(t, found, heading)
		code, _, _ = strings.Cut(code, "```\n")
		for part := range strings.SplitSeq(code, "\n\n") {
			assert.Contains(t, sources, strings.TrimRight(part, "\n")+"\n", heading)
		}
	}
}

func tasks() map[string]bool {
	all := map[string]bool{}
	for _, p := range programs {
		all[p.Task] = true
	}
	return all
}

// TestInside: the error of a program names it.
func TestInside(t *testing.T) {
	err := inside(row.Program{Task: "frogs", Name: "in a pond", Run: func(context.Context, *row.Meter, bool) error {
		return os.ErrClosed
	}}, true)
	assert.EqualError(t, err, "frogs, in a pond: file already closed")
}
