package lifetime

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// call adds the result of a call, and the arguments of the literals that it runs.
func (f *flow) call(i ssa.CallInstruction) {
	c := i.Common()
	callee := c.StaticCallee()
	if b, ok := c.Value.(*ssa.Builtin); ok {
		f.builtin(i, b.Name(), c.Args)
	} else if callee != nil && callee.Parent() == nil {
		f.apply(i, callee)
	} else if !c.IsInvoke() {
		f.iterate(i)
		for _, literal := range f.literals(c.Value) {
			f.bind(i, literal)
		}
	}
}

func (f *flow) result(i ssa.CallInstruction, at string, p places) {
	if v := i.Value(); v != nil {
		f.put(v, at, p)
	}
}

// argumentsOf returns the arguments of a call, with the receiver of a method value.
func argumentsOf(c *ssa.CallCommon) []ssa.Value {
	if m, ok := c.Value.(*ssa.MakeClosure); ok && m.Fn.(*ssa.Function).Parent() == nil {
		return slices.Concat(m.Bindings, c.Args)
	}
	return c.Args
}

// apply handles a call of a function with an effect or a summary.
func (f *flow) apply(i ssa.CallInstruction, callee *ssa.Function) {
	args, d := argumentsOf(i.Common()), doing(callee)
	switch d.what {
	case calls, loads:
		for _, literal := range f.literals(args[len(args)-1]) {
			if len(literal.Params) > 0 && isScope(literal.Params[0].Type()) {
				f.lend(i, args[d.arg], literal, d.what == loads)
			}
		}
	case fills:
		f.feed(args[len(args)-1], f.follow(i, args[d.arg], allocated))
	}
	s := f.p.summary(callee)
	if s == nil {
		return
	}
	for _, m := range s.Moves {
		if m.From.Param >= len(args) || m.To >= len(args) {
			continue
		}
		if what := f.follow(i, args[m.From.Param], m.From.Path); m.To >= 0 {
			f.store(inside(f.of(args[m.To]), m.At), what)
		} else if m.To == asResult {
			f.result(i, m.At, what)
		}
	}
}

// lend adds the scope with which Do or Load calls a literal.
func (f *flow) lend(i ssa.CallInstruction, in ssa.Value, literal *ssa.Function, load bool) {
	p := literal.Params[0]
	o := f.begin(p, opened, i, literal)
	o.load = load
	if !load && isScope(in.Type()) {
		o.in = f.scopes(f.of(in), in.Type())
	}
	f.bound[literal] = true
	f.put(p, "", only(o.scope))
}

// open returns the scope that a call opens.
func (f *flow) open(i ssa.CallInstruction, step string, in set) places {
	v := i.Value()
	if v == nil {
		return nil
	}
	o := f.begin(v, step, i, i.Parent())
	o.in = in
	return only(o.scope)
}

// begin returns the origin of the scope that v is.
func (f *flow) begin(v ssa.Value, step string, at ssa.CallInstruction, fn *ssa.Function) *origin {
	if f.origins[v] == nil {
		f.origins[v] = &origin{scope: elem{root: v, path: step}, at: at, fn: fn}
	}
	return f.origins[v]
}

// feed adds the arguments of a literal.
func (f *flow) feed(fn ssa.Value, m places) {
	for _, literal := range f.literals(fn) {
		f.bound[literal] = true
		for _, p := range literal.Params {
			if isPointer(p.Type()) {
				f.put(p, "", m)
			}
		}
	}
}

// iterate handles a range over a pool or a container: a call of an iterator with the loop's body.
func (f *flow) iterate(i ssa.CallInstruction) {
	c := i.Common()
	if len(c.Args) != 1 {
		return
	}
	p := places{}
	all, _ := c.Value.(*ssa.Call)
	for e := range f.scopes(f.of(c.Value), c.Value.Type()) {
		if all != nil {
			p.add("", elem{e.root, e.path + allocated, all})
		} else if e.kind() == keeper {
			p.add("", elem{e.root, e.path + allocated, i})
		}
	}
	if len(p) > 0 {
		f.feed(c.Args[0], p)
	}
}

// bind handles a call of a literal of this flow.
func (f *flow) bind(i ssa.CallInstruction, literal *ssa.Function) {
	f.bound[literal] = true
	for k, arg := range i.Common().Args {
		if k < len(literal.Params) {
			f.put(literal.Params[k], "", f.of(arg))
		}
	}
	r := f.returns[literal]
	if literal.Signature.Results().Len() == 1 {
		r = r.part(field(0))
	}
	f.result(i, "", r)
}

func (f *flow) builtin(i ssa.CallInstruction, name string, args []ssa.Value) {
	v := i.Value()
	if v == nil {
		return
	}
	switch name {
	case "append":
		fresh := only(elem{root: v, path: address})
		f.put(v, "", f.of(args[0]))
		f.put(v, "", fresh)
		for _, list := range args {
			f.store(inside(fresh, content), f.contents(list))
		}
	case "copy":
		f.store(inside(f.of(args[0]), content), f.contents(args[1]))
	case "Add", "Slice", "String", "SliceData", "StringData":
		f.put(v, "", f.of(args[0]))
	}
}

func (f *flow) contents(list ssa.Value) places {
	p := places{}
	for e := range f.of(list)[""] {
		if e.kind() == cell {
			p.put("", f.cell(e.root).part(e.target()+content))
		}
	}
	return p
}
