package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tags are those of the builds of make check; none is release's.
var tags = []string{"", "race", "asan", "checked", "upfront_cgo"}

// sourcesOfGo reads a package.
func sourcesOfGo(root, folder string) (all []*source, err error) {
	dir := filepath.Join(root, filepath.FromSlash(folder))
	var load types.Importer
	seen := map[string]bool{}
	for _, tag := range tags {
		context := build.Default
		if tag != "" {
			context.BuildTags = []string{tag}
		}
		p, err := context.ImportDir(dir, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if load == nil {
			if load, err = imports(dir); err != nil {
				return nil, err
			}
		}
		names := slices.Concat(p.GoFiles, p.CgoFiles)
		slices.Sort(names)
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			s, err := readSource(root, folder, name)
			if err != nil {
				return nil, err
			}
			s.compiles = func(text string) bool { return checks(load, dir, names, name, text) }
			if len(p.CgoFiles) > 0 { // the checks know nothing of C
				s.compiles = func(text string) bool { return builds(root, folder, tag, s.name, text) }
			}
			if s.faults, err = faultsOfGo(s.text); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// imports loads the packages that a package imports from the build cache.
func imports(dir string) (types.Importer, error) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}", ".")
	cmd.Dir = dir
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	}), nil
}

// checks reports whether a package passes the compiler's checks with another text of one file.
func checks(load types.Importer, dir string, names []string, changed, text string) bool {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		var is any
		if name == changed {
			is = text
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), is, parser.SkipObjectResolution)
		if err != nil {
			return false
		}
		files = append(files, file)
	}
	config := types.Config{Importer: load}
	_, err := config.Check(files[0].Name.Name, fset, files, nil)
	return err == nil
}

// builds reports whether go build takes a package with another text of one file.
func builds(root, folder, tag, changed, text string) bool {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	name, err := overlay(root, dir, map[string]string{changed: text})
	if err != nil {
		return false
	}
	cmd := exec.Command("go", "build", "-tags", tag, "-overlay", name, ".")
	cmd.Dir = filepath.Join(root, filepath.FromSlash(folder))
	return cmd.Run() == nil
}

// swapped has the operator that replaces an operator.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// texts are functions whose result people read.
var texts = map[string]bool{"String": true, "GoString": true, "Error": true}

// faultsOfGo lists the faults that a file can have.
func faultsOfGo(text string) (all []fault, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	add := func(from, to token.Pos, text, is string) {
		all = append(all, fault{from: at(from), to: at(to), text: text, is: is})
	}
	source := func(n ast.Node) string { return text[at(n.Pos()):at(n.End())] }
	negate := func(x ast.Expr) { add(x.Pos(), x.End(), "!("+source(x)+")", "a condition is negated") }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body == nil || n.Recv != nil && texts[n.Name.Name] {
				return false
			}
			zeros := ""
			if n.Type.Results != nil {
				for _, f := range n.Type.Results.List {
					zeros += strings.Repeat(", *new("+source(f.Type)+")", max(1, len(f.Names)))
				}
			}
			back := strings.TrimSuffix("return "+strings.TrimPrefix(zeros, ", "), " ")
			if len(n.Body.List) > 0 && source(n.Body.List[0]) != back {
				end := ""
				if fset.Position(n.Body.Lbrace).Line == fset.Position(n.Body.List[0].Pos()).Line {
					end = "\n"
				}
				add(n.Body.Lbrace+1, n.Body.Lbrace+1, "\n\t"+back+end, "a function returns early")
			}
		case *ast.IfStmt:
			negate(n.Cond)
			if n.Else != nil {
				add(n.Body.End(), n.Else.End(), "", "an else is dropped")
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						negate(x)
					}
				}
			}
		case *ast.BinaryExpr:
			if other, is := swapped[n.Op]; is {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(),
					n.Op.String()+" becomes "+other.String())
			}
		case *ast.BasicLit:
			if number, err := strconv.ParseUint(n.Value, 0, 62); n.Kind == token.INT && err == nil {
				add(n.Pos(), n.End(), strconv.FormatUint(number+1, 10), "a number is one more")
			}
		case *ast.ExprStmt:
			add(n.Pos(), n.End(), "", "a call is dropped")
		case *ast.DeferStmt:
			add(n.Pos(), n.End(), "", "a defer is dropped")
		case *ast.IncDecStmt:
			add(n.Pos(), n.End(), "", "a count is dropped")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "", "an assignment is dropped")
			}
		}
		return true
	})
	return all, nil
}
