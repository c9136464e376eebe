package lifetime

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A status is the possible states of a scope at a place of a function, one bit each.
type status uint8

const (
	unopened status = 1 << iota
	open
	deferred // open, and closed when the function returns
	closed
	unsure // open or closed
)

// closing is a scope that a call closes: its possible origins, and whether the call surely closes
// it.
type closing struct {
	of   []*origin
	sure bool
}

func (c closing) closes(o *origin) (status, bool) {
	if !slices.Contains(c.of, o) {
		return 0, false
	}
	if c.sure && len(c.of) == 1 {
		return closed, true
	}
	return unsure, true
}

// closings returns the scopes that a call closes, also through functions that it calls.
func (f *flow) closings(i ssa.CallInstruction) []closing {
	list, known := f.closing[i]
	if !known {
		list = f.closingsOf(i)
		if len(f.visiting) == 0 {
			f.closing[i] = list
		}
	}
	return list
}

func (f *flow) closingsOf(i ssa.CallInstruction) (list []closing) {
	c := i.Common()
	if callee := c.StaticCallee(); callee != nil && callee.Parent() == nil {
		if callee.Synthetic != "" && len(c.Args) == 0 {
			return f.boundClose(c.Value, list)
		}
		if doing(callee).what == closes {
			return append(list, closing{f.scopes(f.of(c.Args[0]), c.Args[0].Type()), true})
		}
		if s := f.p.summary(callee); s != nil && doing(callee).what == nothing {
			for _, at := range s.Closes {
				if at.Param < len(c.Args) {
					p, t := f.follow(c.Args[at.Param], at.Path)
					list = append(list, closing{f.scopes(p, t), true})
				}
			}
		}
		return list
	}
	if c.IsInvoke() {
		return nil
	}
	for _, literal := range f.literals(c.Value) {
		list = append(list, f.closedBy(literal)...)
	}
	return f.boundClose(c.Value, list)
}

// boundClose adds the scope of a method value s.Close that is called.
func (f *flow) boundClose(v ssa.Value, list []closing) []closing {
	for e := range f.of(v)[""] {
		if m, ok := e.base.(*ssa.MakeClosure); ok && isBoundClose(m) {
			list = append(list, closing{f.scopes(f.of(m.Bindings[0]), m.Bindings[0].Type()), true})
		}
	}
	return list
}

func isBoundClose(m *ssa.MakeClosure) bool {
	fn := m.Fn.(*ssa.Function)
	return fn.Parent() == nil && len(m.Bindings) == 1 && isScope(m.Bindings[0].Type()) && fn.Name() == "Close$bound"
}

// closedBy returns the scopes that a call of a literal closes.
func (f *flow) closedBy(literal *ssa.Function) (list []closing) {
	if f.visiting[literal] {
		return nil
	}
	f.visiting[literal] = true
	defer delete(f.visiting, literal)
	for _, b := range literal.Blocks {
		for _, i := range b.Instrs {
			if call, ok := i.(ssa.CallInstruction); ok {
				for _, c := range f.closings(call) {
					for _, o := range c.of {
						sure := c.sure && len(c.of) == 1 && f.always(o, literal)
						list = append(list, closing{[]*origin{o}, sure})
					}
				}
			}
		}
	}
	return list
}

// statuses returns the possible states of a scope before each instruction of a function, starting
// with first.
func (f *flow) statuses(o *origin, fn *ssa.Function, first status) map[ssa.Instruction]status {
	before := map[ssa.Instruction]status{}
	entry := map[*ssa.BasicBlock]status{}
	if len(fn.Blocks) == 0 {
		return before
	}
	entry[fn.Blocks[0]] = first
	work := []*ssa.BasicBlock{fn.Blocks[0]}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		now := entry[b]
		for _, i := range b.Instrs {
			before[i] = now
			call, ok := i.(ssa.CallInstruction)
			if !ok {
				continue
			}
			if call == o.at && o.fn == fn {
				now = open
				continue
			}
			if _, ok := i.(*ssa.Go); ok {
				continue
			}
			for _, c := range f.closings(call) {
				s, ok := c.closes(o)
				if !ok {
					continue
				}
				if _, ok := i.(*ssa.Defer); ok && s == closed {
					s = deferred
				}
				now = now&(unopened|closed) | s
			}
		}
		for _, next := range b.Succs {
			if was, seen := entry[next]; !seen || was|now != was {
				entry[next] = was | now
				work = append(work, next)
			}
		}
	}
	return before
}

