package lifetime

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A sink is a place that may outlive the function, and a value that the function passes to it.
type sink struct {
	at     ssa.Instruction
	fn     *ssa.Function
	how    way
	what   places
	where  places        // the values that it is stored in
	keeper *ssa.Function // handed: the function
	scope  bool          // asked: the value is a scope
}

type way int

const (
	returned way = iota
	stored
	put     // into a map
	keyed   // as a key of a map
	sent    // to a channel
	started // with a goroutine
	handed  // to a function that keeps it
	asked   // of an unknown function
)

func (f *flow) sinks(yield func(sink)) {
	for _, fn := range f.fns {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				f.sinksOf(fn, i, yield)
			}
		}
	}
}

func (f *flow) sinksOf(fn *ssa.Function, i ssa.Instruction, yield func(sink)) {
	s := sink{at: i, fn: fn}
	switch i := i.(type) {
	case *ssa.Return:
		s.how = returned
		for _, v := range i.Results {
			if carries(v.Type()) {
				s.what = f.of(resultOf(i, v))
				yield(s)
			}
		}
	case *ssa.Store:
		if carries(i.Val.Type()) {
			s.how, s.what, s.where = stored, f.of(i.Val), f.of(i.Addr)
			yield(s)
		}
	case *ssa.MapUpdate:
		s.where = f.of(i.Map)
		if carries(i.Value.Type()) {
			s.how, s.what = put, f.of(i.Value)
			yield(s)
		}
		if carries(i.Key.Type()) {
			s.how, s.what = keyed, f.of(i.Key)
			yield(s)
		}
	case *ssa.Send:
		s.how, s.what, s.where = sent, f.of(i.X), f.of(i.Chan)
		yield(s)
	case *ssa.Go:
		s.how = started
		for _, v := range append([]ssa.Value{i.Call.Value}, i.Call.Args...) {
			if carries(v.Type()) {
				s.what = f.of(v)
				yield(s)
			}
		}
	case *ssa.Select:
		for _, state := range i.States {
			if state.Send != nil && carries(state.Send.Type()) {
				s.how, s.what, s.where = sent, f.of(state.Send), f.of(state.Chan)
				yield(s)
			}
		}
	case ssa.CallInstruction:
		f.sinksOfCall(s, i, yield)
	}
}

// resultOf returns the value of a return. In a function that defers, SSA keeps each result in a
// variable that all returns share.
func resultOf(r *ssa.Return, v ssa.Value) ssa.Value {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return v
	}
	list := r.Block().Instrs
	for _, i := range slices.Backward(list) {
		if s, ok := i.(*ssa.Store); ok && s.Addr == load.X {
			return s.Val
		}
	}
	return v
}

func (f *flow) sinksOfCall(s sink, i ssa.CallInstruction, yield func(sink)) {
	c := i.Common()
	callee := c.StaticCallee()
	if callee == nil {
		if _, ok := c.Value.(*ssa.Builtin); !ok && len(f.literals(c.Value)) == 0 {
			s.how = asked
			for _, v := range c.Args {
				if carries(v.Type()) {
					s.what, s.scope = f.of(v), isScope(v.Type())
					yield(s)
				}
			}
		}
		return
	}
	if doing(callee).what != nothing || callee.Parent() != nil {
		return
	}
	known := f.p.summary(callee)
	if known == nil {
		return
	}
	for _, k := range known.Keeps {
		if k.Param >= len(c.Args) || k.To >= len(c.Args) {
			continue
		}
		s.what, s.keeper = f.keptBy(i, k), callee
		switch k.To {
		case somewhere:
			s.how, s.where = asked, nil
		case inGlobal:
			s.how, s.where = handed, places{"": {elem{kind: given}: true}}
		default:
			s.how, s.where = handed, f.of(c.Args[k.To])
		}
		yield(s)
	}
}

// keptBy returns the values of a call's argument that the called function keeps.
func (f *flow) keptBy(i ssa.CallInstruction, k kept) places {
	p, t := f.follow(i.Common().Args[k.Param], k.Path)
	if k.What != itsMemory {
		return p
	}
	m := places{}
	for _, o := range f.scopes(p, t) {
		m.add("", elem{kind: memory, from: o, made: i})
	}
	return m
}

// keeps returns the parts of its parameters that the flow's function keeps.
func (f *flow) keeps() (list []kept) {
	add := func(k kept) {
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	f.sinks(func(s sink) {
		if s.how == returned || s.how == asked && s.keeper == nil && !s.scope {
			return
		}
		for e := range f.carried(s.what) {
			k := kept{}
			switch e.kind {
			case given:
				k.Param, k.Path = f.paramOf(e.base), e.path
			case keeper, memory:
				if e.from.kind != foreign {
					continue
				}
				k.Param, k.Path = f.paramOf(e.from.base), e.from.path
				if e.kind == memory {
					k.What = itsMemory
				}
			default:
				continue
			}
			if k.Param < 0 {
				continue
			}
			if s.how == sent || s.how == started || s.how == asked {
				k.To = somewhere
				add(k)
				continue
			}
			for to := range s.where[""] {
				if to.kind != given {
					continue
				}
				switch to.base.(type) {
				case *ssa.Parameter:
					if k.To, k.At = f.paramOf(to.base), to.off; k.To < 0 || to.path != "" {
						k.At = ""
					}
					if k.To < 0 {
						k.To = somewhere
					}
				default:
					k.To, k.At = inGlobal, ""
				}
				if k.To != k.Param {
					add(k)
				}
			}
		}
	})
	return list
}

// end returns the function at whose return a scope is surely closed, or nil.
func (f *flow) end(o *origin) *ssa.Function {
	switch o.kind {
	case ofDo:
		return o.fn
	case opened, temporary:
		if o.ends && !o.lost {
			return o.fn
		}
	}
	if o.kind == temporary && len(o.in) > 0 {
		var fn *ssa.Function
		for _, in := range o.in {
			if in.kind == ofLoad {
				fn = in.fn
			} else {
				fn = f.end(in)
			}
			if fn == nil {
				return nil
			}
		}
		return fn
	}
	return nil
}

// findLate marks the calls that request memory of a closed scope: they return none. It reports
// whether it found one.
func (f *flow) findLate() (found bool) {
	for _, o := range f.opened {
		if len(o.closes) == 0 {
			continue
		}
		before := f.statuses(o, o.fn, unopened)
		for i, s := range before {
			call, ok := i.(*ssa.Call)
			if !ok || s != closed || f.late[call] {
				continue
			}
			for e := range f.of(call).all {
				if e.kind == memory && e.made == i && e.from == o {
					f.late[call], found = true, true
				}
			}
		}
	}
	return found
}
