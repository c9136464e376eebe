package lifetime

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math/big"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// isExact reports whether a product has no bits to round. The factors have few significant bits, or
// one of them is a constant power of two.
func isExact(product *ssa.BinOp) bool {
	precision := 53
	if b, ok := product.Type().Underlying().(*types.Basic); !ok || b.Kind() != types.Float64 {
		precision = 24
	}
	x, y := bitsOf(product.X), bitsOf(product.Y)
	return x == 1 || y == 1 || x+y <= precision
}

// bitsOf returns the most significant bits that v can have.
func bitsOf(v ssa.Value) int {
	switch v := v.(type) {
	case *ssa.Const:
		if v.Value != nil && !isComplex(v.Type()) {
			f, _ := constant.Float64Val(v.Value)
			return max(1, int(big.NewFloat(f).MinPrec()))
		}
	case *ssa.ChangeType:
		if isFloat(v.X.Type()) {
			return bitsOf(v.X)
		}
	case *ssa.Convert:
		if b, ok := v.X.Type().Underlying().(*types.Basic); ok {
			switch b.Kind() {
			case types.Float32:
				return 24
			case types.Int8, types.Uint8:
				return 8
			case types.Int16, types.Uint16:
				return 16
			case types.Int32, types.Uint32:
				return 32
			}
		}
	}
	return 64
}

func (p *products) trace(v ssa.Value, found func(*ssa.BinOp)) {
	(&tracing{p: p, found: found}).value(v, "", 0)
}

// tracing finds the products that may be one operand.
type tracing struct {
	p     *products
	found func(*ssa.BinOp)
	seen  map[link]bool
}

// link is a value, or a block whose end is reached backwards, with the path of the float in it.
type link struct {
	at    any
	root  ssa.Value
	path  string
	depth int
}

// maxDepth bounds the calls between a product and its addition.
const maxDepth = 4

// again reports whether t did a step before, or whether the way is too long.
func (t *tracing) again(at any, root ssa.Value, path string, depth int) bool {
	s := link{at, root, path, depth}
	if t.seen[s] || depth > maxDepth || len(path) > 100 {
		return true
	}
	if t.seen == nil {
		t.seen = map[link]bool{}
	}
	t.seen[s] = true
	return false
}

// value follows the float at a path in the value v back to products.
func (t *tracing) value(v ssa.Value, path string, depth int) {
	if t.again(v, nil, path, depth) {
		return
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		if v.Op == token.MUL && isFloat(v.Type()) && !isComplex(v.Type()) && !isExact(v) {
			t.found(v)
		}
	case *ssa.UnOp:
		switch v.Op {
		case token.SUB:
			t.value(v.X, path, depth)
		case token.MUL:
			t.memory(v, t.p.locate(v.X).at(path), depth)
		}
	case *ssa.Phi:
		for i, edge := range v.Edges {
			if !v.Block().Dominates(v.Block().Preds[i]) {
				t.value(edge, path, depth)
			}
		}
	case *ssa.ChangeType:
		if !isFloat(v.Type()) {
			t.value(v.X, path, depth)
		}
	case *ssa.Field:
		t.value(v.X, fmt.Sprintf(".%d", v.Field)+path, depth)
	case *ssa.Index:
		t.value(v.X, index(v.Index)+path, depth)
	case *ssa.Extract:
		switch of := v.Tuple.(type) {
		case *ssa.Call:
			t.result(of, v.Index, path, depth)
		case *ssa.TypeAssert:
			t.value(of.X, path, depth)
		}
	case *ssa.TypeAssert:
		t.value(v.X, path, depth)
	case *ssa.MakeInterface:
		t.value(v.X, path, depth)
	case *ssa.Call:
		t.result(v, 0, path, depth)
	case *ssa.Parameter:
		for _, call := range t.p.callers[v.Parent()] {
			if arg := argument(v, call); arg != nil {
				t.value(arg, path, depth+1)
			}
		}
	}
}

func (t *tracing) result(call *ssa.Call, n int, path string, depth int) {
	if b, ok := call.Common().Value.(*ssa.Builtin); ok {
		switch b.Name() {
		case "complex", "real", "imag":
			for _, arg := range call.Common().Args {
				t.value(arg, path, depth)
			}
		}
	}
	for _, fn := range t.p.callees(call) {
		for i := range instructions(fn) {
			if r, ok := i.(*ssa.Return); ok && n < len(r.Results) {
				t.value(r.Results[n], path, depth+1)
			}
		}
	}
}

func argument(p *ssa.Parameter, call ssa.CallInstruction) ssa.Value {
	n, args := slices.Index(p.Parent().Params, p), arguments(call)
	if n < len(args) {
		return args[n]
	}
	return nil
}

// location is a float in memory: a root, which is a variable's address, a pointer, a slice or a
// value, and the path from it: fields ".1", elements "[1]" and pointers "*". The field index has
// the values of indexes in the path.
type location struct {
	root  ssa.Value
	path  string
	index []ssa.Value
}

