package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

func command(t *testing.T, dir, name string, args ...string) (out string, err error) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	said, err := c.CombinedOutput()
	return string(said), err
}

func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// TestNewcomer follows the page with a copy of frogpond that has one error. The page quotes the
// output of go vet.
func TestNewcomer(t *testing.T) {
	step.Needs(t, step.Check)
	bin, pond := t.TempDir(), t.TempDir()
	must(t, ".", "go", "build", "-buildvcs=false", "-o", bin, ".")
	vet := []string{"vet", "-vettool=" + filepath.Join(bin, "upfront-vet"), "./internal/game"}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/upfront-mem/upfront"
	if err := os.CopyFS(pond, os.DirFS(filepath.Join(root, "tests/frogpond"))); err != nil {
		t.Fatal(err)
	}
	for _, folders := range []string{"", "internal/*/", "internal/*/*/"} {
		files, err := filepath.Glob(filepath.Join(pond, folders, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(err, folders)
		}
		for _, file := range files {
			rewrite(t, file, module+"/tests/frogpond/", "example.com/pond/")
		}
	}
	must(t, pond, "go", "mod", "init", "example.com/pond")
	must(t, pond, "go", "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root, "-go=1.26")
	must(t, pond, "go", "mod", "tidy")
	if out := must(t, pond, "go", vet...); out != "" {
		t.Error(out)
	}

	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n\tway := ")
	wrong, rest, _ := strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(rest, "<!-- newcomer -->\n```text\n"+
		"$ go vet -vettool=$(which upfront-vet) ./internal/game\n")
	want, _, _ := strings.Cut(rest, "```")
	rewrite(t, filepath.Join(pond, "internal/game/way.go"), "pointMaker.TrySlice(result, maxSquares)", wrong)
	out, err := command(t, pond, "go", vet...)
	_, out, _ = strings.Cut("/"+out, "/internal/") // go vet may remember an earlier copy
	if err == nil || "internal/"+out != want {
		t.Errorf("go vet says, with %v:\n%s", err, out)
	}
}

func rewrite(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(old), []byte(new)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHelp checks that every form of help names all checks, and that no arguments print help.
func TestHelp(t *testing.T) {
	step.Needs(t, step.Check)
	tool := filepath.Join(t.TempDir(), "upfront-vet")
	must(t, ".", "go", "build", "-buildvcs=false", "-o", tool, ".")
	for _, way := range []string{"-h", "--help", "help"} {
		out := must(t, ".", tool, way)
		for name := range strings.FieldsSeq("plain escape afterclose unclosed mapkey append fused //upfront:keeps") {
			if !strings.Contains(out, name) {
				t.Errorf("%s doesn't speak of %s:\n%s", way, name, out)
			}
		}
	}
	if out := must(t, ".", tool, "help", "escape"); !strings.Contains(out, "An error is never reported") {
		t.Error(out)
	}
	if out, err := command(t, ".", tool); err == nil || !strings.Contains(out, "go vet -vettool") {
		t.Errorf("%v: %s", err, out)
	}
}
