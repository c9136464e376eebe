package lifetime

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/upfront-mem/upfront/arena/plain"
)

// declaring are the functions that refuse a type argument with Go pointers.
var declaring = map[string]bool{"scope.Plain": true, "scope.Object": true, "arena.HeapOf": true,
	"arena.NewBlockPool": true, "arena.NewBlockHandlePool": true}

var plainTypes = &analysis.Analyzer{
	Name: "plain",
	Doc: `reports types with Go pointers that are declared for an arena

The collector doesn't look into a block. scope.Plain, scope.Object, arena.HeapOf and the block pools of package arena refuse
such a type when the program starts; this is the same, in the same words, before that.`,
	Run: func(pass *analysis.Pass) (any, error) {
		keeps := keepsOf(pass)
		var at []*ast.Ident
		for id := range pass.TypesInfo.Instances {
			at = append(at, id)
		}
		slices.SortFunc(at, func(a, b *ast.Ident) int { return int(a.Pos() - b.Pos()) })
		for _, id := range at {
			fn, ok := pass.TypesInfo.Uses[id].(*types.Func)
			if !ok || fn.Pkg() == nil {
				continue
			}
			rest, ours := strings.CutPrefix(fn.Pkg().Path(), upfront)
			if name := rest + "." + fn.Name(); ours && declaring[name] && !keeps.covers(id.Pos()) {
				t := pass.TypesInfo.Instances[id].TypeArgs.At(0)
				if lines := plain.Check(read{t}); lines != nil {
					pass.ReportRangef(id, "%s[%s]: %s", name, types.TypeString(t, types.RelativeTo(pass.Pkg)), strings.Join(lines, "\n\t"))
				}
			}
		}
		return nil, nil
	},
}

// read is a type that was read in a program's text, as package plain asks of it.
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
		return reflect.Bool // who gives the type is asked
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

func (t read) Field(i int) (name string, of plain.Type) {
	f := t.Underlying().(*types.Struct).Field(i)
	return f.Name(), read{f.Type()}
}

func (t read) Len() int { return int(t.Underlying().(*types.Array).Len()) }

func (t read) Elem() plain.Type {
	return read{t.Underlying().(interface{ Elem() types.Type }).Elem()}
}
