package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

const versionsDir = "testdata/versions/"

// copied copies the versions of a graph and a plan into a folder, and returns it.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"base.json", "a.json", "b.json", "old.json", "new.json"} {
		data, err := os.ReadFile(versionsDir + name)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name), string(data))
	}
	return dir
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestVersions compares commands and their output with testdata/versions.txt.
func TestVersions(t *testing.T) {
	dir := copied(t)
	base := contents(t, filepath.Join(dir, "base.json"))
	for name, edit := range map[string][2]string{
		"spaced.json": {`{"type": "delay", "in": {"ticks": 150}, "then": "close"}`,
			`{ "then":["close"], "type":"delay", "in":{"ticks":150} }`},
		"apart.json":    {`"a": "held", "b": 1`, `"a": "held", "b": 2`},
		"shut.json":     {`"then": "close"},`, `"then": []},`},
		"twice.json":    {`"close":  {`, `"open":  {`},
		"second.json":   {`"version": 1`, `"version": 2`},
		"dangling.json": {"    \"close\":  {\"action\": \"door.close\", \"in\": {\"tag\": 7}},\n", ""},
		"to.json":       {`"then": [{"wait": "cancel"}]`, `"then": [{"wait": "cancel"}, "close"]`},
	} {
		put(t, filepath.Join(dir, name), strings.Replace(base, edit[0], edit[1], 1))
	}
	put(t, filepath.Join(dir, "gone.json"), strings.Replace(contents(t, filepath.Join(dir, "dangling.json")),
		`, "then": "close"`, "", 1))
	put(t, filepath.Join(dir, "empty.json"), "")
	old := contents(t, filepath.Join(dir, "old.json"))
	for name, edit := range map[string][2]string{
		"forms.json":     {`"4MiB"`, `"4096KiB"`},
		"deep.json":      {`"size": "4MiB"`, `"size": "5MiB"`},
		"faulty.json":    {`"4MiB"`, `"4mb"`},
		"renamed.json":   {`"systems"`, `"init"`},
		"small.json":     {`"go_heap": "32MiB"`, `"size": "10MiB", "go_heap": "32MiB"`},
		"wide.json":      {`{"buffers": 2, "size": "256KiB"}`, `{"buffers": 2, "size": "512KiB"}`},
		"frameless.json": {"  \"frame\": {\"buffers\": 2, \"size\": \"256KiB\"},\n", ""},
		"each.json":      {`{"workers": 4, `, `{"workers": 4, "each": 1, `},
		"noted.json":     {`"state": true`, `"state": true, "note": "lamps"`},
		"rest.json":      {`"go_heap": "32MiB"`, `"go_heap": "rest"`},
		"beside.json":    {`"state": true`, `"state": true, "on": "init"`},
		"above.json":     {`"state": true`, `"state": true, "on": "systems"`},
		"between.json": {"    {\"name\": \"level\"",
			"    {\"name\": \"effects\", \"size\": \"64KiB\", \"on\": \"init\"},\n    {\"name\": \"level\""},
		"single.json": {"    {\"name\": \"systems\", \"size\": \"1MiB\"},\n", ""},
	} {
		put(t, filepath.Join(dir, name), strings.Replace(old, edit[0], edit[1], 1))
	}
	var all strings.Builder
	for _, command := range []string{
		"flow diff DIR/base.json DIR/b.json",
		"flow diff DIR/base.json DIR/b.json --json",
		"flow diff DIR/base.json DIR/spaced.json",
		"flow compile DIR/base.json --host ../../../scope/flow/source/testdata/host.json -o DIR/base.blob --json",
		"flow diff DIR/base.blob DIR/a.json",
		"flow diff DIR/base.blob DIR/base.json",
		"flow diff DIR/base.json DIR/old.json",
		"flow diff DIR/base.json DIR/twice.json",
		"flow merge DIR/base.json DIR/a.json DIR/b.json",
		"flow merge DIR/base.json DIR/a.json DIR/b.json --json",
		"flow merge DIR/base.json DIR/a.json DIR/apart.json",
		"flow diff DIR/base.json DIR/a.json",
		"flow merge DIR/base.json DIR/a.json DIR/b.json -o DIR/merged.json --name door.json",
		"flow diff DIR/a.json DIR/merged.json",
		"flow merge DIR/empty.json DIR/a.json DIR/b.json",
		"flow diff DIR/empty.json DIR/b.json",
		"flow merge DIR/base.json DIR/shut.json DIR/dangling.json -o -",
		"flow merge DIR/base.json DIR/a.json DIR/b.json -o -",
		"flow merge DIR/base.json DIR/a.json DIR/spaced.json --host DIR/none.json",
		"flow merge DIR/base.json DIR/a.json DIR/spaced.json --host DIR/old.json",
		"flow merge json DIR/twice.json DIR/second.json --name door.json",
		"flow merge DIR/base.json DIR/gone.json DIR/to.json",
		"flow merge DIR/base.json DIR/dangling.json DIR/a.json",
		"flow merge DIR/base.json DIR/second.json DIR/base.blob",
		"flow merge DIR/base.json DIR/twice.json DIR/none.json",
		"plan diff DIR/old.json DIR/new.json",
		"plan diff DIR/old.json DIR/new.json --json",
		"plan diff DIR/old.json DIR/forms.json",
		"plan diff DIR/old.json DIR/rest.json",
		"plan diff DIR/old.json DIR/each.json",
		"plan diff DIR/old.json DIR/noted.json",
		"plan diff DIR/old.json DIR/beside.json",
		"plan diff DIR/beside.json DIR/above.json",
		"plan diff DIR/base.json DIR/faulty.json",
		"plan merge DIR/old.json DIR/deep.json DIR/new.json",
		"plan merge DIR/old.json DIR/renamed.json DIR/faulty.json",
		"plan merge DIR/faulty.json DIR/deep.json DIR/deep.json",
		"plan merge DIR/base.json DIR/old.json DIR/new.json",
		"plan merge testdata/main.json DIR/old.json DIR/new.json",
		"plan merge DIR/old.json DIR/wide.json DIR/frameless.json",
		"plan merge DIR/old.json DIR/beside.json DIR/new.json -o -",
		"plan merge DIR/old.json DIR/beside.json DIR/above.json",
		"plan merge DIR/old.json DIR/above.json DIR/between.json",
		"plan merge DIR/old.json DIR/above.json DIR/single.json --name pond.json",
		"flow merge DIR/old.json DIR/a.json DIR/b.json",
		"flow merge DIR/base.json DIR/second.json DIR/twice.json --name door.json",
		"flow diff DIR/base.json DIR/b.json -o DIR/b.json",
		"plan merge DIR/old.json DIR/small.json DIR/new.json -o DIR/merged.json",
		"plan merge DIR/old.json DIR/forms.json DIR/new.json -o -",
		"plan merge DIR/old.json DIR/new.json",
		"plan diff DIR/old.json DIR/new.json -o DIR/plans.svg",
		"flow diff DIR/base.json DIR/b.json -o DIR/graphs.svg --json",
	} {
		all.WriteString(shown(command, map[string]string{"DIR": dir}))
	}
	compare(t, "testdata/versions.txt", all.String())
	for _, name := range []string{"plans.svg", "graphs.svg"} {
		compare(t, versionsDir+name, contents(t, filepath.Join(dir, name)))
	}
}

