package lifetime

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A flow is a points-to analysis of a function and its literals. It has the possible values of
// their variables; it distinguishes fields, and ignores the order of instructions.
type flow struct {
	p       *pkg
	root    *ssa.Function
	fns     []*ssa.Function // root, and the literals in it
	values  map[ssa.Value]places
	cells   map[ssa.Value]places // the contents of variables
	returns map[*ssa.Function]places
	bound   map[*ssa.Function]bool // literals whose callers are known
	origins map[ssa.Value]*origin
	closing map[ssa.CallInstruction][]closing
	again   bool
}

func newFlow(p *pkg, root *ssa.Function) *flow {
	f := &flow{p: p, root: root, fns: appendAll(nil, root),
		values: map[ssa.Value]places{}, cells: map[ssa.Value]places{}, returns: map[*ssa.Function]places{},
		bound: map[*ssa.Function]bool{}, origins: map[ssa.Value]*origin{},
		closing: map[ssa.CallInstruction][]closing{}}
	f.solve()
	f.settle()
	return f
}

// instructions are those of all functions of the flow.
func (f *flow) instructions(yield func(ssa.Instruction) bool) {
	for _, fn := range f.fns {
		for i := range instructions(fn) {
			if !yield(i) {
				return
			}
		}
	}
}

// solve applies all instructions again and again, until they add no value.
func (f *flow) solve() {
	f.unknown(f.root)
	f.round()
	for _, fn := range f.fns[1:] {
		if !f.bound[fn] {
			f.unknown(fn)
		}
	}
	f.round()
}

// unknown adds the possible parameters of a function whose callers are unknown.
func (f *flow) unknown(fn *ssa.Function) {
	do := f.p.done[fn]
	for _, p := range fn.Params {
		e := elem{root: p}
		if do != nil && isScope(p.Type()) {
			e = f.begin(p, opened, do, fn).scope
		}
		f.put(p, "", only(e))
	}
}

func (f *flow) round() {
	for f.again = true; f.again; {
		f.again = false
		for i := range f.instructions {
			f.step(i)
		}
	}
}

// put adds elems to a place of a value.
func (f *flow) put(v ssa.Value, at string, q places) {
	if len(q) == 0 || !f.p.carries(v.Type()) {
		return
	}
	if f.values[v] == nil {
		f.values[v] = places{}
	}
	f.again = f.values[v].put(at, q) || f.again
}

func (f *flow) of(v ssa.Value) places {
	switch v := v.(type) {
	case *ssa.Global:
		return only(elem{root: v})
	case *ssa.Function:
		return only(elem{root: v, path: address})
	}
	return f.values[v]
}

func (f *flow) cell(v ssa.Value) places {
	p := f.cells[v]
	if p == nil {
		p = places{}
		f.cells[v] = p
	}
	return p
}

// at returns the values of type t that a pointer points to.
func (f *flow) at(p places, t types.Type) places {
	if len(p) == 0 || !f.p.carries(t) {
		return nil
	}
	return f.load(p, isPointer(t))
}

// load returns the values that a pointer points to, which may be pointers, or not.
func (f *flow) load(p places, pointers bool) places {
	q := places{}
	for e := range p[""] {
		switch e.kind() {
		case memory: // plain data; but strings.Fields returns strings
			if pointers {
				q.add("", e)
			}
		case keeper:
			q.add("", e)
		case cell:
			q.put("", f.cell(e.root).part(e.target()))
		case given:
			if e.path = e.target(); len(e.path) <= longest {
				q.add("", e)
			}
		}
	}
	return q
}

// inside returns a pointer to a part of a pointer's target.
func inside(p places, part string) places {
	q := places{}
	for e := range p[""] {
		if kind := e.kind(); (kind == cell || kind == given) && len(e.path) <= longest {
			e.path = e.target() + part + address
		}
		q.add("", e)
	}
	return q
}

func (f *flow) store(to, what places) {
	for e := range to[""] {
		if e.kind() == cell {
			f.again = f.cell(e.root).put(e.target(), what) || f.again
		}
	}
}

