package lifetime

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// fused reports products that a compiler may fuse with an addition, in one instruction. The
// compiler fuses values of its SSA form, so the check follows values of the SSA form of x/tools.
var fused = &analysis.Analyzer{
	Name: "fused",
	Doc: `reports float products that are rounded on some targets only

Go may compile x*y + z to one instruction, which doesn't round x*y, for arm64, loong64, ppc64,
riscv64, s390x, and from GOAMD64=v3 on for amd64. Then the result may differ from that of other
targets. The result of float64(x*y) + z is the same everywhere. The check reports products without a
conversion in packages that import budget/save. The flag -fused.also names further packages, by
import paths in which "..." stands for all paths below. upfront-vet -fix adds most conversions.

The check follows a product through variables, fields, elements, and calls of the package's own
functions, since a compiler may inline these calls. It doesn't follow a product from one round of a
loop to the next. Outside of package main, it reports a product that an exported function returns,
because a caller may add to the product. It reports products and quotients of complex128, because
they contain additions.

Some products need no rounding, and are never reported. One kind is a product by a constant power of
two, if the result doesn't overflow and isn't subnormal. The other kind is a product of float32 or
of integers of at most 32 bits, converted to float64, if all bits of the result fit.

Functions of math, math/cmplx and math/rand with such products are reported as well.

The check misses a product that a function of another package returns or adds, and a product that an
exported function stores for callers in other packages. It also misses a product in memory with two
names, and one that passes through a map, a channel, or a method of an unknown type.`,
	Run: func(pass *analysis.Pass) (any, error) {
		if (importsSave(pass.Pkg) || matches(fusedAlso, pass.Pkg.Path())) && len(pass.TypesInfo.Types) > 0 {
			p := newProducts(pass)
			p.find()
			p.findUses()
		}
		return nil, nil
	},
}

var fusedAlso string

func init() {
	fused.Flags.StringVar(&fusedAlso, "also", "", "also check these `packages`: import paths, with commas between them")
}

// inexact are the functions with float products that are added without a conversion, or with
// assembly that rounds in another way than Go code. Of math/cmplx all but exact are inexact.
var (
	inexact = nameSet("Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Erfcinv Erfinv Exp Exp2 " +
		"Expm1 Gamma Hypot J0 J1 Jn Lgamma Log Log10 Log1p Log2 Pow Sin Sincos Sinh Tan Tanh Y0 Y1 Yn")
	exact  = nameSet("Conj Inf IsInf IsNaN NaN")
	random = nameSet("ExpFloat64 NormFloat64")
)

func nameSet(names string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}

func isInexact(fn *types.Func) bool {
	if fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "math":
		return inexact[fn.Name()]
	case "math/cmplx":
		return !exact[fn.Name()]
	case "math/rand", "math/rand/v2":
		return random[fn.Name()]
	}
	return false
}

// findUses reports the uses of inexact functions.
func (p *products) findUses() {
	for id, object := range p.pass.TypesInfo.Uses {
		if fn, ok := object.(*types.Func); ok && isInexact(fn) && !p.keeps.covers(id.Pos()) {
			p.pass.Reportf(id.Pos(), "%s.%s has other last bits on some targets; use a table, "+
				"or a copy of its source with each product converted", fn.Pkg().Name(), fn.Name())
		}
	}
}

func importsSave(p *types.Package) bool {
	return slices.ContainsFunc(p.Imports(), func(p *types.Package) bool { return p.Path() == upfront+"budget/save" })
}

// matches reports whether an import path matches one of the patterns in list. "a/..." matches a and
// all paths below it.
func matches(list, path string) bool {
	for pattern := range strings.SplitSeq(list, ",") {
		if below, ok := strings.CutSuffix(pattern, "..."); pattern == path || ok && strings.HasPrefix(path+"/", below) {
			return pattern != ""
		}
	}
	return false
}

type products struct {
	pass    *analysis.Pass
	keeps   keeping
	ssa     *ssa.Package
	nodes   map[token.Pos]ast.Node // products, by their position in the SSA form
	callers map[*ssa.Function][]ssa.CallInstruction
	values  map[string][]*ssa.Function    // function literals, by signature
	bound   map[ssa.Value]ssa.Value       // variables, by the literals' values for them
	capture map[ssa.Value][]*ssa.Function // function literals, by a variable that they capture
	seen    map[*ssa.BinOp]bool
}

