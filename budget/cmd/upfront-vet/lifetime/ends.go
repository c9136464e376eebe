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

// closing is a scope that a call closes, surely or perhaps.
type closing struct {
	scope elem
	sure  bool
}

// closingsOfAny returns the closings of one of several scopes.
func closingsOfAny(scopes set) (list []closing) {
	for scope := range scopes {
		list = append(list, closing{scope, len(scopes) == 1})
	}
	return list
}

// closings returns the scopes that a call closes, also through functions that it calls.
func (f *flow) closings(i ssa.CallInstruction) []closing {
	if _, known := f.closing[i]; !known {
		f.closing[i] = nil // a recursive call closes nothing
		f.closing[i] = f.closingsOf(i)
	}
	return f.closing[i]
}

func (f *flow) closingsOf(i ssa.CallInstruction) (list []closing) {
	c := i.Common()
	if c.IsInvoke() {
		return nil
	}
	if callee := c.StaticCallee(); callee != nil && callee.Parent() == nil {
		if s, args := f.p.summary(callee), argumentsOf(c); s != nil {
			for _, at := range s.Closes {
				if at.Param < len(args) {
					list = append(list, closingsOfAny(f.follow(i, args[at.Param], at.Path+held)[""])...)
				}
			}
		}
		return list
	}
	for _, literal := range f.literals(c.Value) {
		list = append(list, f.closedBy(literal)...)
	}
	for e := range f.of(c.Value)[""] {
		if m, ok := e.root.(*ssa.MakeClosure); ok && isBoundClose(m) {
			list = append(list, closingsOfAny(f.scopes(f.of(m.Bindings[0]), m.Bindings[0].Type()))...)
		}
	}
	return list
}

// isBoundClose reports whether m is a method value s.Close.
func isBoundClose(m *ssa.MakeClosure) bool {
	fn := m.Fn.(*ssa.Function)
	return fn.Parent() == nil && doing(fn).what == closes
}

// closedBy returns the scopes that a call of a function of the flow closes.
func (f *flow) closedBy(fn *ssa.Function) (list []closing) {
	for i := range instructions(fn) {
		if call, ok := i.(ssa.CallInstruction); ok {
			for _, c := range f.closings(call) {
				list = append(list, closing{c.scope, c.sure && f.always(c.scope, fn)})
			}
		}
	}
	return list
}

// statuses returns the possible states of a scope before each instruction of a function, starting
// with first.
func (f *flow) statuses(scope elem, fn *ssa.Function, first status) map[ssa.Instruction]status {
	before, entry := map[ssa.Instruction]status{}, map[*ssa.BasicBlock]status{}
	var work []*ssa.BasicBlock
	enter := func(b *ssa.BasicBlock, s status) {
		if was := entry[b]; was|s != was {
			entry[b] = was | s
			work = append(work, b)
		}
	}
	if len(fn.Blocks) > 0 {
		enter(fn.Blocks[0], first)
	}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		now := entry[b]
		for _, i := range b.Instrs {
			before[i] = now
			now = f.after(i, scope, now)
		}
		for _, next := range b.Succs {
			enter(next, now)
		}
	}
	return before
}

// after returns the status of a scope after an instruction.
func (f *flow) after(i ssa.Instruction, scope elem, now status) status {
	call, ok := i.(ssa.CallInstruction)
	if !ok {
		return now
	}
	if call.Value() != nil && call.Value() == scope.root {
		return open
	}
	_, goes := i.(*ssa.Go)
	_, defers := i.(*ssa.Defer)
	for _, c := range f.closings(call) {
		if goes || c.scope != scope {
			continue
		}
		now &= unopened | closed
		switch {
		case !c.sure:
			now |= unsure
		case defers:
			now |= deferred
		default:
			now |= closed
		}
	}
	return now
}

// states returns the statuses of a scope in the function that opens it.
func (f *flow) states(o *origin) map[ssa.Instruction]status {
	if o.states == nil {
		o.states = f.statuses(o.scope, o.fn, unopened)
	}
	return o.states
}

// atReturns returns the possible states of a scope at the returns of a function.
func atReturns(before map[ssa.Instruction]status, fn *ssa.Function) (all status) {
	for r := range exits(fn) {
		all |= before[r]
	}
	return all
}

// exits are the returns of a function, without the one after a recovered panic.
func exits(fn *ssa.Function) func(yield func(*ssa.Return) bool) {
	return func(yield func(*ssa.Return) bool) {
		for i := range instructions(fn) {
			if r, ok := i.(*ssa.Return); ok && r.Block() != fn.Recover && !yield(r) {
				return
			}
		}
	}
}

// always reports whether an open scope is closed at each return of a function.
func (f *flow) always(scope elem, fn *ssa.Function) bool {
	all := atReturns(f.statuses(scope, fn, open), fn)
	return all != 0 && all&^(closed|deferred) == 0
}

// closesAlways returns the scopes of callers that the flow's function closes.
func (f *flow) closesAlways() (list []place) {
	for _, c := range f.closedBy(f.root) {
		if at := f.place(c.scope); c.sure && at.Param >= 0 && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// settle completes the origins: which calls close the scopes, and whether they are surely closed.
func (f *flow) settle() {
	for i := range f.instructions {
		switch i := i.(type) {
		case *ssa.MakeInterface:
			// Any function with it as an io.Closer may close it.
			if t, ok := i.Type().Underlying().(*types.Interface); ok && t.NumMethods() > 0 && isScope(i.X.Type()) {
				f.lose(f.of(i.X))
			}
		case *ssa.MakeClosure: // a later call of the literal closes these
			if literal := i.Fn.(*ssa.Function); isBoundClose(i) && !isDirect(i) {
				f.lose(f.of(i.Bindings[0]))
			} else if !isDirect(i) {
				for _, c := range f.closedBy(literal) {
					if o := f.origin(c.scope); o != nil && !isIn(o.fn, literal) {
						o.lost = true
					}
				}
			}
		case ssa.CallInstruction:
			for _, c := range f.closings(i) {
				o := f.origin(c.scope)
				if _, goes := i.(*ssa.Go); goes && o != nil {
					o.lost = true
				} else if o != nil && o.fn == i.Parent() {
					o.closes = append(o.closes, i)
				}
			}
		}
	}
	for o := range f.opened {
		if len(o.closes) > 0 && !o.lost {
			slices.SortFunc(o.closes, func(a, b ssa.Instruction) int { return int(a.Pos() - b.Pos()) })
			o.ends = atReturns(f.states(o), o.fn)&(open|unsure) == 0
		}
	}
}

// lose marks scopes that code that can't be seen may close.
func (f *flow) lose(p places) {
	for e := range f.carried(p) {
		if o := f.origin(e); o != nil {
			o.lost = true
		}
	}
}

// opened are the scopes that the functions of the flow open.
func (f *flow) opened(yield func(*origin) bool) {
	for root, o := range f.origins {
		if _, ok := root.(*ssa.Call); ok && !yield(o) {
			return
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
func isDirect(m *ssa.MakeClosure) bool {
	for _, r := range *m.Referrers() {
		call, ok := r.(ssa.CallInstruction)
		if _, goes := r.(*ssa.Go); !ok || goes || call.Common().Value != m {
			return false
		}
	}
	return true
}
