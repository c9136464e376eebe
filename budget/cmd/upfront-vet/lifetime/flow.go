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
	opened  map[ssa.Instruction]*origin
	called  map[*ssa.Function]*origin
	foreign map[elem]*origin
	late    map[ssa.Instruction]bool // calls on a closed scope, which return no memory
	again   bool

	closing  map[ssa.CallInstruction][]closing
	visiting map[*ssa.Function]bool
}

func newFlow(p *pkg, root *ssa.Function) *flow {
	f := &flow{p: p, root: root, late: map[ssa.Instruction]bool{}}
	var add func(fn *ssa.Function)
	add = func(fn *ssa.Function) {
		f.fns = append(f.fns, fn)
		for _, literal := range fn.AnonFuncs {
			add(literal)
		}
	}
	add(root)
	f.solve()
	f.settle()
	if f.findLate() {
		f.solve()
		f.settle()
	}
	return f
}

// solve applies all instructions again and again, until they add no value.
func (f *flow) solve() {
	f.values, f.cells, f.returns = map[ssa.Value]places{}, map[ssa.Value]places{}, map[*ssa.Function]places{}
	f.bound, f.called, f.foreign = map[*ssa.Function]bool{}, map[*ssa.Function]*origin{}, map[elem]*origin{}
	f.opened = map[ssa.Instruction]*origin{}
	f.closing, f.visiting = map[ssa.CallInstruction][]closing{}, map[*ssa.Function]bool{}
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
		if do != nil && isScope(p.Type()) {
			f.add(p, "", elem{kind: keeper, from: do})
		} else if carries(p.Type()) {
			f.add(p, "", elem{kind: given, base: p})
		}
	}
}

func (f *flow) round() {
	for f.again = true; f.again; {
		f.again = false
		for _, fn := range f.fns {
			for _, b := range fn.Blocks {
				for _, i := range b.Instrs {
					f.step(fn, i)
				}
			}
		}
	}
}

func (f *flow) add(v ssa.Value, at string, e elem) {
	p := f.values[v]
	if p == nil {
		p = places{}
		f.values[v] = p
	}
	if p.add(at, e) {
		f.again = true
	}
}

func (f *flow) put(v ssa.Value, at string, q places) {
	for where, s := range q {
		for e := range s {
			f.add(v, at+where, e)
		}
	}
}

