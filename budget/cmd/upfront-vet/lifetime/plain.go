package lifetime

import (
	"go/ast"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/upfront-mem/upfront/arena/plain"
)

var plainTypes = &analysis.Analyzer{
	Name: "plain",
	Doc: `reports types with Go pointers that are declared for an arena

The collector doesn't look into a block. scope.Plain, scope.Object, arena.HeapOf, the block pools of
package arena, and New, Slice and Pool of a Scope refuse such a type when they are called. This
check reports the same error before the program runs. If a generic function or method passes its
type parameter to these functions, the check looks at its uses.`,
	FactTypes: []analysis.Fact{new(declares)},
	Run: func(pass *analysis.Pass) (any, error) {
		uses := usesOf(pass)
		for grown := true; grown; { // a generic function may pass its types to another
			grown = false
			for _, u := range uses {
				grown = u.handOn(pass) || grown
			}
		}
		for _, u := range uses {
			for _, d := range u.declared(pass) {
				if lines := plain.Check(read{d.t}); lines != nil {
					name := types.TypeString(d.t, types.RelativeTo(pass.Pkg))
					pass.ReportRangef(u.id, "%s[%s]%s: %s", d.name, name, d.by, strings.Join(lines, "\n\t"))
				}
			}
		}
		return nil, nil
	},
}

// declares is the fact of a generic function or method, or of a method of a generic type. For each
// function of declaring it lists the type parameters, by number, whose values are part of the
// declared type. Those of a method's receiver come before its own.
type declares map[string][]int

func (*declares) AFact() {}

// use is a mention of a generic function or method, or of a method of a generic type, with its type
// arguments. Those of a method's receiver come before its own.
type use struct {
	id    *ast.Ident
	fn    *types.Func
	types []types.Type
	in    *types.Func // the function around it, or nil
}

// usesOf returns the uses in a package that aren't silenced, in the order of the text.
func usesOf(pass *analysis.Pass) (list []use) {
	keeps := keepsOf(pass)
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			var in *types.Func
			if d, ok := d.(*ast.FuncDecl); ok {
				in, _ = pass.TypesInfo.Defs[d.Name].(*types.Func)
			}
			ast.Inspect(d, func(n ast.Node) bool {
				id, _ := n.(*ast.Ident)
				fn, ok := pass.TypesInfo.Uses[id].(*types.Func)
				if !ok || fn.Pkg() == nil || keeps.covers(id.Pos()) {
					return true
				}
				var args []types.Type
				if of := receiver(fn); of != nil {
					args = slices.Collect(of.TypeArgs().Types())
				}
				args = slices.AppendSeq(args, pass.TypesInfo.Instances[id].TypeArgs.Types())
				if len(args) > 0 {
					list = append(list, use{id, fn.Origin(), args, in})
				}
				return true
			})
		}
	}
	return list
}

// declared is a type that a use declares. name is the declaring function; by is the generic
// function between them, or "".
type declared struct {
	name, by string
	t        types.Type
}

func (u *use) declared(pass *analysis.Pass) (list []declared) {
	if name := nameOfFunc(u.fn); declaring[name] && strings.HasPrefix(u.fn.Pkg().Path(), upfront) {
		return []declared{{name, "", u.types[0]}}
	}
	var fact declares
	if !pass.ImportObjectFact(u.fn, &fact) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fact)) {
		for _, i := range fact[name] {
			if i < len(u.types) {
				list = append(list, declared{name, " by " + u.fn.Name(), u.types[i]})
			}
		}
	}
	return list
}

// handOn adds to the fact of the function around a use the type parameters that the use declares.
// It reports whether the fact grew.
func (u *use) handOn(pass *analysis.Pass) (grown bool) {
	if u.in == nil {
		return false
	}
	sig := u.in.Signature()
	params := slices.AppendSeq(slices.Collect(sig.RecvTypeParams().TypeParams()), sig.TypeParams().TypeParams())
	fact := declares{}
	pass.ImportObjectFact(u.in, &fact)
	for _, d := range u.declared(pass) {
		for i, p := range params {
			if !slices.Contains(fact[d.name], i) && lies(p, d.t) {
				fact[d.name], grown = append(fact[d.name], i), true
			}
		}
	}
	if grown {
		pass.ExportObjectFact(u.in, &fact)
	}
	return grown
}

// Reports whether values of the type parameter p are part of values of t.
func lies(p *types.TypeParam, t types.Type) (found bool) {
	plain.Walk(read{t}, func(part plain.Part) (into bool) {
		found = found || types.Unalias(part.Type.(read).Type) == types.Type(p)
		return !found
	})
	return found
}

// read adapts a type of source code to package plain.
type read struct{ types.Type }

func (t read) Name() string {
	switch u := types.Unalias(t.Type).(type) {
	case *types.Named:
		name := u.String()
		if u.Obj().Pkg() != nil {
			name = strings.TrimPrefix(name, u.Obj().Pkg().Path()+".")
		}
		return name
	case *types.Basic:
		return strings.TrimPrefix(u.Name(), "unsafe.")
	}
	return ""
}

func (t read) PkgPath() string {
	switch u := types.Unalias(t.Type).(type) {
	case *types.Named:
		if u.Obj().Pkg() != nil {
			return u.Obj().Pkg().Path()
		}
	case *types.Basic:
		if u.Kind() == types.UnsafePointer {
			return "unsafe"
		}
	}
	return ""
}

func (t read) String() string {
	if i, ok := types.Unalias(t.Type).(*types.Interface); ok && i.Empty() {
		return "interface {}"
	}
	return types.TypeString(t.Type, func(p *types.Package) string { return p.Name() })
}

func (t read) Kind() reflect.Kind {
	if _, ok := types.Unalias(t.Type).(*types.TypeParam); ok {
		return reflect.Bool // the check is at the uses
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch u.Kind() {
		case types.String:
			return reflect.String
		case types.UnsafePointer:
			return reflect.UnsafePointer
		}
		return reflect.Bool
	case *types.Struct:
		return reflect.Struct
	case *types.Array:
		return reflect.Array
	case *types.Slice:
		return reflect.Slice
	case *types.Pointer:
		return reflect.Pointer
	case *types.Map:
		return reflect.Map
	case *types.Chan:
		return reflect.Chan
	case *types.Signature:
		return reflect.Func
	}
	return reflect.Interface
}

func (t read) NumField() int { return t.Underlying().(*types.Struct).NumFields() }

// Size returns 0, because source code is read for any target.
func (t read) Size() uintptr { return 0 }

func (t read) Field(i int) (name string, offset uintptr, of plain.Type) {
	f := t.Underlying().(*types.Struct).Field(i)
	return f.Name(), 0, read{f.Type()}
}

func (t read) Len() int { return int(t.Underlying().(*types.Array).Len()) }

func (t read) Elem() plain.Type {
	return read{t.Underlying().(interface{ Elem() types.Type }).Elem()}
}
