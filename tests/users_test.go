//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestEachNameHasAUser checks that each exported name of the public packages has a user: another
// package, also one of a nested module, or an example. The type of a field, parameter or result has
// the users of the field or of the function. testdata/unused.txt lists the exceptions.
//
// The names are those of the release build on Linux. In a file of another build or system, each
// identifier is a use of the names of the packages that the file imports.
func TestEachNameHasAUser(t *testing.T) {
	step.Needs(t, step.Check)
	lines := survey(t, os.DirFS(".."), module, public())
	const list = "testdata/unused.txt"
	if *update {
		require.NoError(t, os.WriteFile(list, []byte(strings.Join(append(lines, ""), "\n")), 0o644))
	}
	recorded := strings.Split(strings.TrimSuffix(page(t, "tests/"+list), "\n"), "\n")
	for _, line := range lines {
		assert.Contains(t, recorded, line, "no example and no other package uses it")
	}
	for _, line := range recorded {
		assert.Contains(t, lines, line, "it is gone or in use: go test ./tests -run EachNameHasAUser -update")
	}
}

// TestNamesWithoutAUser is the control.
func TestNamesWithoutAUser(t *testing.T) {
	step.Needs(t, step.Check)
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"go.mod": "module pond\n",
		"frog/frog.go": `package frog
type Frog struct { Age, Size int; Eggs []Egg; Skin *Skin }
type Egg struct { Mass int }
type Skin struct { Red int }
type Tail struct{}
type Leg[T any] struct { Long T }
func (Leg[T]) Jump() T { panic(1) }
func (Leg[T]) Kick() {}
type idle interface { Sleep() }
type fin struct{}
func (fin) Swim() {}
func (fin) Sink() {}
type Newt struct { fin }
func (*Frog) Croak() Tail { return Tail{} }
func (*Frog) Sleep() {}
func (*Frog) Doze() {}
func (f *Frog) String() string { f.Sleep(); return "" }
type Cause struct { Err error }
func (c Cause) Error() string { return "" }
func (c Cause) Unwrap() error { return c.Err }
func (c Cause) Is(string) bool { return false }
type Eater interface { Eat(Fly) }
type Fly struct{}
func (*Frog) Eat(Fly) {}
func Old() {}
func Shown() {}
func Tested() {}
func ForWindows() {}
func Feed[T Food](n Amount) {}
type Amount int
type Food interface { Raw() }
var Pond, Lake Frog
const Many, Few = 9, 1`,
		"frog/frog_test.go": `package frog_test
import "pond/frog"
func TestFrog() { frog.Tested() }
func Example() { frog.Shown() }`,
		"use/use.go": `package use
import "pond/frog"
var tail = frog.Pond.Croak()
var _ = frog.Frog{Age: 1, Skin: nil}
type lazy interface { Doze() }
var _ lazy = frog.Pond`,
		"use/use_windows.go": `package use
import "pond/frog"
func f() { frog.ForWindows(); Old() }`,
		"use/other_windows.go": `package use
func Few() {}`,
		"nested/go.mod": "module pond/nested\n",
		"nested/use.go": `package nested
import ("example.com/missing"; "pond/frog")
var _ = missing.Call(new(frog.Leg[int]).Jump(), frog.Newt{}.Swim, frog.Cause{}).More(frog.Many)
var _ = missing.Call(frog.Eater(nil), frog.Feed)`,
		"frog/testdata/frog.go": `package testdata
import "pond/frog"
var _ = frog.Few`,
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var names []string
	for _, line := range survey(t, tree, "pond", []string{"frog"}) {
		names = append(names, strings.TrimPrefix(line, "frog: "))
	}
	want := "Cause.Err Cause.Is Egg Egg.Mass Few Frog.Eggs Frog.Size Frog.Sleep Lake Leg.Kick Leg.Long Skin.Red " +
		"Tested fin.Sink"
	assert.Equal(t, strings.Fields(want), names)
}

