package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write testdata anew")

func runs(args ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	code = run(args, &out, &said)
	return code, out.String(), said.String()
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

// every calls fn with each command that isn't a group.
func every(c *cobra.Command, fn func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			every(sub, fn)
		} else if sub.Name() != "help" && sub.Name() != "completion" {
			fn(sub)
		}
	}
}

// TestHelp compares -h with testdata/help.txt. It also checks that each command has an example that
// begins with the command's name, and lists exit codes.
func TestHelp(t *testing.T) {
	names := []string{"", "plan", "report", "flow", "save"}
	every(newCommand(newTool(nil, nil)), func(c *cobra.Command) {
		names = append(names, strings.TrimPrefix(c.CommandPath(), "upfront "))
		if !strings.HasPrefix(strings.TrimSpace(c.Example), c.CommandPath()+" ") {
			t.Errorf("%s: example %q", c.CommandPath(), c.Example)
		}
		if !strings.Contains(c.Long, "Exit code: 0 ") {
			t.Errorf("%s doesn't say its exit codes", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if len(line) > 95 {
				t.Errorf("%s: too long: %s", c.CommandPath(), line)
			}
		}
	})
	sort.Strings(names)
	var all strings.Builder
	for _, name := range names {
		all.WriteString(shown(strings.TrimSpace(name+" -h"), nil))
	}
	compare(t, "testdata/help.txt", all.String())
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

// TestTrouble checks that a faulty command line exits with 2, and that with --json it still prints
// an object.
func TestTrouble(t *testing.T) {
	for _, line := range []string{"plan", "plan chek x", "plan check", "plan draw none.json", "plan suggest none.json", "plan fleet none.json", "report draw none.json",
		"report diff none.json", "replay", "replay none.trace", "check", "check none.json", "check none.json --against none.json", "profile", "profile none.json", "save show none", "flow draw none", "nothing", "plan check --nothing x",
		"plan fleet ../../../tests/frogpond/serve.json --cpu 0", "plan suggest --headroom -1 none.json", "plan suggest --headroom x none.json",
		"profile testdata/main.json --top 0", "profile testdata/main.json --top -1"} {
		code, out, said := runs(strings.Fields(line)...)
		if code != codeTrouble || out != "" || said == "" {
			t.Errorf("%s: exit %d, %q, %q", line, code, out, said)
		}
		for _, asks := range []string{"--json %s", "%s --json=true"} {
			line := fmt.Sprintf(asks, line)
			code, out, _ = runs(strings.Fields(line)...)
			var object struct{ Error string }
			if err := json.Unmarshal([]byte(out), &object); code != codeTrouble || err != nil || object.Error == "" {
				t.Errorf("%s: exit %d, %q, %v", line, code, out, err)
			}
		}
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestFull checks that failed output is trouble, in every command.
func TestFull(t *testing.T) {
	for _, line := range []string{"-h", "plan check testdata/fine.json", "plan draw testdata/fine.json", "plan draw testdata/fine.json -o -",
		"plan suggest testdata/main.json", "plan fleet ../../../tests/frogpond/serve.json", "report draw testdata/main.json", "report diff testdata/main.json testdata/main.json",
		"report diff testdata/main.json testdata/branch.json", "check testdata/main.json --against testdata/main.json",
		"check testdata/branch.json --against testdata/main.json", "profile testdata/main.json", "profile testdata/empty.json",
		"flow check GRAPHS/door.json", "flow check GRAPHS/door.json --host GRAPHS/host.json", "flow draw GRAPHS/door.json",
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
	for what, plan := range map[string]string{"fine": `{"name": "p", "regions": [{"name": "level", "size": 1000}]}`, "faulty": "{"} {
		if err := os.WriteFile(name, []byte(plan), 0o600); err != nil {
			t.Skip(err) // this system has no such names
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
	if text := failed.String(); !strings.Contains(text, "a\ufffd[31m\ufffd\ufffd.jsonnone") || strings.Contains(text, "\x1b") {
		t.Errorf("none: %q", text)
	}
}