// rounded is the type of an explicit conversion. x/tools omits a conversion of a value to its own
// type, so newProducts gives such a conversion this type.
var rounded = types.NewNamed(types.NewTypeName(token.NoPos, nil, "rounded", nil), types.Typ[types.Float64], nil)

func newProducts(pass *analysis.Pass) *products {
	p := &products{
		pass: pass, keeps: keepsOf(pass), nodes: map[token.Pos]ast.Node{}, seen: map[*ssa.BinOp]bool{},
		callers: map[*ssa.Function][]ssa.CallInstruction{}, values: map[string][]*ssa.Function{},
		bound: map[ssa.Value]ssa.Value{}, capture: map[ssa.Value][]*ssa.Function{},
	}
	info := *pass.TypesInfo
	info.Types = maps.Clone(info.Types)
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				tv := info.Types[n]
				if info.Types[n.Fun].IsType() && tv.Value == nil && isFloat(tv.Type) && !isComplex(tv.Type) {
					tv.Type = rounded
					info.Types[n] = tv
				}
			case *ast.BinaryExpr:
				if n.Op == token.MUL || n.Op == token.QUO {
					p.nodes[n.OpPos] = n
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN || n.Tok == token.QUO_ASSIGN {
					p.nodes[n.Pos()] = n
				}
			}
			return true
		})
	}
	changed := *pass
	changed.TypesInfo = &info
	p.ssa = build(&changed)
	return p
}

func isFloat(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return anyTerm(p.Constraint(), isFloat)
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}

func isComplex128(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Complex128
}

func isComplex(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsComplex != 0
}

// anyTerm reports whether is holds for a type in the type set of a constraint.
func anyTerm(constraint types.Type, is func(types.Type) bool) bool {
	i, ok := constraint.Underlying().(*types.Interface)
	if !ok {
		return is(constraint)
	}
	for t := range i.EmbeddedTypes() {
		if u, ok := t.(*types.Union); ok {
			for term := range u.Terms() {
				if anyTerm(term.Type(), is) {
					return true
				}
			}
		} else if anyTerm(t, is) {
			return true
		}
	}
	return false
}

func (p *products) find() {
	var all []*ssa.Function
	for _, fn := range functions(p.pass, p.ssa) {
		all = appendAll(all, fn)
	}
	for _, fn := range all {
		if fn.Parent() != nil {
			key := fn.Signature.String()
			p.values[key] = append(p.values[key], fn)
		}
	}
	for _, fn := range all {
		for i := range instructions(fn) {
			switch i := i.(type) {
			case ssa.CallInstruction:
				for _, callee := range p.callees(i) {
					p.callers[callee] = append(p.callers[callee], i)
				}
			case *ssa.MakeClosure:
				literal := i.Fn.(*ssa.Function)
				for n, variable := range i.Bindings {
					if outer, ok := p.bound[variable]; ok {
						variable = outer
					}
					p.bound[literal.FreeVars[n]] = variable
					p.capture[variable] = append(p.capture[variable], literal)
				}
			}
		}
	}
	for _, fn := range all {
		for i := range instructions(fn) {
			switch i := i.(type) {
			case *ssa.BinOp:
				if !isFloat(i.Type()) {
					continue
				}
				switch {
				case isComplex128(i.Type()) && (i.Op == token.MUL || i.Op == token.QUO):
					p.report(i, "adds products of its parts, and a compiler may fuse them; "+
						"compute with float64, and convert each product")
				case i.Op == token.ADD || i.Op == token.SUB:
					for _, x := range []ssa.Value{i.X, i.Y} {
						p.trace(x, func(product *ssa.BinOp) { p.reportFused(product, i) })
					}
				}
			case *ssa.Call:
				if dim := i.Common().StaticCallee(); dim != nil && dim.String() == "math.Dim" {
					for _, x := range i.Common().Args {
						p.trace(x, func(product *ssa.BinOp) { p.reportFused(product, i) })
					}
				}
			case *ssa.Return:
				if fn.Object() == nil || !fn.Object().Exported() || p.pass.Pkg.Name() == "main" {
					continue
				}
				for _, result := range i.Results {
					for _, path := range floats(result.Type(), "", nil) {
						t := &tracing{p: p, found: func(product *ssa.BinOp) { p.reportFused(product, i) }}
						t.value(result, path, 0)
					}
				}
			}
		}
	}
}

func appendAll(list []*ssa.Function, fn *ssa.Function) []*ssa.Function {
	list = append(list, fn)
	for _, inner := range fn.AnonFuncs {
		list = appendAll(list, inner)
	}
	return list
}