// step adds the effect of an instruction.
func (f *flow) step(i ssa.Instruction) {
	switch i := i.(type) {
	case *ssa.Alloc, *ssa.MakeSlice, *ssa.MakeMap, *ssa.MakeChan:
		v := i.(ssa.Value)
		f.put(v, "", only(elem{root: v, path: address}))
	case *ssa.MakeClosure:
		literal, closure := i.Fn.(*ssa.Function), only(elem{root: i, path: address})
		f.put(i, "", closure)
		for k, b := range i.Bindings {
			f.store(inside(closure, field(k)), f.of(b))
			if slices.Contains(f.fns, literal) {
				f.put(literal.FreeVars[k], "", f.of(b))
			}
		}
	case *ssa.FieldAddr:
		f.put(i, "", inside(f.of(i.X), field(i.Field)))
	case *ssa.IndexAddr:
		f.put(i, "", inside(f.of(i.X), content))
	case *ssa.UnOp:
		switch i.Op {
		case token.MUL:
			f.put(i, "", f.at(f.of(i.X), i.Type()))
		case token.ARROW:
			f.element(i, i.X, i.CommaOk)
		}
	case *ssa.Lookup:
		f.element(i, i.X, i.CommaOk)
	case *ssa.Next:
		if !i.IsString {
			t := i.Type().(*types.Tuple)
			f.put(i, field(1), f.at(inside(f.of(i.Iter), key), t.At(1).Type()))
			f.put(i, field(2), f.at(inside(f.of(i.Iter), content), t.At(2).Type()))
		}
	case *ssa.Store:
		f.store(f.of(i.Addr), f.of(i.Val))
	case *ssa.MapUpdate:
		f.store(inside(f.of(i.Map), content), f.of(i.Value))
		f.store(inside(f.of(i.Map), key), f.of(i.Key))
	case *ssa.Send:
		f.store(inside(f.of(i.Chan), content), f.of(i.X))
	case *ssa.Field:
		f.put(i, "", f.of(i.X).part(field(i.Field)))
	case *ssa.Index:
		f.put(i, "", f.of(i.X).part(content))
	case *ssa.Extract:
		f.put(i, "", f.of(i.Tuple).part(field(i.Index)))
	case *ssa.TypeAssert:
		f.put(i, first(i.CommaOk), f.of(i.X))
	case *ssa.Convert, *ssa.MultiConvert:
		v := i.(ssa.Value)
		if x := *i.Operands(nil)[0]; !copies(x.Type(), v.Type()) {
			f.put(v, "", f.of(x))
		}
	case *ssa.Phi, *ssa.Slice, *ssa.Range,
		*ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.SliceToArrayPointer:
		for _, x := range i.Operands(nil) {
			if *x != nil {
				f.put(i.(ssa.Value), "", f.of(*x))
			}
		}
	case *ssa.Return:
		if f.returns[i.Parent()] == nil {
			f.returns[i.Parent()] = places{}
		}
		for k, v := range i.Results {
			f.again = f.returns[i.Parent()].put(field(k), f.of(v)) || f.again
		}
	case ssa.CallInstruction:
		f.call(i)
	}
}

// element adds an element of a map or a channel.
func (f *flow) element(v, of ssa.Value, commaOk bool) {
	t := v.Type()
	if tuple, ok := t.(*types.Tuple); ok && commaOk {
		t = tuple.At(0).Type()
	}
	f.put(v, first(commaOk), f.at(inside(f.of(of), content), t))
}

// first returns the place of the first result of several, or of the only one.
func first(several bool) string {
	if several {
		return field(0)
	}
	return ""
}

// copies reports whether a conversion between a string and a slice copies.
func copies(from, to types.Type) bool {
	_, a := from.Underlying().(*types.Slice)
	_, b := to.Underlying().(*types.Slice)
	return a != b && !isUnsafe(from) && !isUnsafe(to)
}

func isUnsafe(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// scopes returns the scopes of a value that is a scope, or that holds one and returns its memory.
func (f *flow) scopes(p places, t types.Type) set {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		p = f.at(p, ptr.Elem())
	}
	s := set{}
	for e := range p[""] {
		if kind := e.kind(); kind == keeper || kind == given && !e.is(address) {
			s[e] = true
		}
	}
	return s
}

// carried returns all elems that a value reaches, also through pointers.
func (f *flow) carried(p places) set {
	found := set{}
	var visit func(p places)
	visit = func(p places) {
		for e := range p.all {
			if seen := found[e]; !seen {
				found[e] = true
				if e.kind() == cell {
					visit(f.cell(e.root).part(e.target()))
				}
			}
		}
	}
	visit(p)
	return found
}

// literals returns the functions of this flow that a value may be.
func (f *flow) literals(v ssa.Value) (list []*ssa.Function) {
	for e := range f.of(v)[""] {
		fn, _ := e.root.(*ssa.Function)
		if c, ok := e.root.(*ssa.MakeClosure); ok {
			fn = c.Fn.(*ssa.Function)
		}
		if fn != nil && fn != f.root && slices.Contains(f.fns, fn) {
			list = append(list, fn)
		}
	}
	return list
}
