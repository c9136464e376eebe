package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"go/version"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// staticcheck is the analyzer and its version.
const staticcheck = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"

// tags returns the flag with the build tags of a module. With libsqlite3, the modules with SQLite
// link Debian's, if it is installed, instead of compiling their own.
func tags(dir string) string {
	sqlite := []string{"arena/with/sqlite", "tests/bench", "tests/full", "tests/group"}
	if slices.Contains(sqlite, dir) && exec.Command("pkg-config", "--exists", "sqlite3").Run() == nil {
		return "-tags=libsqlite3"
	}
	return "-tags="
}

// fleet is a module that compiles Kubernetes' scheduler and API server, which takes minutes. Only
// make soak has a part for it.
const fleet = "tests/fleet"

// late are the modules that only make gate and make soak test. Their libraries take long to
// compile, such as a SQLite in Go.
var late = []string{"tests/bench/caches", "tests/others", "tests/others/duckdb", "tests/others/memory",
	"tests/page"}

// modules returns the folders with a go.mod, the root first.
func modules() (list []string, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (path == "build" || d.Name() == "testdata" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			list = append(list, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	slices.Sort(list) // "." sorts before letters
	return list, err
}

// lint checks the format of all files, and vets the named modules, or all modules but fleet. If all
// is set, it also runs staticcheck and upfront-vet in each module, and checks that its go.mod is
// tidy. Otherwise it leaves out the late modules, and runs staticcheck and checks go.mod only in
// the root.
func (p *prover) lint(names []string, all bool) error {
	found, err := modules()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(found, name) {
			return fmt.Errorf("no module in %q; modules: %s", name, strings.Join(found, " "))
		}
	}
	if len(names) == 0 {
		names = slices.DeleteFunc(found, func(name string) bool {
			return name == fleet || !all && slices.Contains(late, name)
		})
	}
	if err = p.format(); err != nil {
		return err
	}
	vet, err := filepath.Abs("build/upfront-vet")
	if err != nil {
		return err
	}
	if all {
		// Without the commit in its binary, the tool stays the same, and go vet's cache holds
		// across commits.
		if err = p.do(goCommand("budget/cmd", "build", "-buildvcs=false", "-o", vet, "./upfront-vet")); err != nil {
			return err
		}
	}
	for _, name := range names {
		tags := tags(name)
		if err = p.vet(name, tags); err != nil {
			return err
		}
		var commands []command
		if all || name == "." {
			commands = append(commands, goCommand(name, "mod", "tidy", "-diff"),
				goCommand(name, "run", staticcheck, tags, "./..."))
		}
		if all {
			commands = append(commands, goCommand(name, "vet", "-vettool="+vet, tags, "./..."))
		}
		for _, c := range commands {
			if err = p.do(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// vet vets the packages of a module. The analyzer cgocall reads a package's files by the names that
// cgo wrote. With -trimpath the build cache may hold the names of a checkout that is gone, so a
// macro among C's flags keeps the entries of checkouts apart. Only packages with C are compiled for
// it, as their results are the same.
func (p *prover) vet(module, tags string, env ...string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	flags := fmt.Sprintf("CGO_CPPFLAGS=%s -DUPFRONT_VET_%08x", os.Getenv("CGO_CPPFLAGS"),
		crc32.ChecksumIEEE([]byte(here)))
	return p.do(goCommand(module, "vet", tags, "./...").with(append(env, flags)...))
}

// format returns an error that names the files that gofmt would change, or a script that bash can't
// parse. Files for a later Go than this are left to the part next of make soak.
func (p *prover) format() error {
	files, err := goFiles()
	if err != nil {
		return err
	}
	out, err := p.output(command{args: append([]string{"gofmt", "-l"}, files...)})
	if err == nil && out != "" {
		err = fmt.Errorf("gofmt would change %s", strings.Join(strings.Fields(out), " "))
	}
	for _, script := range []string{"tests/c/run.sh", frogpond + "/save.sh", ".ci/run"} {
		if _, missing := os.Stat(script); err == nil && missing == nil {
			err = p.do(command{args: []string{"bash", "-n", script}})
		}
	}
	return err
}

// goFiles returns the files that this Go's gofmt can parse.
func goFiles() (list []string, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (path == "build" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		// gofmt reports errors of the clause
		file, _ := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
		if file == nil || version.Compare(file.GoVersion, runtime.Version()) <= 0 {
			list = append(list, path)
		}
		return nil
	})
	return list, err
}