// TestMergeFails: where a merge can't be written, the old file is as it was, and no other file is
// left.
func TestMergeFails(t *testing.T) {
	dir := copied(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	if code, _, said := runs("flow", "merge", at("base.json"), at("base.json"), at("b.json"), "-o",
		at("none/x.json")); code != codeTrouble || said == "" {
		t.Error(code, said)
	}
	put(t, at("folder"), "")
	if code, _, said := runs("flow", "merge", at("base.json"), at("base.json"), at("b.json"), "-o",
		at("folder/x.json")); code != codeTrouble || said == "" {
		t.Error(code, said)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, _, said := runs("flow", "merge", at("base.json"), at("base.json"), at("b.json"), "-o",
		at("taken")); code != codeTrouble || said == "" {
		t.Error(code, said)
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before)+1 {
		t.Error("a file is left:", after)
	}
	if code, out, said := runs("flow", "merge", at("base.json"), at("base.json"), at("b.json")); code != codeFine ||
		out+said != "" {
		t.Error(code, out, said)
	}
	if info, err := os.Stat(at("base.json")); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
		t.Error(info, err)
	}
}

// TestMergeIntoLinks: a link stays, and the file that it leads to is replaced.
func TestMergeIntoLinks(t *testing.T) {
	dir := copied(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, to := range map[string]string{"link": "old.json", "astray": "nothing"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Skip("with Windows' right to make symbolic links, go test ./upfront runs it:", err)
		}
	}
	if _, err := os.Stat(at("link")); err != nil {
		t.Skip("Wine doesn't follow such links; on Linux and Windows, go test ./upfront runs it:", err)
	}
	code, _, said := runs("plan", "merge", at("old.json"), at("link"), at("new.json"))
	to, err := os.Readlink(at("link"))
	if code != codeFine || err != nil || to != "old.json" ||
		contents(t, at("old.json")) != contents(t, at("new.json")) {
		t.Error(code, said, to, err)
	}
	if code, _, _ := runs("flow", "merge", at("base.json"), at("base.json"), at("b.json"), "-o",
		at("astray")); code != codeTrouble {
		t.Error(code)
	}
}

// TestGitDriver merges branches with git, by the two lines of configuration on the page.
func TestGitDriver(t *testing.T) {
	step.Needs(t, step.Check)
	if _, err := exec.LookPath("git"); err != nil {
		step.Lacks(t, "git", "git")
	}
	dir := copied(t)
	tool := filepath.Join(t.TempDir(), "upfront")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	page := contents(t, "../README.md")
	git := func(fails bool, args ...string) string {
		t.Helper()
		c := exec.Command("git",
			append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "core.autocrlf=false"},
				args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(tool)+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if (err != nil) != fails {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git(false, "init", "-q", "-b", "main")
	for _, line := range []string{`merge.upfront-graph.driver "upfront flow merge %O %A %B -o %A --name %P"`,
		`merge.upfront-graph.recursive binary`, `*.graph.json merge=upfront-graph`} {
		if !strings.Contains(page, line) {
			t.Errorf("the page hasn't %s", line)
		}
	}
	git(false, "config", "merge.upfront-graph.driver", "upfront flow merge %O %A %B -o %A --name %P")
	put(t, filepath.Join(dir, ".gitattributes"), "*.graph.json merge=upfront-graph\n")
	commit := func(branch, name string) {
		t.Helper()
		git(false, "checkout", "-q", "-B", branch, "main")
		put(t, filepath.Join(dir, "door.graph.json"), contents(t, filepath.Join(dir, name)))
		git(false, "add", "door.graph.json", ".gitattributes")
		git(false, "commit", "-q", "-m", branch)
	}
	git(false, "commit", "-q", "--allow-empty", "-m", "begin")
	commit("main", "base.json")
	commit("a", "a.json")
	put(t, filepath.Join(dir, "b.json"), strings.Replace(contents(t, filepath.Join(dir, "b.json")), `"speed": 4`,
		`"speed": 2`, 1))
	commit("b", "b.json")
	git(false, "merge", "-q", "-m", "both", "a")
	merged := contents(t, filepath.Join(dir, "door.graph.json"))
	for _, part := range []string{`"speed": 3`, `"ticks": 200`, `"blink":`, `"id": 35`} {
		if !strings.Contains(merged, part) {
			t.Errorf("no %s in %s", part, merged)
		}
	}
	put(t, filepath.Join(dir, "c.json"), contents(t, versionsDir+"b.json"))
	commit("c", "c.json")
	said := git(true, "merge", "-m", "both", "a")
	want := "door.graph.json: 1 conflict; it has the values of A\nnodes.open.in.speed:\n  base:13    2\n  A:13      " +
		" 4\n  B:13       3\n"
	if !strings.Contains(said, want) {
		t.Error(said)
	}
	git(false, "merge", "--abort")
	// Two branches that merged each other, and kept their own values, still conflict.
	git(false, "config", "merge.upfront-graph.recursive", "binary")
	put(t, filepath.Join(dir, "x.json"), strings.Replace(contents(t, filepath.Join(dir, "base.json")), `"speed": 2`,
		`"speed": 3`, 1))
	put(t, filepath.Join(dir, "y.json"), strings.Replace(contents(t, filepath.Join(dir, "base.json")), `"speed": 2`,
		`"speed": 5`, 1))
	commit("x", "x.json")
	commit("y", "y.json")
	git(false, "branch", "was")
	git(true, "merge", "-m", "both", "x")
	git(false, "commit", "-q", "-a", "-m", "own") // the driver left y's
	git(false, "checkout", "-q", "x")
	git(true, "merge", "-m", "both", "was")
	git(false, "commit", "-q", "-a", "-m", "own")
	git(true, "merge", "-m", "both", "y")
	git(false, "merge", "--abort")
	git(false, "checkout", "-q", "c")
	git(true, "merge", "-m", "both", "a")
	if merged := contents(t, filepath.Join(dir, "door.graph.json")); !strings.Contains(merged, `"ticks": 200`) ||
		!strings.Contains(merged, `"speed": 4`) {
		t.Error(merged)
	}
}