// A naming is an exported name of a public package.
type naming struct {
	line   string // "scope: Scope.Close"
	object types.Object
	used   bool
}

// A surveyed package has the files of this build, and the words of each file of another build.
type surveyed struct {
	path                  string
	own, inside, external []*ast.File // inside and external: of its tests
	others                []map[string]bool
	imports               map[string]bool
	checked               *types.Package
	info                  types.Info
}

type surveying struct {
	files    *token.FileSet
	packages map[string]*surveyed
	foreign  types.Importer
	names    map[token.Pos]*naming
}

// survey returns the names without a user of some packages of the root module of a tree.
func survey(t *testing.T, tree fs.FS, root string, public []string) (lines []string) {
	t.Helper()
	s := &surveying{token.NewFileSet(), map[string]*surveyed{}, nil, map[token.Pos]*naming{}}
	s.read(t, tree)
	s.foreign = s.exportData(t)
	for _, name := range public {
		p := s.packages[root+"/"+name]
		require.NotNil(t, p, name)
		s.declared(name, s.check(p).Scope())
	}
	for _, p := range s.packages {
		s.visit(p)
	}
	s.implement(t)
	for _, n := range s.names {
		if !n.used {
			lines = append(lines, n.line)
		}
	}
	slices.Sort(lines)
	return lines
}

// read parses the Go files of all modules of a tree.
func (s *surveying) read(t *testing.T, tree fs.FS) {
	t.Helper()
	build := build.Default
	build.CgoEnabled, build.JoinPath = true, path.Join
	build.OpenFile = func(name string) (io.ReadCloser, error) { return tree.Open(name) }
	paths := map[string]string{} // of the package in each folder
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && path.Ext(name) != ".go" {
			return err
		}
		if d.IsDir() {
			hidden := len(name) > 1 && d.Name()[0] == '.'
			if hidden || name == "build" || d.Name() == "testdata" && !strings.HasPrefix(name, "tests/") {
				return fs.SkipDir
			}
			paths[name] = paths[path.Dir(name)] + "/" + d.Name()
			if mod, err := fs.ReadFile(tree, path.Join(name, "go.mod")); err == nil {
				first, _, _ := strings.Cut(string(mod), "\n")
				paths[name] = strings.TrimPrefix(first, "module ")
			}
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		require.NoError(t, err)
		here, err := build.MatchFile(path.Dir(name), path.Base(name))
		require.NoError(t, err)
		p := s.packages[paths[path.Dir(name)]]
		if p == nil {
			p = &surveyed{path: paths[path.Dir(name)], imports: map[string]bool{}}
			s.packages[p.path] = p
		}
		if !here {
			p.others = append(p.others, wordsIn(source))
			return nil
		}
		file := parse(t, s.files, name, source, parser.SkipObjectResolution)
		for _, spec := range file.Imports {
			p.imports[strings.Trim(spec.Path.Value, `"`)] = true
		}
		switch {
		case !strings.HasSuffix(name, "_test.go"):
			p.own = append(p.own, file)
		case strings.HasSuffix(file.Name.Name, "_test"):
			p.external = append(p.external, file)
		default:
			p.inside = append(p.inside, file)
		}
		return nil
	}))
}

// wordsIn returns the identifiers and strings of a file.
func wordsIn(source []byte) map[string]bool {
	found := map[string]bool{}
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, 0)
	for {
		switch _, kind, text := scan.Scan(); kind {
		case token.EOF:
			return found
		case token.IDENT:
			found[text] = true
		case token.STRING:
			found[strings.Trim(text, `"`)] = true
		}
	}
}