func (f *flow) of(v ssa.Value) places {
	switch v := v.(type) {
	case *ssa.Global:
		return places{"": {elem{kind: given, base: v}: true}}
	case *ssa.Function:
		return places{"": {elem{kind: cell, base: v}: true}}
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

// at returns the values that a pointer points to.
func (f *flow) at(p places, t types.Type) places {
	q := places{}
	for e := range p[""] {
		switch e.kind {
		case memory: // plain data; but strings.Fields returns strings
			if isPointer(t) {
				q.add("", e)
			}
		case keeper:
			q.add("", e)
		case cell:
			q.put("", f.cell(e.base).part(e.off))
		case given:
			if carries(t) && len(e.path)+len(e.off) < longest {
				q.add("", elem{kind: given, base: e.base, path: e.path + target + e.off})
			}
		}
	}
	return q
}

// inside returns a pointer to a part of a pointer's target.
func inside(p places, part string) places {
	q := places{}
	for e := range p[""] {
		if (e.kind == cell || e.kind == given) && len(e.off) < longest {
			e.off += part
		}
		q.add("", e)
	}
	return q
}

func (f *flow) store(to, what places) {
	for e := range to[""] {
		if e.kind == cell && f.cell(e.base).put(e.off, what) {
			f.again = true
		}
	}
}

// step adds the effect of an instruction.
func (f *flow) step(fn *ssa.Function, i ssa.Instruction) {
	switch i := i.(type) {
	case *ssa.Alloc, *ssa.MakeSlice, *ssa.MakeMap, *ssa.MakeChan:
		v := i.(ssa.Value)
		f.add(v, "", elem{kind: cell, base: v})
	case *ssa.MakeClosure:
		f.add(i, "", elem{kind: cell, base: i})
		literal := i.Fn.(*ssa.Function)
		for k, b := range i.Bindings {
			p := f.of(b)
			if f.cell(i).put(field(k), p) {
				f.again = true
			}
			if slices.Contains(f.fns, literal) {
				f.put(literal.FreeVars[k], "", p)
			}
		}
	case *ssa.FieldAddr:
		f.put(i, "", inside(f.of(i.X), field(i.Field)))
	case *ssa.IndexAddr:
		f.put(i, "", inside(f.of(i.X), content))
	case *ssa.UnOp:
		if !carries(i.Type()) {
			return
		}
		switch i.Op {
		case token.MUL:
			f.put(i, "", f.at(f.of(i.X), i.Type()))
		case token.ARROW:
			p := f.at(inside(f.of(i.X), content), i.Type())
			if i.CommaOk {
				f.put(i, field(0), p)
			} else {
				f.put(i, "", p)
			}
		}
	case *ssa.Store:
		if carries(i.Val.Type()) {
			f.store(f.of(i.Addr), f.of(i.Val))
		}
	case *ssa.MapUpdate:
		f.store(inside(f.of(i.Map), content), f.of(i.Value))
		f.store(inside(f.of(i.Map), key), f.of(i.Key))
	case *ssa.Send:
		f.store(inside(f.of(i.Chan), content), f.of(i.X))
	case *ssa.Field:
		if carries(i.Type()) {
			f.put(i, "", f.of(i.X).part(field(i.Field)))
		}
	case *ssa.Index:
		if carries(i.Type()) {
			f.put(i, "", f.of(i.X).part(content))
		}
	case *ssa.Lookup:
		if !carries(i.Type()) {
			return
		}
		p := inside(f.of(i.X), content)
		if t, ok := i.Type().(*types.Tuple); i.CommaOk && ok {
			f.put(i, field(0), f.at(p, t.At(0).Type()))
		} else {
			f.put(i, "", f.at(p, i.Type()))
		}
	case *ssa.Range:
		f.put(i, "", f.of(i.X))
	case *ssa.Next:
		if i.IsString {
			return
		}
		t := i.Type().(*types.Tuple)
		if k := t.At(1).Type(); carries(k) {
			f.put(i, field(1), f.at(inside(f.of(i.Iter), key), k))
		}
		if v := t.At(2).Type(); carries(v) {
			f.put(i, field(2), f.at(inside(f.of(i.Iter), content), v))
		}
	case *ssa.Extract:
		if carries(i.Type()) {
			f.put(i, "", f.of(i.Tuple).part(field(i.Index)))
		}
	case *ssa.Phi:
		if carries(i.Type()) {
			for _, v := range i.Edges {
				f.put(i, "", f.of(v))
			}
		}
	case *ssa.Slice:
		f.put(i, "", f.of(i.X))
	case *ssa.ChangeType:
		f.put(i, "", f.of(i.X))
	case *ssa.ChangeInterface:
		if carries(i.Type()) {
			f.put(i, "", f.of(i.X))
		}
	case *ssa.MakeInterface:
		if carries(i.Type()) && carries(i.X.Type()) {
			f.put(i, "", f.of(i.X))
		}
	case *ssa.SliceToArrayPointer:
		f.put(i, "", f.of(i.X))
	case *ssa.TypeAssert:
		if !carries(i.AssertedType) {
			return
		}
		if i.CommaOk {
			f.put(i, field(0), f.of(i.X))
		} else {
			f.put(i, "", f.of(i.X))
		}
	case *ssa.Convert:
		if carries(i.Type()) && !copies(i.X.Type(), i.Type()) {
			f.put(i, "", f.of(i.X))
		}
	case *ssa.MultiConvert:
		if carries(i.Type()) && !copies(i.X.Type(), i.Type()) {
			f.put(i, "", f.of(i.X))
		}
	case *ssa.Return:
		r := f.returns[fn]
		if r == nil {
			r = places{}
			f.returns[fn] = r
		}
		for k, v := range i.Results {
			if carries(v.Type()) {
				if r.put(field(k), f.of(v)) {
					f.again = true
				}
			}
		}
	case ssa.CallInstruction:
		f.call(fn, i)
	}
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
func (f *flow) scopes(p places, t types.Type) (list []*origin) {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		q := places{}
		for e := range p[""] {
			if e.kind == keeper {
				q.add("", e)
			}
		}
		q.put("", f.at(p, ptr.Elem()))
		p = q
	}
	for e := range p[""] {
		var o *origin
		switch e.kind {
		case keeper:
			o = e.from
		case given:
			if e.off != "" {
				continue
			}
			if o = f.foreign[e]; o == nil {
				o = &origin{kind: foreign, base: e.base, path: e.path}
				f.foreign[e] = o
			}
		default:
			continue
		}
		if !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	return list
}

// carried returns all elems that a value reaches, also through pointers.
func (f *flow) carried(p places) set {
	found, cells := set{}, map[elem]bool{}
	var visit func(p places)
	visit = func(p places) {
		for e := range p.all {
			found[e] = true
			if e.kind == cell && !cells[e] {
				cells[e] = true
				visit(f.cell(e.base).part(e.off))
			}
		}
	}
	visit(p)
	return found
}

// literals returns the functions of this flow that a value may be.
func (f *flow) literals(v ssa.Value) (list []*ssa.Function) {
	for e := range f.of(v)[""] {
		if e.kind != cell {
			continue
		}
		fn, _ := e.base.(*ssa.Function)
		if c, ok := e.base.(*ssa.MakeClosure); ok {
			fn = c.Fn.(*ssa.Function)
		}
		if fn != nil && fn != f.root && slices.Contains(f.fns, fn) {
			list = append(list, fn)
		}
	}
	return list
}
