//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// public returns the packages of the root module that other modules may import, sorted.
func public() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(arrows)), func(name string) bool {
		return strings.Contains(name, "internal/")
	})
}

// TestAPI compares the declarations of all exported names with a file, so that a review sees each
// change of them. The file includes names that only some builds or systems have.
func TestAPI(t *testing.T) {
	var lines []string
	for _, name := range public() {
		for _, line := range exported(t, name) {
			lines = append(lines, name+": "+line)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/api.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	recorded := strings.Split(strings.TrimSuffix(page(t, "tests/testdata/api.txt"), "\n"), "\n")
	gone := func(from, in []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return slices.Contains(in, line) })
	}
	const how = "if that is meant: go test ./tests -run API -update"
	assert.Empty(t, gone(recorded, lines), "no longer there; %s", how)
	assert.Empty(t, gone(lines, recorded), "not in testdata/api.txt; %s", how)
	assert.True(t, slices.Equal(recorded, lines), "sorted, each once; %s", how)
}

// exported lists the exported declarations of a package, sorted.
func exported(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", name, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, name)
	f := face{t: t, seen: map[string]bool{}, embeddedIn: map[string][]string{}}
	var functions []*ast.FuncDecl
	var types []*ast.TypeSpec
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		files := token.NewFileSet()
		for _, d := range parse(t, files, path, source, parser.SkipObjectResolution).Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				// An older Go's syntax tree has no type parameters of a method, but their text is
				// between the name and the parameters.
				end, open := files.Position(d.Name.End()).Offset, files.Position(d.Type.Params.Opening).Offset
				d.Name.Name += string(source[end:open])
				d.Type.TypeParams = nil
				functions = append(functions, d)
			case *ast.GenDecl:
				types = append(types, f.declared(d)...)
			}
		}
	}
	for _, spec := range types {
		f.typed(spec)
	}
	for _, fn := range functions {
		f.function(fn)
	}
	return slices.Sorted(maps.Keys(f.seen))
}

// face collects the lines, and the types that embed a type: these promote its fields and methods.
type face struct {
	t          *testing.T
	seen       map[string]bool
	embeddedIn map[string][]string
}

func (f face) add(line string) { f.seen[line] = true }

// text returns the source of a node as one line.
func (f face) text(node ast.Node) string {
	var out strings.Builder
	require.NoError(f.t, printer.Fprint(&out, token.NewFileSet(), node))
	return strings.Join(strings.Fields(out.String()), " ")
}

// declared adds constants and variables, and returns the types.
func (f face) declared(d *ast.GenDecl) (types []*ast.TypeSpec) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			f.values(d.Tok, spec)
		case *ast.TypeSpec:
			types = append(types, spec)
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, m := range of.Fields.List {
					if of := base(m.Type); len(m.Names) == 0 {
						f.embeddedIn[of] = append(f.embeddedIn[of], spec.Name.Name)
					}
				}
			}
		}
	}
	return types
}

// visible reports whether a type is exported, or embedded in a type that is visible.
func (f face) visible(name string) bool {
	return ast.IsExported(name) || slices.ContainsFunc(f.embeddedIn[name], f.visible)
}

func (f face) function(fn *ast.FuncDecl) {
	if !fn.Name.IsExported() {
		return
	}
	alone := &ast.FuncDecl{Name: fn.Name, Type: fn.Type}
	if fn.Recv != nil {
		of := fn.Recv.List[0].Type
		if !f.visible(base(of)) {
			return
		}
		// The receiver's name doesn't matter.
		alone.Recv = &ast.FieldList{List: []*ast.Field{{Type: of}}}
	}
	f.add(f.text(alone))
}

// values returns a line for each constant, with its value where the source has one, and each
// variable.
func (f face) values(kind token.Token, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		line := kind.String() + " " + name.Name
		if spec.Type != nil {
			line += " " + f.text(spec.Type)
		}
		if kind == token.CONST && i < len(spec.Values) {
			line += " = " + f.text(spec.Values[i])
		}
		f.add(line)
	}
}

// typed returns a line for a type, and one for each exported field or method of a struct or
// interface.
func (f face) typed(spec *ast.TypeSpec) {
	if !f.visible(spec.Name.Name) {
		return
	}
	head := ast.TypeSpec{Name: spec.Name, TypeParams: spec.TypeParams, Assign: spec.Assign, Type: spec.Type}
	var members []*ast.Field
	switch of := spec.Type.(type) {
	case *ast.StructType:
		members, head.Type = of.Fields.List, &ast.StructType{Fields: &ast.FieldList{}}
	case *ast.InterfaceType:
		members, head.Type = of.Methods.List, &ast.InterfaceType{Methods: &ast.FieldList{}}
	}
	f.add(f.text(&ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{&head}}))
	for _, m := range members {
		if len(m.Names) == 0 {
			f.add("type " + spec.Name.Name + ", " + f.text(m.Type))
		}
		for _, name := range m.Names {
			if name.IsExported() {
				f.add("type " + spec.Name.Name + ", " + name.Name + " " + f.text(m.Type))
			}
		}
	}
}