// exportData returns an importer of the packages outside of the tree: the standard library, and the
// libraries of the root module. The libraries of nested modules have
// invalid types here.
func (s *surveying) exportData(t *testing.T) types.Importer {
	t.Helper()
	wanted := map[string]bool{}
	for _, imported := range parse(t, s.files, "common.go", common, parser.ImportsOnly).Imports {
		wanted[strings.Trim(imported.Path.Value, `"`)] = true
	}
	for _, p := range s.packages {
		maps.Copy(wanted, p.imports)
	}
	delete(wanted, "C")
	maps.DeleteFunc(wanted, func(name string, _ bool) bool { return s.packages[name] != nil })
	list := append([]string{"list", "-e", "-export", "-json=ImportPath,Export"}, slices.Sorted(maps.Keys(wanted))...)
	at := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "..", list...))); ; {
		var p struct{ ImportPath, Export string }
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		at[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(s.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(at[path]) })
}

// Import returns a package, without its tests.
func (s *surveying) Import(path string) (*types.Package, error) {
	if p := s.packages[path]; p != nil {
		return s.check(p), nil
	}
	return s.foreign.Import(path)
}

// typed checks files with go/types. It ignores errors: some libraries are missing.
func (s *surveying) typed(path string, files []*ast.File, from types.Importer) (*types.Package, types.Info) {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: from, FakeImportC: true, Error: func(error) {}}
	checked, _ := config.Check(path, s.files, files, &info)
	return checked, info
}

func (s *surveying) check(p *surveyed) *types.Package {
	if p.checked == nil {
		p.checked, p.info = s.typed(p.path, p.own, s)
	}
	return p.checked
}

// declared adds the exported names of a package, and those of its types, also of embedded
// types.
func (s *surveying) declared(pkg string, scope *types.Scope) {
	add := func(name string, object types.Object) {
		if object.Exported() {
			s.names[object.Pos()] = &naming{line: pkg + ": " + name, object: object}
		}
	}
	var members func(of *types.Named)
	members = func(of *types.Named) {
		for m := range of.Methods() {
			add(of.Obj().Name()+"."+m.Name(), m)
		}
		fields, ok := of.Underlying().(*types.Struct)
		if !ok {
			return
		}
		for field := range fields.Fields() {
			inner, ok := field.Type().(*types.Named)
			switch {
			case !field.Embedded():
				add(of.Obj().Name()+"."+field.Name(), field)
			case ok && inner.Obj().Pkg() == of.Obj().Pkg() && !inner.Obj().Exported():
				members(inner.Origin())
			}
		}
	}
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		add(name, object)
		if of, ok := object.Type().(*types.Named); ok && object.Exported() && object.Pkg() == of.Obj().Pkg() {
			if _, isType := object.(*types.TypeName); isType {
				members(of)
			}
		}
	}
}

// visit marks the names that a package or its tests use.
func (s *surveying) visit(p *surveyed) {
	s.check(p)
	with, inside := s.typed(p.path, slices.Concat(p.own, p.inside), s)
	_, external := s.typed(p.path+"_test", p.external, tested{s, with})
	for _, info := range []types.Info{p.info, inside, external} {
		for ident, object := range info.Uses {
			if object.Pkg() != nil && (object.Pkg().Path() != p.path || s.inExample(p, ident.Pos())) {
				s.use(object)
			}
		}
	}
	for _, words := range p.others {
		for _, n := range s.names {
			if of := n.object.Pkg().Path(); of != p.path && words[of] && words[n.object.Name()] {
				s.use(n.object)
			}
		}
	}
}

// tested imports a package with the files of its own tests.
type tested struct {
	*surveying
	pkg *types.Package
}

func (with tested) Import(path string) (*types.Package, error) {
	if path == with.pkg.Path() {
		return with.pkg, nil
	}
	return with.surveying.Import(path)
}

// inExample reports whether a position is in a file of examples, outside of its tests.
func (s *surveying) inExample(p *surveyed, at token.Pos) bool {
	for _, file := range slices.Concat(p.inside, p.external) {
		if at < file.FileStart || at >= file.FileEnd {
			continue
		}
		examples := false
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			example := strings.HasPrefix(fn.Name.Name, "Example")
			examples = examples || example
			if !example && fn.Pos() <= at && at < fn.End() && fn.Name.IsExported() {
				return false
			}
		}
		return examples
	}
	return false
}

