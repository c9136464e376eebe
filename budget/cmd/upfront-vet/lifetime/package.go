package lifetime

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// pkg is the package under analysis.
type pkg struct {
	pass      *analysis.Pass
	ssa       *ssa.Package
	summaries map[*ssa.Function]*summary
	flows     map[*ssa.Function]*flow
	done      map[*ssa.Function]ssa.CallInstruction // functions that only this Do calls
	found     []analysis.Diagnostic                 // with their checks as categories
	calls     map[token.Pos]*ast.CallExpr           // by their parenthesis
	carrying  map[types.Type]bool
}

// memories follows memory through the functions of a package, and exports facts about functions
// that pass it on. It finds everything in one walk; each check reports its own findings.
var memories = &analysis.Analyzer{
	Name:       "memory",
	Doc:        "follows the memory of scopes through functions, for the other checks",
	FactTypes:  []analysis.Fact{new(summary)},
	ResultType: reflect.TypeFor[[]analysis.Diagnostic](),
	Run:        func(pass *analysis.Pass) (any, error) { return look(pass) },
}

// check returns the analyzer that reports one kind of finding.
func check(name, doc string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, Requires: []*analysis.Analyzer{memories},
		Run: func(pass *analysis.Pass) (any, error) {
			keeps := keepsOf(pass)
			for _, d := range pass.ResultOf[memories].([]analysis.Diagnostic) {
				if d.Category == name && !keeps.covers(d.Pos) {
					pass.Reportf(d.Pos, "%s", d.Message)
				}
			}
			return nil, nil
		},
	}
}

// isOurs reports whether functions of a package may pass on memory of scopes. Such packages are in
// the main module, or import upfront, also indirectly. The table passing lists functions of the
// standard library.
func isOurs(pass *analysis.Pass) bool {
	if len(pass.TypesInfo.Types) == 0 { // the driver didn't read its source
		return false
	}
	mine := pass.Module != nil && pass.Module.Path != "" && pass.Module.Path != "std" && pass.Module.Version == ""
	return mine || knows(pass.Pkg, map[*types.Package]bool{})
}

func knows(p *types.Package, seen map[*types.Package]bool) bool {
	if seen[p] {
		return false
	}
	seen[p] = true
	if p.Path() == upfront+"scope" || p.Path() == upfront+"arena" {
		return true
	}
	return slices.ContainsFunc(p.Imports(), func(p *types.Package) bool { return knows(p, seen) })
}

func look(pass *analysis.Pass) ([]analysis.Diagnostic, error) {
	if !isOurs(pass) {
		return nil, nil
	}
	built := build(pass)
	p := &pkg{pass: pass, ssa: built, summaries: map[*ssa.Function]*summary{}, flows: map[*ssa.Function]*flow{},
		carrying: map[types.Type]bool{}}
	named := functions(pass, built)
	p.findDone(named)
	for _, fn := range named {
		s := p.summary(fn)
		if object, ok := fn.Object().(*types.Func); ok && s != nil && len(s.Moves)+len(s.Closes) > 0 {
			pass.ExportObjectFact(object, s)
		}
		f := p.flow(fn)
		f.escapes()
		f.afterClose()
		f.unclosed()
		f.mapKeys()
		f.appends()
	}
	// Only the first of several findings at one place is reported.
	slices.SortFunc(p.found, func(a, b analysis.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(p.found, func(a, b analysis.Diagnostic) bool {
		return a.Category == b.Category && a.Pos == b.Pos
	}), nil
}

// build makes the SSA form of a package, as x/tools' buildssa does. buildssa reads every package to
// find functions that don't return. build has a list of those in the standard library, so most
// packages needn't be read.
func build(pass *analysis.Pass) *ssa.Package {
	prog := ssa.NewProgram(pass.Fset, 0)
	prog.SetNoReturn(func(fn *types.Func) bool { return fatal[fn.FullName()] })
	for _, p := range pass.Pkg.Imports() {
		prog.CreatePackage(p, nil, nil, true)
	}
	built := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	built.Build()
	return built
}

var fatal = map[string]bool{
	"os.Exit": true, "runtime.Goexit": true, "log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true,
	"log.Panic": true, "log.Panicf": true, "log.Panicln": true,
	"(*log.Logger).Fatal": true, "(*log.Logger).Fatalf": true, "(*log.Logger).Fatalln": true,
	"(*testing.common).Fatal": true, "(*testing.common).Fatalf": true, "(*testing.common).FailNow": true,
	"(*testing.common).Skip": true, "(*testing.common).Skipf": true, "(*testing.common).SkipNow": true,
}

// functions returns the named functions of a package, and its initializer with the literals of its
// variables.
func functions(pass *analysis.Pass, built *ssa.Package) (list []*ssa.Function) {
	list = append(list, built.Func("init"))
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if object, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
					if fn := built.Prog.FuncValue(object); fn != nil {
						list = append(list, fn)
					}
				}
			}
		}
	}
	return list
}

