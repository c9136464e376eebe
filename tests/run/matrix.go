package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// flavour is a build: its name, the flags of the go command for it, and the build tag that the
// flags set.
type flavour struct {
	name  string
	flags []string
	tag   string
}

// flavours are the builds other than release.
var flavours = []flavour{
	{"race", []string{"-race"}, "race"},
	{"asan", []string{"-asan"}, "asan"},
	{"checked", []string{"-tags=checked"}, "checked"},
	{"bindings", []string{"-tags=upfront_cgo"}, "upfront_cgo"},
}

// listed are packages that make check runs in a build, by the build's name. With each fast path
// through the C bindings, it runs the layers with fast paths, and the suite that compares both
// ways. In the others it runs the packages below tests whose errors only that build finds: models
// and the differential in those that check memory, servers in the race build. make gate runs all.
var listed = map[string][]string{
	"race": {"tests/conformance/threads", "tests/frogpond/internal/game", "tests/frogpond/internal/serve",
		"tests/frogpond/internal/udp", "tests/frogpond/internal/web", "tests/malloc", "tests/model", "tests/pond"},
	"asan":     {"tests/conformance", "tests/model", "tests/model/schedules"},
	"checked":  {"tests/conformance", "tests/frogpond/internal/game", "tests/malloc", "tests/model/schedules"},
	"bindings": {"arena", "scope", "tests/conformance"},
}

// matrix has the builds in which make check runs a package's tests, with the reasons: those of
// listed, and for a package of the library that its files differ in the build. In a build that
// checks memory, they also differ if they name the build's constant of arena_c; in the race build,
// if they start goroutines or hold a lock. Only the package's own files count, since its imports
// have tests of their own.
type matrix struct {
	packages []string             // the packages with tests, as paths from the root
	why      map[[2]string]string // by build and package
}

func newMatrix() (m matrix, err error) {
	m.why = map[[2]string]string{}
	err = filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		base := filepath.Base(dir)
		nested := hasModule(dir)
		if dir != "." && (base == "testdata" || base == "build" || base[0] == '.' || base[0] == '_' || nested) {
			return filepath.SkipDir
		}
		return m.add(dir)
	})
	return m, err
}

func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// filesIn returns the files of a package and its tests in the build with a tag.
func filesIn(dir, tag string) (all []string, tests bool, err error) {
	context := build.Default
	if tag != "" {
		context.BuildTags = []string{tag}
	}
	p, err := context.ImportDir(dir, 0)
	if none := (*build.NoGoError)(nil); err != nil && !errors.As(err, &none) {
		return nil, false, err
	}
	return slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.TestGoFiles, p.XTestGoFiles),
		len(p.TestGoFiles)+len(p.XTestGoFiles) > 0, nil
}

// constants match the constants of arena_c that depend on a build that checks memory.
var constants = map[string]*regexp.Regexp{
	"asan":    regexp.MustCompile(`\barena_c\.(Asan|Crossing)\b`),
	"checked": regexp.MustCompile(`\barena_c\.(Checked|Crossing)\b`),
}

func (m *matrix) add(dir string) error {
	release, _, err := filesIn(dir, "")
	if err != nil {
		return err
	}
	slices.Sort(release)
	tested := false
	for _, f := range flavours {
		files, tests, err := filesIn(dir, f.tag)
		if err != nil {
			return err
		}
		tested = tested || tests
		slices.Sort(files)
		why, err := reason(dir, f, release, files)
		if err != nil {
			return err
		}
		if tests && why != "" {
			m.why[[2]string{f.name, filepath.ToSlash(dir)}] = why
		}
	}
	if tested {
		m.packages = append(m.packages, filepath.ToSlash(dir))
	}
	return nil
}

// reason returns the reason for running a package's tests in a build, or "".
func reason(dir string, f flavour, release, files []string) (string, error) {
	if slices.Contains(listed[f.name], filepath.ToSlash(dir)) {
		return "listed", nil
	}
	if f.name == "bindings" || strings.HasPrefix(filepath.ToSlash(dir), "tests") {
		return "", nil
	}
	for _, name := range files {
		if !slices.Contains(release, name) {
			return name, nil
		}
	}
	for _, name := range release {
		if !slices.Contains(files, name) {
			return name, nil
		}
	}
	for _, name := range files {
		if filepath.Ext(name) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		if f.name != "race" {
			if found := constants[f.name].Find(text); found != nil {
				return string(found), nil
			}
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		if why := concurrent(parsed); why != "" {
			return why + " in " + name, nil
		}
	}
	return "", nil
}

// concurrent returns the way in which a file starts goroutines or holds a lock, or "".
func concurrent(file *ast.File) (why string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			why = "go"
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			if x != nil && x.Name == "sync" && (n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex") {
				why = "sync." + n.Sel.Name
			}
		case *ast.ExprStmt: // it has no result
			call, _ := n.X.(*ast.CallExpr)
			if call == nil {
				break
			}
			if f, _ := call.Fun.(*ast.SelectorExpr); f != nil && f.Sel.Name == "Go" {
				why = "WaitGroup.Go"
			}
		}
		return why == ""
	})
	return why
}

// of returns the packages that run in a build, as arguments of the go command.
func (m matrix) of(build string) (list []string) {
	for _, name := range m.packages {
		if m.why[[2]string{build, name}] != "" {
			list = append(list, "./"+name)
		}
	}
	return list
}

// String returns a table with a line for each package.
func (m matrix) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range m.packages {
		fmt.Fprintf(w, "%s\trelease", name)
		for _, f := range flavours {
			if why := m.why[[2]string{f.name, name}]; why != "" {
				fmt.Fprintf(w, "\t%s: %s", f.name, why)
			} else {
				fmt.Fprint(w, "\t-")
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}