// use marks a name, and the types of a field, parameters or results.
func (s *surveying) use(object types.Object) {
	n := s.names[object.Pos()]
	if n == nil || n.used {
		return
	}
	n.used = true
	switch object := object.(type) {
	case *types.Func:
		s.useType(object.Signature())
		s.useConstraints(object.Signature().TypeParams())
	case *types.TypeName:
		if of, ok := object.Type().(*types.Named); ok {
			s.useConstraints(of.TypeParams())
		}
		if object.IsAlias() {
			s.useType(types.Unalias(object.Type()))
			return
		}
		switch of := object.Type().Underlying().(type) {
		case *types.Struct:
			for field := range of.Fields() {
				if field.Embedded() {
					s.useType(field.Type())
				}
			}
		case *types.Interface: // a type that implements it names them
			for m := range of.Methods() {
				s.useType(m.Type())
			}
		}
	default:
		s.useType(object.Type())
	}
}

func (s *surveying) useConstraints(list *types.TypeParamList) {
	for p := range list.TypeParams() {
		s.useType(p.Constraint())
	}
}

func (s *surveying) useType(of types.Type) {
	switch of := of.(type) {
	case *types.Alias:
		s.use(of.Obj())
		s.useType(of.Rhs())
	case *types.Named:
		s.use(of.Obj())
		for arg := range of.TypeArgs().Types() {
			s.useType(arg)
		}
	case *types.Map:
		s.useType(of.Key())
		s.useType(of.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		s.useType(of.Elem())
	case *types.Signature:
		s.useType(of.Params())
		s.useType(of.Results())
	case *types.Tuple:
		for v := range of.Variables() {
			s.useType(v.Type())
		}
	}
}

// common are the interfaces through which a standard package calls methods.
const common = `package common
import ("encoding"; "encoding/json"; "fmt"; "io"; "log/slog"; "net/http"; "sync")
type (
	A interface { error }
	B interface { Unwrap() error }
	C interface { Unwrap() []error }
	D interface { Is(error) bool }
	E interface { As(any) bool }
	F interface { fmt.Stringer }
	G interface { fmt.Formatter }
	H interface { encoding.TextMarshaler }
	I interface { encoding.TextUnmarshaler }
	J interface { json.Marshaler }
	K interface { json.Unmarshaler }
	L interface { io.Closer }
	M interface { io.Writer }
	N interface { io.StringWriter }
	O interface { io.ByteWriter }
	P interface { io.WriterTo }
	Q interface { http.Handler }
	R interface { slog.LogValuer }
	S interface { sync.Locker } // it keeps go vet from copies
)`

// implement marks the methods by which used types implement interfaces: those of package common,
// those of other packages, and the used ones of the same package.
func (s *surveying) implement(t *testing.T) {
	t.Helper()
	pkg, _ := s.typed("common", []*ast.File{parse(t, s.files, "common.go", common, 0)}, s)
	packages := []*types.Package{pkg}
	for _, p := range s.packages {
		packages = append(packages, p.checked)
	}
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			object := p.Scope().Lookup(name)
			face, ok := object.Type().Underlying().(*types.Interface)
			for _, n := range s.names {
				if ok && n.used && (n.object.Pkg() != p || s.names[object.Pos()] != nil && s.names[object.Pos()].used) {
					s.satisfy(n.object, face)
				}
			}
		}
	}
}

// satisfy marks the methods of a type that implements an interface.
func (s *surveying) satisfy(object types.Object, face *types.Interface) {
	var methods []types.Object
	for want := range face.Methods() {
		has, _, _ := types.LookupFieldOrMethod(types.NewPointer(object.Type()), true, nil, want.Name())
		if has == nil || !types.Identical(has.Type(), want.Type()) {
			return
		}
		methods = append(methods, has)
	}
	for _, m := range methods {
		s.use(m)
	}
}