func (p *pkg) flow(fn *ssa.Function) *flow {
	f := p.flows[fn]
	if f == nil {
		f = newFlow(p, fn)
		p.flows[fn] = f
	}
	return f
}

func (p *pkg) report(check string, pos token.Pos, format string, args ...any) {
	p.found = append(p.found, analysis.Diagnostic{Category: check, Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// expr returns the source text of a call.
func (p *pkg) expr(i ssa.Instruction) string {
	if p.calls == nil {
		p.calls = map[token.Pos]*ast.CallExpr{}
		for _, file := range p.pass.Files {
			ast.Inspect(file, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					p.calls[c.Lparen] = c
				}
				return true
			})
		}
	}
	c := p.calls[i.Pos()]
	if c == nil {
		return "it"
	}
	if text := types.ExprString(c); len(text) < 50 && !strings.Contains(text, "{") {
		return text
	}
	return types.ExprString(c.Fun) + "(…)"
}

// line returns the position of pos, for a message that is reported at from.
func (p *pkg) line(pos, from token.Pos) string {
	at, here := p.pass.Fset.Position(pos), p.pass.Fset.Position(from)
	if at.Filename == here.Filename {
		return fmt.Sprintf("line %d", at.Line)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// report reports memory, unless it was requested of a closed scope: such a request returns none.
func (f *flow) report(check string, pos token.Pos, e elem, remedy string) {
	if o := f.origin(e.scope()); o == nil || f.states(o)[e.made] != closed {
		f.p.report(check, pos, "%s; %s", f.story(e), remedy)
	}
}

// story describes memory, with the places where its scope was opened and ends.
func (f *flow) story(e elem) string {
	o, at, name := f.origin(e.scope()), e.made.Pos(), f.p.expr(e.made)
	if o == nil {
		return name + " is memory of a scope"
	}
	opening, ends := f.p.line(o.at.Pos(), at), ""
	if n := len(o.closes); n > 0 {
		ends = ", which closes at " + f.p.line(o.closes[n-1].Pos(), at)
		if _, ok := o.closes[n-1].(*ssa.Defer); ok {
			ends = fmt.Sprintf(", which closes when %s returns", fnName(o.fn))
		}
	}
	switch {
	case o.load:
		return fmt.Sprintf("%s is memory of the load at %s", name, opening)
	case o.lent():
		return fmt.Sprintf("%s is memory of the scope of the Do at %s, which closes when that returns", name, opening)
	case o.scope.path == opened:
		return fmt.Sprintf("%s is memory of the scope opened at %s%s", name, opening, ends)
	case ends == "":
		ends = ", which ends with its scope"
	}
	return fmt.Sprintf("%s is a temporary of the Temp at %s%s", name, opening, ends)
}

func fnName(fn *ssa.Function) string {
	if fn.Parent() != nil {
		return "the function literal"
	}
	return fn.Name()
}
