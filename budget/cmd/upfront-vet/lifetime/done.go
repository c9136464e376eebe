package lifetime

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// findDone finds the unexported functions and methods whose only use is as an argument of Do: their
// scope ends when they return.
func (p *pkg) findDone(named []*ssa.Function) {
	given := map[types.Object]ssa.CallInstruction{}
	for _, root := range named {
		for _, fn := range appendAll(nil, root) {
			for i := range instructions(fn) {
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
	}
	uses := map[types.Object]int{}
	for _, object := range p.pass.TypesInfo.Uses {
		uses[object]++
	}
	p.done = map[*ssa.Function]ssa.CallInstruction{}
	for _, fn := range named {
		if call := given[fn.Object()]; call != nil && uses[fn.Object()] == 1 {
			p.done[fn] = call
		}
	}
}
