package lifetime

import (
	"fmt"
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// escapes reports memory that is passed to a place that outlives its scope.
func (f *flow) escapes() {
	f.sinks(func(s sink) {
		if s.how == keyed || s.how == asked {
			return
		}
		for e := range f.carried(s.what) {
			if !e.is(allocated) {
				continue
			}
			if how := f.escape(s, e); how != "" {
				f.report("escape", s.at.Pos(), e, how)
			}
		}
	})
}

// escape names the place in which the memory e outlives its scope, and the remedy. It returns "" if
// the memory doesn't.
func (f *flow) escape(s sink, e elem) string {
	fn := f.end(e.scope())
	if fn == nil || !isIn(s.at.Parent(), fn) {
		return ""
	}
	const longer = "make it in a scope that lives as long, or keep a copy"
	switch s.how {
	case returned:
		if s.at.Parent() == fn && f.gone(f.origin(e.scope()), s.at) {
			return "it is returned; use the caller's scope, or return a copy"
		}
	case stored, put, handed:
		for to := range s.where[""] {
			if to.is(allocated) && f.within(to.scope(), e.scope()) {
				return "" // it may be the same scope
			}
		}
		first := ""
		for to := range s.where[""] {
			where := f.outside(to, e.scope(), fn)
			if where == "" || first != "" && first < where || s.how == stored && f.overwritten(s, to) {
				continue
			}
			first = where
		}
		switch {
		case first == "":
		case s.how == handed:
			return fmt.Sprintf("%s keeps it in %s; %s", s.keeper.Name(), first, longer)
		default:
			return "it is kept in " + first + "; " + longer
		}
	case sent:
		if !f.receives(s.where) {
			return "it is sent to a channel; send a copy"
		}
	case started:
		if !f.waits(s.at) {
			return "a goroutine that this function doesn't wait for uses it; " +
				"wait before the scope closes, or pass a copy"
		}
	}
	return ""
}

// gone reports whether a scope is closed once the function has returned.
func (f *flow) gone(o *origin, at ssa.Instruction) bool {
	if o.lent() || o.scope.path == temporary && !(o.ends && !o.lost) {
		return true
	}
	return f.states(o)[at]&(closed|deferred) != 0
}

// outside names the place that a value is stored in, if the place outlives the function; else it
// returns "".
func (f *flow) outside(to, scope elem, fn *ssa.Function) string {
	switch to.kind() {
	case given:
		switch base := to.root.(type) {
		case nil:
			return "a global"
		case *ssa.Global:
			if to.path == "" {
				return "the global " + base.Name()
			}
			return "the global " + base.Name() + ", or a value reached through it"
		case *ssa.Parameter:
			if isIn(fn, base.Parent()) {
				return "values reached through " + base.Name()
			}
		}
	case cell:
		owner := to.root.Parent()
		if owner == nil || owner == fn || !isIn(fn, owner) || !f.usedOutside(to.root, fn) {
			return ""
		}
		if a, ok := to.root.(*ssa.Alloc); ok && a.Comment != "" && a.Comment != "complit" && a.Comment != "new" {
			return "the captured variable " + a.Comment
		}
		return "values reached through a captured variable"
	case memory:
		in := to.scope()
		var owner *ssa.Function
		if p, ok := in.root.(*ssa.Parameter); ok {
			owner = p.Parent()
		}
		switch {
		case f.within(in, scope):
		case f.within(scope, in), owner != nil && isIn(fn, owner) && (owner != fn || f.origin(in) == nil):
			return "memory of a scope that lives longer"
		}
	}
	return ""
}

// usedOutside reports whether a variable is read outside a function and its literals.
func (f *flow) usedOutside(v ssa.Value, fn *ssa.Function) bool {
	for i := range f.instructions {
		if isIn(i.Parent(), fn) {
			continue
		}
		var read []ssa.Value
		switch i := i.(type) {
		case *ssa.UnOp:
			read = append(read, i.X)
		case *ssa.Lookup:
			read = append(read, i.X)
		case *ssa.Range:
			read = append(read, i.X)
		case *ssa.Return:
			read = i.Results
		case ssa.CallInstruction:
			read = i.Common().Args
		}
		for _, x := range read {
			for e := range f.of(x)[""] {
				if e.kind() == cell && e.root == v {
					return true
				}
			}
		}
	}
	return false
}

// overwritten reports whether a later store replaces the value with one that may stay: then the
// code replaces it on purpose.
func (f *flow) overwritten(s sink, to elem) bool {
	for i := range f.instructions {
		other, ok := i.(*ssa.Store)
		if !ok || i == s.at || i.Pos() < s.at.Pos() || !f.of(other.Addr)[""][to] {
			continue
		}
		ends := false
		for e := range f.carried(f.of(other.Val)) {
			ends = ends || e.is(allocated) && f.end(e.scope()) != nil
		}
		if !ends {
			return true
		}
	}
	return false
}

// receives reports whether a function of the flow makes the channel and one reads it.
func (f *flow) receives(channel places) bool {
	for i := range f.instructions {
		if u, ok := i.(*ssa.UnOp); ok && u.Op == token.ARROW {
			for e := range f.of(u.X)[""] {
				if e.kind() == cell && channel[""][e] {
					return true
				}
			}
		}
	}
	return false
}

// waits reports whether the function that starts a goroutine waits for anything, before or after.
func (f *flow) waits(at ssa.Instruction) bool {
	for i := range instructions(at.Parent()) {
		switch i := i.(type) {
		case *ssa.UnOp:
			if i.Op == token.ARROW {
				return true
			}
		case *ssa.Select:
			return true
		case ssa.CallInstruction:
			c := i.Common()
			callee := c.StaticCallee()
			if c.IsInvoke() && c.Method.Name() == "Wait" || callee != nil && callee.Name() == "Wait" {
				return true
			}
		}
	}
	return false
}
