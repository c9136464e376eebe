package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/upfront-mem/upfront/scope"
)

var update = flag.Bool("update", false, "write testdata anew")

// runs returns the exit code and output of a command. The code is never 1 for a command that isn't
// in founds.
func runs(args ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	code = run(args, &out, &said)
	if c, _, err := newCommand(newTool(nil, nil)).Find(args); code == codeFound &&
		(err != nil || founds[path(c)] == "") {
		panic(fmt.Sprintf("%q: exit 1, which its help doesn't claim: %s", args, said.String()))
	}
	return code, out.String(), said.String()
}

// path returns the words of a command after upfront.
func path(c *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "upfront"), " ")
}

// shown returns a command as typed, its output, and its exit code. Names replace the parts that
// differ from run to run, and Linux's words those of another system.
func shown(command string, names map[string]string) string {
	var to, back []string
	for _, name := range []string{"absent", "absent/absent"} {
		_, err := os.Open(name)
		back = append(back, err.(*os.PathError).Err.Error(), "no such file or directory")
	}
	for name, real := range names {
		to, back = append(to, name, real), append(back, real, name, strings.ReplaceAll(real, `\`, `\\`), name)
	}
	code, out, said := runs(strings.Fields(strings.NewReplacer(to...).Replace(command))...)
	return fmt.Sprintf("$ upfront %s\n%sexit %d\n\n", command, strings.NewReplacer(back...).Replace(out+said), code)
}

func compare(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("go test ./upfront -update, if this is meant:\n%s", text)
	}
}

// every calls fn with each command.
func every(c *cobra.Command, fn func(*cobra.Command)) {
	fn(c)
	for _, sub := range c.Commands() {
		every(sub, fn)
	}
}

// TestHelp compares -h with testdata/help.txt. It also checks that no line has more than 80
// columns, that the help of each command lists all those below it, and that each command that isn't
// a group has an example that begins with the command's name, and its exit codes.
func TestHelp(t *testing.T) {
	var names []string
	every(newCommand(newTool(nil, nil)), func(c *cobra.Command) {
		names = append(names, path(c))
		_, help, _ := runs(strings.Fields(path(c) + " -h")...)
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s -h: %d columns: %s", c.CommandPath(), utf8.RuneCountInString(line), line)
			}
		}
		for _, sub := range c.Commands() {
			if !strings.Contains(help, "\n  "+sub.Name()+" ") {
				t.Errorf("%s -h doesn't list %s", c.CommandPath(), sub.Name())
			}
		}
		if c.HasSubCommands() {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(c.Example), c.CommandPath()+" ") {
			t.Errorf("%s: example %q", c.CommandPath(), c.Example)
		}
		codes := "Exit code: 0 success, 2 trouble."
		if one := founds[path(c)]; one != "" {
			codes = "Exit code: 0 success, 1 " + one + ", 2 trouble."
		}
		if !strings.Contains(strings.ReplaceAll(help, "\n", " "), codes) {
			t.Errorf("%s doesn't say: %s", c.CommandPath(), codes)
		}
	})
	for name := range founds {
		if !slices.Contains(names, name) {
			t.Errorf("founds has %q, which is no command", name)
		}
	}
	sort.Strings(names)
	var all strings.Builder
	for _, name := range names {
		all.WriteString(shown(strings.TrimSpace(name+" -h"), nil))
	}
	compare(t, "testdata/help.txt", all.String())
	if host := "--host is required, unless"; !strings.Contains(all.String(), host) {
		t.Errorf("flow compile -h doesn't say: %s", host)
	}
}

// TestExitCodes checks that each command with the exit code 1 has it, and that README's table has
// the meaning of each.
func TestExitCodes(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]int{"base.json": 1000, "a.json": 2000, "b.json": 3000} {
		write(name, fmt.Sprintf(`{"name": "a", "regions": [{"name": "level", "size": %d}]}`, size))
	}
	writePonds(t, dir, "pond", []string{"a", "b"}, func(i int, p *pond, _ scope.HandlePool[frog], _ []uint16) {
		p.Tick = uint64(i)
	})
	writeVersions(t, dir)
	write("report.json",
		`{"name": "x", "size": 1, "arenas": [{"name": "level", "part": "level", "kind": "region", "size": 9}]}`)
	write("blob", "BLB1")
	lines := map[string]string{
		"check":        "testdata/branch.json --against testdata/main.json",
		"flow check":   "GRAPHS/bad.json",
		"flow compile": "GRAPHS/bad.json --host GRAPHS/host.json",
		"flow diff":    "testdata/versions/base.json testdata/versions/b.json",
		"flow draw":    "DIR/blob",
		"flow export":  "DIR/blob",
		"flow merge":   "testdata/versions/base.json testdata/versions/a.json testdata/versions/b.json",
		"flow strip":   "DIR/blob DIR/none",
		"flow trace":   "GRAPHS/every.json --host GRAPHS/host.json -e line.used -k -1 --steps 3",
		"plan check":   "testdata/faulty.json",
		"plan diff":    "testdata/versions/old.json testdata/versions/new.json",
		"plan draw":    "testdata/faulty.json",
		"plan fleet":   "testdata/fine.json",
		"plan merge":   "DIR/base.json DIR/a.json DIR/b.json",
		"profile":      "DIR/report.json",
		"replay":       "testdata/monday.trace --plan testdata/small.json",
		"report diff":  "testdata/main.json testdata/branch.json",
		"save convert": "DIR/old.save --against DIR/strict.save",
		"save diff":    "DIR/a.save DIR/b.save",
	}
	for name, one := range founds {
		args := strings.Fields(strings.NewReplacer("GRAPHS/", graphs, "DIR", dir).Replace(name + " " + lines[name]))
		code, out, said := runs(args...)
		if code != codeFound {
			t.Errorf("%s: exit %d, %s%s", args, code, out, said)
		}
		row := regexp.MustCompile("(?m)^\\| .*`(?:upfront )?" + name + "[ `].*\\| " + regexp.QuoteMeta(one) + " \\|$")
		if !row.Match(page) {
			t.Errorf("README's table doesn't have: %s, %s", name, one)
		}
		code, out, said = runs(append(args, "--json")...)
		var object struct{ Error *string }
		if err := json.Unmarshal([]byte(out), &object); code != codeFound || err != nil {
			t.Errorf("%s --json: exit %d, %v, %s", args, code, err, out)
		}
		if said != "" && object.Error == nil && !strings.Contains(name, "check") {
			t.Errorf("%s --json: stderr has an error that the object lacks: %s", args, said)
		}
	}
}

// TestVersion checks that the version has the facts that the build recorded, and no others.
func TestVersion(t *testing.T) {
	info := debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}}
	if got := version(&info, true); got != "upfront (devel)\nno revision recorded\ngo1.26" {
		t.Error(got)
	}
	info.Main.Version = "v1.2.3"
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	if got := version(&info, true); got != "upfront v1.2.3\nrevision abc, modified\ngo1.26" {
		t.Error(got)
	}
	if got := version(nil, false); !strings.Contains(got, "no version") {
		t.Error(got)
	}
	code, out, said := runs("--version")
	if code != codeFine || !strings.HasPrefix(out, "upfront ") || !strings.Contains(out, runtime.Version()) ||
		said != "" {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
}

// TestCompletion checks that each shell's script is written, and completes this tool.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, said := runs("completion", shell)
		if code != codeFine || !strings.Contains(out, "__complete") || said != "" {
			t.Errorf("%s: exit %d, %.80q, %q", shell, code, out, said)
		}
	}
	if code, out, _ := runs("__complete", "plan", "sug"); code != codeFine || !strings.HasPrefix(out, "suggest\t") {
		t.Errorf("exit %d, %q", code, out)
	}
}

// TestWideTables checks that a table of long names has at most 80 columns.
func TestWideTables(t *testing.T) {
	report := func(name string, used uint64) string {
		long := strings.Repeat("x", 31)
		text := fmt.Sprintf(`{"name": "x", "size": %d, "arenas": [{"name": "%s", "part": "%s", "kind": "region", "size": %d, "used": %d, "peak": %d,
			"labels": [{"name": "%s", "bytes": %d, "peak": %d}]}]}`,
			uint64(1<<31), long, long, uint64(1<<31)-1<<20, used, used, long, used, used)
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	a, b := report("a.json", 1<<29), report("b.json", 1<<30)
	for _, line := range []string{"report diff A B", "check B --against A", "profile B", "report draw B"} {
		_, out, said := runs(strings.Fields(strings.NewReplacer("A", a, "B", b).Replace(line))...)
		if out == "" {
			t.Errorf("%s: %s", line, said)
		}
		for text := range strings.Lines(out) {
			if text = strings.TrimSuffix(text, "\n"); utf8.RuneCountInString(text) > 80 &&
				!strings.HasPrefix(text, "If that is intended") {
				t.Errorf("%s: %d columns: %s", line, utf8.RuneCountInString(text), text)
			}
		}
	}
}

// TestReadme compares the page's examples with the tool's output.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata")
	shows := strings.Split(string(page), "```text\n$ upfront ")[1:]
	for _, text := range shows {
		text, _, _ = strings.Cut(text, "```")
		line, want, _ := strings.Cut(text, "\n")
		if strings.HasPrefix(line, "plan fleet ") {
			continue // TestFleetPage
		}
		if _, out, said := runs(strings.Fields(line)...); out != want {
			t.Errorf("upfront %s\n%s%s", line, out, said)
		}
	}
	if len(shows) != 8 {
		t.Errorf("it shows %d commands", len(shows))
	}
}

// TestTrouble checks that a wrong command line, or a file that isn't there, exits with 2 in every
// command, and that with --json stdout is one object with the error.
func TestTrouble(t *testing.T) {
	lines := []string{"plan", "plan chek x", "plan check", "plan check none.json", "plan draw none.json",
		"plan diff none.json none.json", "plan merge none.json none.json none.json", "plan suggest none.json",
		"plan fleet none.json", "report draw none.json", "report diff none.json", "replay", "replay none.trace",
		"check", "check none.json", "check none.json --against none.json", "profile", "profile none.json",
		"save show none", "save diff none none", "save convert none --against none",
		"flow check none", "flow compile none --host none",
		"flow compile " + graphs + "door.json", "flow strip none none", "flow draw none", "flow diff none none",
		"flow merge none none none", "flow trace none -e x", "flow export none", "nothing", "help nothing",
		"help plan nothing", "completion", "completion csh", "plan check --nothing x",
		"plan fleet ../../../tests/frogpond/serve.json --cpu 0", "plan suggest --headroom -1 none.json",
		"plan suggest --headroom x none.json", "profile testdata/main.json --top 0",
		"profile testdata/main.json --top -1"}
	for _, line := range lines {
		code, out, said := runs(strings.Fields(line)...)
		if code != codeTrouble || out != "" || said == "" {
			t.Errorf("%s: exit %d, %q, %q", line, code, out, said)
		}
		for _, asks := range []string{"--json %s", "%s --json=true"} {
			line := fmt.Sprintf(asks, line)
			code, out, _ = runs(strings.Fields(line)...)
			type entry struct{ Error string }
			var object struct {
				entry
				Plans, Graphs []entry // the entries of files
			}
			err := json.Unmarshal([]byte(out), &object)
			says := object.Error
			for _, e := range append(object.Plans, object.Graphs...) {
				says += e.Error
			}
			if code != codeTrouble || err != nil || says == "" {
				t.Errorf("%s: exit %d, %q, %v", line, code, out, err)
			}
		}
	}
	every(newCommand(newTool(nil, nil)), func(c *cobra.Command) {
		if has := func(line string) bool { return strings.HasPrefix(line+" ", path(c)+" ") }; path(c) != "" &&
			!slices.ContainsFunc(lines, has) {
			t.Errorf("no line has the command %s", path(c))
		}
	})
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestFull checks that failed output is trouble, in every command.
func TestFull(t *testing.T) {
	for _, line := range []string{"-h", "plan check testdata/fine.json", "plan draw testdata/fine.json",
		"plan draw testdata/fine.json -o -", "plan suggest testdata/main.json",
		"plan fleet ../../../tests/frogpond/serve.json", "report draw testdata/main.json",
		"report diff testdata/main.json testdata/main.json", "report diff testdata/main.json testdata/branch.json",
		"check testdata/main.json --against testdata/main.json",
		"check testdata/branch.json --against testdata/main.json", "profile testdata/main.json",
		"profile testdata/empty.json", "flow check GRAPHS/door.json",
		"flow check GRAPHS/door.json --host GRAPHS/host.json", "flow draw GRAPHS/door.json",
		"flow export GRAPHS/door.json", "flow trace GRAPHS/door.json -e line.used -k 12"} {
		args := strings.Fields(strings.ReplaceAll(line, "GRAPHS/", graphs))
		for _, args := range [][]string{args, append(args, "--json")} {
			var said bytes.Buffer
			if code := run(args, full{}, &said); code != codeTrouble || said.Len() == 0 {
				t.Errorf("%s: exit %d, %q", args, code, said.String())
			}
		}
	}
}

// TestNamesThatSteerATerminal checks that a file's name can't colour, move or clear anything.
func TestNamesThatSteerATerminal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a\x1b[31m\u202e\xff.json")
	for what, plan := range map[string]string{"fine": `{"name": "p", "regions": [{"name": "level", "size": 1000}]}`,
		"faulty": "{"} {
		if err := os.WriteFile(name, []byte(plan), 0o600); err != nil {
			t.Skip("where a file may have this name, go test ./upfront runs it:", err)
		}
		var out, failed bytes.Buffer
		run([]string{"plan", "check", name}, &out, &failed)
		text := out.String() + failed.String()
		if !strings.Contains(text, "a\ufffd[31m\ufffd\ufffd.json:") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %q", what, text)
		}
	}
	var out, failed bytes.Buffer
	run([]string{"report", "draw", name + "none"}, &out, &failed)
	if text := failed.String(); !strings.Contains(text, "a\ufffd[31m\ufffd\ufffd.jsonnone") ||
		strings.Contains(text, "\x1b") {
		t.Errorf("none: %q", text)
	}
}