func instructions(fn *ssa.Function) func(yield func(ssa.Instruction) bool) {
	return func(yield func(ssa.Instruction) bool) {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// callees returns the functions of the package that a call may run: a function that is named, or
// the method of a value of known type, or else each function literal of the same signature.
func (p *products) callees(call ssa.CallInstruction) []*ssa.Function {
	c := call.Common()
	fn := c.StaticCallee()
	if c.IsInvoke() {
		if of, ok := c.Value.(*ssa.MakeInterface); ok {
			fn = p.ssa.Prog.LookupMethod(of.X.Type(), c.Method.Pkg(), c.Method.Name())
		}
	} else if fn == nil {
		return p.values[c.Signature().String()]
	}
	if fn != nil && fn.Origin() != nil {
		fn = fn.Origin()
	}
	if fn == nil || len(fn.Blocks) == 0 || fn.Pkg != p.ssa {
		return nil
	}
	return []*ssa.Function{fn}
}

// arguments returns the arguments of a call, with the receiver.
func arguments(call ssa.CallInstruction) []ssa.Value {
	c := call.Common()
	if of, ok := c.Value.(*ssa.MakeInterface); ok && c.IsInvoke() {
		return slices.Concat([]ssa.Value{of.X}, c.Args)
	}
	return c.Args
}

// floats appends the paths of the floats in a value of type t, 16 at most.
func floats(t types.Type, path string, list []string) []string {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			list = floats(u.Field(i).Type(), fmt.Sprintf("%s.%d", path, i), list)
		}
	case *types.Array:
		for i := range min(u.Len(), 16) {
			list = floats(u.Elem(), fmt.Sprintf("%s[%d]", path, i), list)
		}
	default:
		if isFloat(t) {
			list = append(list, path)
		}
	}
	return list[:min(len(list), 16)]
}

func (p *products) reportFused(product *ssa.BinOp, with ssa.Instruction) {
	if _, ok := with.(*ssa.Return); ok {
		p.report(product, "is returned without rounding, and an addition of the caller may be fused with it; write ")
		return
	}
	p.report(product, "isn't rounded before the addition at "+(&pkg{pass: p.pass}).line(with.Pos(), product.Pos())+
		" on targets that fuse the two, such as arm64; write ")
}

// report reports a product once. It appends the product's conversion to the message.
func (p *products) report(product *ssa.BinOp, message string) {
	if p.seen[product] || p.keeps.covers(product.Pos()) {
		return
	}
	p.seen[product] = true
	d := analysis.Diagnostic{Pos: product.Pos()}
	t := types.TypeString(product.Type(), func(of *types.Package) string {
		if of == p.pass.Pkg {
			return ""
		}
		return of.Name()
	})
	var text string
	switch n := p.nodes[product.Pos()].(type) {
	case *ast.BinaryExpr:
		text = short(n)
		if isComplex(product.Type()) {
			break
		}
		message += t + "(" + text + ")"
		d.SuggestedFixes = convert(analysis.TextEdit{Pos: n.Pos(), End: n.Pos(), NewText: []byte(t + "(")},
			analysis.TextEdit{Pos: n.End(), End: n.End(), NewText: []byte(")")})
	case *ast.AssignStmt:
		x, y := n.Lhs[0], n.Rhs[0]
		if _, ok := y.(*ast.BinaryExpr); ok {
			y = &ast.ParenExpr{X: y}
		}
		text = short(x) + " " + n.Tok.String() + " " + short(n.Rhs[0])
		if isComplex(product.Type()) {
			break
		}
		message += short(x) + " = " + t + "(" + short(x) + " * " + short(y) + ")"
		if !hasCall(x) {
			whole := fmt.Sprintf("%[1]s = %[2]s(%[1]s * %[3]s)", types.ExprString(x), t, types.ExprString(y))
			d.SuggestedFixes = convert(analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(whole)})
		}
	default:
		return
	}
	d.Message = text + " " + message
	p.pass.Report(d)
}

func convert(edits ...analysis.TextEdit) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{Message: "Convert the product", TextEdits: edits}}
}

// short returns the text of an expression, or "…" for a long one.
func short(e ast.Expr) string {
	if text := types.ExprString(e); len(text) <= 50 && !strings.Contains(text, "{") {
		return text
	}
	return "…"
}

func hasCall(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		found = found || call
		return true
	})
	return found
}