func (p location) at(path string) location { return location{p.root, p.path + path, p.index} }

func (p *products) locate(v ssa.Value) location {
	switch v := v.(type) {
	case *ssa.FieldAddr:
		return p.locate(v.X).at(fmt.Sprintf(".%d", v.Field))
	case *ssa.Field:
		return p.locate(v.X).at(fmt.Sprintf(".%d", v.Field))
	case *ssa.IndexAddr:
		at := p.locate(v.X).at(index(v.Index))
		if _, ok := v.Index.(*ssa.Const); !ok {
			at.index = append(slices.Clip(at.index), v.Index)
		}
		return at
	case *ssa.UnOp:
		if v.Op == token.MUL {
			return p.locate(v.X).at("*")
		}
	case *ssa.ChangeType:
		return p.locate(v.X)
	}
	if variable, ok := p.bound[v]; ok {
		v = variable
	}
	return location{root: v}
}

func index(v ssa.Value) string {
	if c, ok := v.(*ssa.Const); ok && c.Value != nil {
		return "[" + c.Value.ExactString() + "]"
	}
	return "[" + v.Name() + "]"
}

// rest returns the path from p to q, if p contains q.
func (p location) rest(q location) (path string, ok bool) {
	path, ok = strings.CutPrefix(q.path, p.path)
	return path, ok && p.root == q.root && (path == "" || strings.ContainsAny(path[:1], ".[*"))
}

// memory follows a place from an instruction back to the stores that set it.
func (t *tracing) memory(from ssa.Instruction, at location, depth int) {
	b := from.Block()
	t.block(b, slices.Index(b.Instrs, from), at, depth)
}

// block follows a place back from the instruction n of a block.
func (t *tracing) block(b *ssa.BasicBlock, n int, at location, depth int) {
	for _, i := range slices.Backward(b.Instrs[:n]) {
		if v, ok := i.(ssa.Value); ok && (v == at.root || slices.Contains(at.index, v)) {
			return
		}
		switch i := i.(type) {
		case *ssa.Store:
			if rest, ok := t.p.locate(i.Addr).rest(at); ok {
				t.value(i.Val, rest, depth)
				return
			}
		case ssa.CallInstruction:
			t.stores(i, at, depth)
		}
	}
	if t.again(b, at.root, at.path, depth) {
		return
	}
	for _, before := range b.Preds {
		if !b.Dominates(before) {
			t.block(before, len(before.Instrs), at, depth)
		}
	}
	if len(b.Preds) > 0 {
		return
	}
	t.elsewhere(b.Parent(), at, depth)
	if len(at.index) > 0 {
		return
	}
	for _, call := range t.p.callers[b.Parent()] {
		switch root := at.root.(type) {
		case *ssa.Global:
			t.memory(call, at, depth+1)
		case *ssa.Parameter:
			if arg := argument(root, call); arg != nil {
				t.memory(call, t.p.locate(arg).at(at.path), depth+1)
			}
		}
	}
}

// stores follows a place back through the functions that a call may run.
func (t *tracing) stores(call ssa.CallInstruction, at location, depth int) {
	t.elsewhere(call.Parent(), at, depth)
	if _, ok := call.(*ssa.Call); ok && depth < maxDepth {
		for _, fn := range t.p.callees(call) {
			t.storesOf(call, fn, at, depth)
		}
	}
}

// elsewhere follows a captured variable to the stores of all functions that share it, except here.
func (t *tracing) elsewhere(here *ssa.Function, at location, depth int) {
	by := t.p.capture[at.root]
	if len(by) == 0 || len(at.index) > 0 {
		return
	}
	for _, fn := range append(slices.Clip(by), at.root.Parent()) {
		if fn != here {
			t.storesIn(fn, at, depth)
		}
	}
}

func (t *tracing) storesIn(fn *ssa.Function, at location, depth int) {
	for i := range instructions(fn) {
		if s, ok := i.(*ssa.Store); ok {
			if rest, ok := t.p.locate(s.Addr).rest(at); ok {
				t.value(s.Val, rest, depth)
			}
		}
	}
}

func (t *tracing) storesOf(call ssa.CallInstruction, fn *ssa.Function, at location, depth int) {
	inside := location{}
	if _, ok := at.root.(*ssa.Global); ok {
		inside = at
	}
	for n, arg := range call.Common().Args {
		if rest, ok := t.p.locate(arg).rest(at); ok && n < len(fn.Params) && isReference(arg.Type()) {
			inside = location{fn.Params[n], rest, at.index}
		}
	}
	isNamed := func(v ssa.Value) bool { return strings.Contains(inside.path, index(v)) }
	if inside.root == nil || slices.ContainsFunc(inside.index, isNamed) {
		return
	}
	t.storesIn(fn, inside, depth+1)
}

func isReference(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Slice:
		return true
	}
	return false
}
