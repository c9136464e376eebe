package lifetime

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// call adds the result of a call, and the arguments of the literals that it runs.
func (f *flow) call(fn *ssa.Function, i ssa.CallInstruction) {
	c := i.Common()
	result := func(at string, p places) {
		if v := i.Value(); v != nil {
			f.put(v, at, p)
		}
	}
	if b, ok := c.Value.(*ssa.Builtin); ok {
		f.builtin(i, b.Name(), c.Args)
		return
	}
	callee := c.StaticCallee()
	if callee == nil {
		if !c.IsInvoke() {
			f.iterate(i)
			for _, literal := range f.literals(c.Value) {
				f.bind(i, literal, result)
			}
		}
		return
	}
	if callee.Parent() != nil {
		f.bind(i, callee, result)
		return
	}
	d := doing(callee)
	at := ""
	if d.result >= 0 {
		at = field(d.result)
	}
	switch d.what {
	case opens, lends:
		o := f.open(fn, i, d.what)
		o.in = f.scopes(f.of(c.Args[d.arg]), c.Args[d.arg].Type())
		result(at, places{"": {elem{kind: keeper, from: o}: true}})
	case gives:
		result(at, f.memoryOf(i, c.Args[d.arg]))
	case fills:
		m := f.memoryOf(i, c.Args[d.arg])
		result(at, m)
		f.feed(c.Args[len(c.Args)-1], m)
	case holds:
		for _, o := range f.scopes(f.of(c.Args[d.arg]), c.Args[d.arg].Type()) {
			result(at, places{"": {elem{kind: keeper, from: o}: true}})
		}
	case same:
		result(at, f.of(c.Args[d.arg]))
	case calls, loads:
		for _, literal := range f.literals(c.Args[len(c.Args)-1]) {
			o := f.called[literal]
			if o == nil {
				o = &origin{kind: ofDo, at: i, fn: literal}
				if d.what == loads {
					o.kind = ofLoad
				}
				f.called[literal] = o
			}
			o.in = nil
			if d.what == calls && isScope(c.Args[d.arg].Type()) {
				o.in = f.scopes(f.of(c.Args[d.arg]), c.Args[d.arg].Type())
			}
			if len(literal.Params) > 0 && isScope(literal.Params[0].Type()) {
				f.bound[literal] = true
				f.add(literal.Params[0], "", elem{kind: keeper, from: o})
			}
		}
	case nothing:
		f.apply(i, callee)
	}
}

func (f *flow) open(fn *ssa.Function, i ssa.CallInstruction, what verb) *origin {
	o := f.opened[i]
	if o == nil {
		o = &origin{kind: opened, at: i, fn: fn}
		if what == lends {
			o.kind = temporary
		}
		f.opened[i] = o
	}
	return o
}

func (f *flow) memoryOf(i ssa.CallInstruction, arg ssa.Value) places {
	p := places{}
	if f.late[i] {
		return p
	}
	for _, o := range f.scopes(f.of(arg), arg.Type()) {
		p.add("", elem{kind: memory, from: o, made: i})
	}
	return p
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
	var made ssa.Instruction = i
	if all, ok := c.Value.(*ssa.Call); ok {
		made = all
	}
	for e := range f.of(c.Value)[""] {
		if e.kind == keeper {
			p.add("", elem{kind: memory, from: e.from, made: made})
		}
	}
	if len(p) > 0 {
		f.feed(c.Args[0], p)
	}
}

// bind handles a call of a literal of this flow.
func (f *flow) bind(i ssa.CallInstruction, literal *ssa.Function, result func(string, places)) {
	if !slices.Contains(f.fns, literal) {
		return
	}
	f.bound[literal] = true
	for k, arg := range i.Common().Args {
		if k < len(literal.Params) && carries(arg.Type()) {
			f.put(literal.Params[k], "", f.of(arg))
		}
	}
	r := f.returns[literal]
	if literal.Signature.Results().Len() == 1 {
		r = r.part(field(0))
	}
	result("", r)
}

func (f *flow) builtin(i ssa.CallInstruction, name string, args []ssa.Value) {
	v := i.Value()
	if v == nil {
		return
	}
	switch name {
	case "append":
		f.put(v, "", f.of(args[0]))
		f.add(v, "", elem{kind: cell, base: v})
		fresh := places{"": {elem{kind: cell, base: v}: true}}
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
		if e.kind == cell {
			p.put("", f.cell(e.base).part(e.off+content))
		}
	}
	return p
}

// apply handles a call of a function that isn't in the tables, by its summary.
func (f *flow) apply(i ssa.CallInstruction, callee *ssa.Function) {
	s := f.p.summary(callee)
	args := i.Common().Args
	if s == nil {
		return
	}
	for _, k := range s.Keeps {
		if k.To >= 0 && k.To < len(args) && k.Param < len(args) {
			f.store(inside(f.of(args[k.To]), k.At), f.keptBy(i, k))
		}
	}
	v := i.Value()
	if v == nil {
		return
	}
	for _, fact := range s.Gives {
		if fact.Param >= len(args) {
			continue
		}
		p, t := f.follow(args[fact.Param], fact.Path)
		at := fact.Result
		switch fact.What {
		case itself:
			f.put(v, at, p)
		case itsOpened:
			o := f.open(i.Parent(), i, opens)
			o.in = f.scopes(p, t)
			f.add(v, at, elem{kind: keeper, from: o})
		case itsMemory, itsTemp, itsKeeper:
			scopes := f.scopes(p, t)
			if fact.What == itsTemp {
				o := f.open(i.Parent(), i, lends)
				o.in = scopes
				scopes = []*origin{o}
			}
			for _, o := range scopes {
				if fact.What == itsKeeper {
					f.add(v, at, elem{kind: keeper, from: o})
				} else if !f.late[i] {
					f.add(v, at, elem{kind: memory, from: o, made: i})
				}
			}
		}
	}
}