// always reports whether an open scope is closed at each return of a function.
func (f *flow) always(o *origin, fn *ssa.Function) bool {
	if len(f.opening(fn)) == 0 {
		return false
	}
	before := f.statuses(o, fn, open)
	returns := 0
	for _, b := range fn.Blocks {
		if r, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok && b != fn.Recover {
			s, reached := before[r]
			if reached && s&^(closed|deferred) != 0 {
				return false
			}
			returns++
		}
	}
	return returns > 0
}

func (f *flow) opening(fn *ssa.Function) (list []ssa.CallInstruction) {
	for _, b := range fn.Blocks {
		for _, i := range b.Instrs {
			if call, ok := i.(ssa.CallInstruction); ok {
				list = append(list, call)
			}
		}
	}
	return list
}

func (f *flow) closesAlways(o *origin) bool { return f.closesAny(o) && f.always(o, f.root) }

// closesAny reports whether a call in the flow's function may close o. It is quick, and mostly
// false.
func (f *flow) closesAny(o *origin) bool {
	for _, call := range f.opening(f.root) {
		for _, c := range f.closings(call) {
			if slices.Contains(c.of, o) {
				return true
			}
		}
	}
	return false
}

func (f *flow) settle() {
	for _, fn := range f.fns {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				f.settleBy(fn, i)
			}
		}
	}
	for _, o := range f.opened {
		if len(o.closes) > 0 && !o.lost {
			slices.SortFunc(o.closes, func(a, b ssa.Instruction) int { return int(a.Pos() - b.Pos()) })
			o.ends = f.allClosed(o)
		}
	}
}

// allClosed reports whether a scope is closed at each return of the function that opens it.
func (f *flow) allClosed(o *origin) bool {
	before := f.statuses(o, o.fn, unopened)
	for _, b := range o.fn.Blocks {
		if r, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok && b != o.fn.Recover && before[r]&(open|unsure) != 0 {
			return false
		}
	}
	return true
}

func (f *flow) settleBy(fn *ssa.Function, i ssa.Instruction) {
	lose := func(p places) {
		for e := range f.carried(p) {
			if e.kind == keeper {
				e.from.lost = true
			}
		}
	}
	switch i := i.(type) {
	case *ssa.MakeInterface:
		// Any function with it as an io.Closer may close it.
		if t, ok := i.Type().Underlying().(*types.Interface); ok && t.NumMethods() > 0 && isScope(i.X.Type()) {
			lose(f.of(i.X))
		}
	case *ssa.MakeClosure:
		literal := i.Fn.(*ssa.Function)
		if f.isDirect(i) {
			return
		}
		if isBoundClose(i) {
			lose(f.of(i.Bindings[0]))
			return
		}
		for _, c := range f.closedBy(literal) { // a later call of the literal closes these
			for _, o := range c.of {
				if o.fn != literal && (o.fn == nil || !isIn(o.fn, literal)) {
					o.lost = true
				}
			}
		}
	case ssa.CallInstruction:
		for _, c := range f.closings(i) {
			for _, o := range c.of {
				if _, goes := i.(*ssa.Go); goes {
					o.lost = true
				} else if o.fn == fn {
					o.closes = append(o.closes, i)
				}
			}
		}
	}
}

func isIn(fn, outer *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if fn == outer {
			return true
		}
	}
	return false
}

// isDirect reports whether a literal is only called, or deferred, where it is made.
func (f *flow) isDirect(m *ssa.MakeClosure) bool {
	for _, r := range *m.Referrers() {
		switch r := r.(type) {
		case *ssa.Call:
			if r.Call.Value != m {
				return false
			}
		case *ssa.Defer:
			if r.Call.Value != m {
				return false
			}
		case *ssa.DebugRef:
		default:
			return false
		}
	}
	return true
}
