package lifetime

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A sink is a place that may outlive the function, and a value that the function passes to it.
type sink struct {
	at     ssa.Instruction
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
	for i := range f.instructions {
		f.sinksOf(i, yield)
	}
}

func (f *flow) sinksOf(i ssa.Instruction, yield func(sink)) {
	add := func(how way, v, where ssa.Value) {
		s := sink{at: i, how: how, what: f.of(v), scope: isScope(v.Type())}
		if where != nil {
			s.where = f.of(where)
		}
		yield(s)
	}
	switch i := i.(type) {
	case *ssa.Return:
		for _, v := range i.Results {
			add(returned, resultOf(i, v), nil)
		}
	case *ssa.Store:
		add(stored, i.Val, i.Addr)
	case *ssa.MapUpdate:
		add(put, i.Value, i.Map)
		add(keyed, i.Key, i.Map)
	case *ssa.Send:
		add(sent, i.X, i.Chan)
	case *ssa.Go:
		add(started, i.Call.Value, nil)
		for _, v := range i.Call.Args {
			add(started, v, nil)
		}
	case *ssa.Select:
		for _, state := range i.States {
			if state.Send != nil {
				add(sent, state.Send, state.Chan)
			}
		}
	case ssa.CallInstruction:
		c := i.Common()
		callee := c.StaticCallee()
		if _, ok := c.Value.(*ssa.Builtin); callee == nil && !ok && len(f.literals(c.Value)) == 0 {
			for _, v := range c.Args {
				add(asked, v, nil)
			}
		}
		if callee != nil && callee.Parent() == nil {
			f.sinksOfCall(i, callee, yield)
		}
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

func (f *flow) sinksOfCall(i ssa.CallInstruction, callee *ssa.Function, yield func(sink)) {
	known, args := f.p.summary(callee), argumentsOf(i.Common())
	if known == nil {
		return
	}
	for _, m := range known.Moves {
		if m.To == asResult || m.From.Param >= len(args) || m.To >= len(args) {
			continue
		}
		s := sink{at: i, how: handed, what: f.follow(i, args[m.From.Param], m.From.Path), keeper: callee}
		switch m.To {
		case somewhere:
			s.how = asked
		case inGlobal:
			s.where = only(elem{})
		default:
			s.where = f.of(args[m.To])
		}
		yield(s)
	}
}

// keeps returns the parts of its parameters that the flow's function keeps.
func (f *flow) keeps() (list []move) {
	f.sinks(func(s sink) {
		if s.how == returned || s.how == asked && s.keeper == nil && !s.scope {
			return
		}
		for e := range f.carried(s.what) {
			from := f.place(e)
			if from.Param < 0 {
				continue
			}
			if s.how == sent || s.how == started || s.how == asked {
				list = append(list, move{from, somewhere, ""})
				continue
			}
			for to := range s.where[""] {
				if to.kind() != given {
					continue
				}
				m := move{from, inGlobal, ""}
				if _, ok := to.root.(*ssa.Parameter); ok {
					path, part := to.pointer()
					if m.To = f.paramOf(to.root); m.To < 0 {
						m.To = somewhere
					} else if path == "" {
						m.At = part
					}
				}
				if m.To != from.Param {
					list = append(list, m)
				}
			}
		}
	})
	return list
}

// end returns the function at whose return a scope is surely closed, or nil.
func (f *flow) end(scope elem) *ssa.Function {
	o := f.origin(scope)
	if o == nil || o.load {
		return nil
	}
	if o.lent() || o.ends && !o.lost {
		return o.fn
	}
	if scope.path != temporary {
		return nil
	}
	var fn *ssa.Function
	for in := range o.in {
		if of := f.origin(in); of != nil && of.load {
			fn = of.fn
		} else if fn = f.end(in); fn == nil {
			return nil
		}
	}
	return fn
}
