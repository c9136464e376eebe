// Command copy makes a module of your own from pond, the small room server, or frogpond, the big
// game server:
//
//	go run ./tests/copy [-replace DIR] pond|frogpond DIR MODULE
//
// Run it in a checkout of upfront, or in a module that requires it. The new module in DIR has the
// program, the program's tests and the licence. Its imports lead to its own packages, and its
// go.mod requires the same version of the library. A checkout has no version. From a checkout, the
// new go.mod therefore replaces the library by the checkout, or by the checkout that -replace
// names. DIR must be new or empty. After an error, copy removes the files that it wrote.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const library = "github.com/upfront-mem/upfront"

var programs = []string{"pond", "frogpond"}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "copy:", err)
		}
		os.Exit(1)
	}
}

// run copies a program as args say, and prints the next step.
func run(args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("copy", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "Usage: copy [-replace DIR] pond|frogpond DIR MODULE")
		f.PrintDefaults()
	}
	replace := f.String("replace", "", "copy from the checkout in a `folder`, and build with it")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 3 {
		f.Usage()
		return fmt.Errorf("got %d arguments, want 3: program, folder, module path", f.NArg())
	}
	program, dir, module := f.Arg(0), f.Arg(1), f.Arg(2)
	if !slices.Contains(programs, program) {
		return fmt.Errorf("unknown program %q; choose %s", program, strings.Join(programs, " or "))
	}
	if module == library || strings.HasPrefix(module, library+"/") {
		return fmt.Errorf("module path %q is the library's; choose your own: example.com/mygame", module)
	}
	from, err := findLibrary(*replace)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	undo, err := claim(dir)
	if err != nil {
		return err
	}
	if err := makeModule(from, program, dir, module); err != nil {
		return errors.Join(err, undo())
	}
	fmt.Fprintf(stdout, "%s is in %s, as module %s\n", program, dir, module)
	if from.Version == "" {
		fmt.Fprintf(stdout, "its go.mod replaces %s by %s\n", library, from.Dir)
	}
	next := ""
	if work, err := goCommand(dir, "env", "GOWORK"); err == nil && filepath.IsAbs(strings.TrimSpace(string(work))) {
		next = "go work use . && "
	}
	fmt.Fprintf(stdout, "next: cd %s && %sgo test ./... && go run .\n", dir, next)
	return nil
}

// source is the library to copy from. Version is empty for a checkout.
type source struct{ Dir, Version, GoVersion string }

// findLibrary returns the library in a checkout, or without a checkout the library that the go
// command finds from here.
func findLibrary(checkout string) (source, error) {
	var found struct {
		source
		Path    string
		Replace *source
	}
	list := []string{"list", "-m", "-json", library}
	if checkout != "" {
		list = []string{"-C", checkout, "list", "-m", "-json"}
	}
	out, err := goCommand("", list...)
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	switch {
	case checkout != "" && (err != nil || found.Path != library):
		return source{}, fmt.Errorf("-replace %s: no checkout of %s", checkout, library)
	case err != nil:
		return source{}, fmt.Errorf("run copy in a checkout, or in a module that requires %s: %w",
			library, err)
	case found.Dir == "":
		return source{}, fmt.Errorf("%s %s isn't on this machine: run go mod download",
			library, found.Version)
	case found.Replace != nil && found.Replace.Version == "":
		found.Version = "" // replaced by a checkout
	}
	return found.source, nil
}

// claim makes a folder, which must be new or empty. undo removes the folder's content, and the
// folders that claim made.
func claim(dir string) (undo func() error, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case len(entries) > 0:
		return nil, fmt.Errorf("folder %s isn't empty: it has %s; choose a new one",
			dir, entries[0].Name())
	case err == nil:
		return func() error { return empty(dir) }, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	made := dir // the highest new folder
	for above := filepath.Dir(made); above != made; above = filepath.Dir(made) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		made = above
	}
	return func() error { return os.RemoveAll(made) }, os.MkdirAll(dir, 0o755)
}

// empty removes the entries of a folder. The folder stays: it may be a link, or a working
// directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// makeModule writes the module, and checks it with the go command.
func makeModule(from source, program, dir, module string) error {
	if _, err := goCommand(dir, "mod", "init", module); err != nil { // rejects a bad path
		return err
	}
	c := copier{root: from.Dir, dir: dir, module: module,
		folders: map[string]string{"tests/" + program: "."}}
	if err := c.folder("tests/" + program); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "go.sum"} { // tidy removes unused sums
		if err := c.file(name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	edit := []string{"mod", "edit", "-go=" + from.GoVersion}
	if from.Version == "" {
		edit = append(edit, "-require="+library+"@v0.0.0", "-replace="+library+"="+from.Dir)
	} else {
		edit = append(edit, "-require="+library+"@"+from.Version)
	}
	for _, args := range [][]string{edit, {"mod", "tidy"}, {"vet", "./..."}} {
		if _, err := goCommand(dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in a folder. The error has the text of stderr. GOWORK is off for go
// vet, which would refuse a module that isn't in a workspace above the folder.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if args[0] == "vet" {
		cmd.Env = append(cmd.Environ(), "GOWORK=off")
	}
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	said := ""
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		said = strings.TrimSpace(string(exit.Stderr))
	}
	return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, said)
}
