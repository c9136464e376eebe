package lifetime

import (
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// appends reports the built-in append where it leaves the budget for the Go heap.
func (f *flow) appends() {
	for i := range f.instructions {
		call, ok := i.(*ssa.Call)
		if !ok || !isAppend(call) {
			continue
		}
		if more, known := lengthOf(call.Call.Args[1]); known && more == 0 {
			continue
		}
		if from := f.fullOf(call.Call.Args[0], map[ssa.Value]bool{}); from != nil {
			f.p.report("append", call.Pos(), "append goes to the Go heap: the result of %s has no spare capacity; "+
				"use SliceCap with room for all, or Append of the Maker", f.p.expr(from))
		} else if from, need, room := f.beyond(call); from != nil {
			f.p.report("append", call.Pos(), "append goes to the Go heap: %s has room for %d, and this makes %d; "+
				"give it more, or use Append of the Maker", f.p.expr(from), room, need)
		}
	}
}

func isAppend(v ssa.Value) bool {
	call, ok := v.(*ssa.Call)
	if !ok {
		return false
	}
	b, ok := call.Call.Value.(*ssa.Builtin)
	return ok && b.Name() == "append"
}

// fullOf returns the call that made the list v, if v may be a list without spare capacity;
// otherwise nil.
func (f *flow) fullOf(v ssa.Value, seen map[ssa.Value]bool) *ssa.Call {
	if seen[v] {
		return nil
	}
	seen[v] = true
	switch v := v.(type) {
	case *ssa.Call:
		callee := v.Call.StaticCallee()
		if doing(callee).what != gives {
			return nil
		}
		if name := nameOf(callee); !spare[name] && returnsSlice(callee) {
			return v
		} else if name == "scope.Maker.SliceCap" {
			a, b := v.Call.Args[2], v.Call.Args[3]
			n, known := constOf(a)
			capacity, all := constOf(b)
			if a == b || known && all && n == capacity {
				return v
			}
		}
	case *ssa.Extract:
		if v.Index == 0 {
			return f.fullOf(v.Tuple, seen)
		}
	case *ssa.Phi:
		for _, x := range v.Edges {
			if call := f.fullOf(x, seen); call != nil {
				return call
			}
		}
	case *ssa.UnOp:
		// A variable that literals share must hold only such lists, and results of append on them.
		a, ok := v.X.(*ssa.Alloc)
		if !ok {
			return nil
		}
		var from *ssa.Call
		if f.storesAre(a, func(x ssa.Value) bool {
			if call := f.fullOf(x, seen); call != nil {
				from = call
				return true
			}
			return isAppend(x)
		}) {
			return from
		}
	}
	return nil
}

func returnsSlice(fn *ssa.Function) bool {
	_, ok := fn.Signature.Results().At(0).Type().Underlying().(*types.Slice)
	return ok
}

// beyond returns the SliceCap whose list an append exceeds, and the elements needed and available.
// It returns nil if the list is large enough, or a number isn't constant.
func (f *flow) beyond(call *ssa.Call) (from *ssa.Call, need, room int64) {
	more, known := lengthOf(call.Call.Args[1])
	if !known {
		return nil, 0, 0
	}
	need = more
	for v := call.Call.Args[0]; ; {
		made, ok := v.(*ssa.Call)
		if !ok {
			return nil, 0, 0
		}
		if isAppend(made) {
			more, known := lengthOf(made.Call.Args[1])
			if !known {
				return nil, 0, 0
			}
			need += more
			v = made.Call.Args[0]
			continue
		}
		callee := made.Call.StaticCallee()
		if callee == nil || nameOf(callee) != "scope.Maker.SliceCap" {
			return nil, 0, 0
		}
		n, a := constOf(made.Call.Args[2])
		room, b := constOf(made.Call.Args[3])
		if need += n; a && b && need > room {
			return made, need, room
		}
		return nil, 0, 0
	}
}

// lengthOf returns the number of elements that append adds, if it is known.
func lengthOf(v ssa.Value) (int64, bool) {
	switch v := v.(type) {
	case *ssa.Const:
		if v.IsNil() {
			return 0, true
		}
		if v.Value != nil && v.Value.Kind() == constant.String {
			return int64(len(constant.StringVal(v.Value))), true
		}
	case *ssa.Slice: // the variadic arguments of append
		if a, ok := v.X.(*ssa.Alloc); ok && v.Low == nil && v.High == nil {
			if t, ok := a.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Array); ok {
				return t.Len(), true
			}
		}
	}
	return 0, false
}

func constOf(v ssa.Value) (int64, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(c.Value)
}
