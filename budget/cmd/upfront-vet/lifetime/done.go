package lifetime

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// findDone finds the unexported functions and methods whose only use is as an argument of Do: their
// scope ends when they return.
func (p *pkg) findDone(named []*ssa.Function) {
	given := map[types.Object]ssa.CallInstruction{}
	var visit func(fn *ssa.Function)
	visit = func(fn *ssa.Function) {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				call, ok := i.(ssa.CallInstruction)
				if !ok || doing(call.Common().StaticCallee()).what != calls {
					continue
				}
				args := call.Common().Args
				v := args[len(args)-1]
				if m, ok := v.(*ssa.MakeClosure); ok {
					v = m.Fn
				}
				if to, ok := v.(*ssa.Function); ok && to.Object() != nil && !to.Object().Exported() {
					given[to.Object()] = call
				}
			}
		}
		for _, literal := range fn.AnonFuncs {
			visit(literal)
		}
	}
	for _, fn := range named {
		visit(fn)
	}
	p.done = map[*ssa.Function]*origin{}
	if len(given) == 0 {
		return
	}
	uses := map[types.Object]int{}
	for _, file := range p.pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				uses[p.pass.TypesInfo.Uses[id]]++
			}
			return true
		})
	}
	for _, fn := range named {
		if call := given[fn.Object()]; call != nil && uses[fn.Object()] == 1 {
			p.done[fn] = &origin{kind: ofDo, at: call, fn: fn}
		}
	}
}
