package lifetime

import (
	"fmt"
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// escapes reports memory that is passed to a place that outlives its scope.
func (f *flow) escapes() {
	f.sinks(func(s sink) {
		if s.how == keyed || s.how == asked {
			return
		}
		for e := range f.carried(s.what) {
			if e.kind != memory {
				continue
			}
			if how := f.escape(s, e); how != "" {
				f.p.report("escape", s.at.Pos(), "%s; %s", f.story(e), how)
			}
		}
	})
}

// escape names the place in which the memory e outlives its scope, and the remedy. It returns "" if
// the memory doesn't.
func (f *flow) escape(s sink, e elem) string {
	fn := f.end(e.from)
	if fn == nil || !isIn(s.fn, fn) {
		return ""
	}
	const longer = "make it in a scope that lives as long, or keep a copy"
	switch s.how {
	case returned:
		if s.fn == fn && f.gone(e.from, s.at) {
			return "it is returned; use the caller's scope, or return a copy"
		}
	case stored, put, handed:
		for to := range s.where[""] {
			if to.kind == memory && to.from.within(e.from) {
				return "" // it may be the same scope
			}
		}
		first := ""
		for to := range s.where[""] {
			where := f.outside(to, e.from, fn)
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
			return "a goroutine that this function doesn't wait for uses it; wait before the scope closes, or pass a copy"
		}
	}
	return ""
}

// gone reports whether a scope is closed once the function has returned.
func (f *flow) gone(o *origin, at ssa.Instruction) bool {
	if o.kind == ofDo || o.kind == temporary && !(o.ends && !o.lost) {
		return true
	}
	s := f.statuses(o, o.fn, unopened)[at]
	return s&(open|unsure) == 0 && s&(closed|deferred) != 0
}

// outside names the place that a value is stored in, if the place outlives the function; else it
// returns "".
func (f *flow) outside(to elem, o *origin, fn *ssa.Function) string {
	switch to.kind {
	case given:
		switch base := to.base.(type) {
		case nil:
			return "a global"
		case *ssa.Global:
			if to.path == "" && to.off == "" {
				return "the global " + base.Name()
			}
			return "the global " + base.Name() + ", or a value reached through it"
		case *ssa.Parameter:
			if isIn(fn, base.Parent()) {
				return "values reached through " + base.Name()
			}
		}
	case cell:
		owner := to.base.Parent()
		if owner == nil || owner == fn || !isIn(fn, owner) || !f.usedOutside(to.base, fn) {
			return ""
		}
		if a, ok := to.base.(*ssa.Alloc); ok && a.Comment != "" && a.Comment != "complit" && a.Comment != "new" {
			return "the captured variable " + a.Comment
		}
		return "values reached through a captured variable"
	case memory:
		in := to.from
		switch {
		case in == o || in.within(o):
		case o.within(in), in.kind == foreign && isParamOf(in.base, fn),
			(in.kind == ofDo || in.kind == ofLoad) && in.fn != fn && isIn(fn, in.fn):
			return "memory of a scope that lives longer"
		}
	}
	return ""
}

func isParamOf(v ssa.Value, fn *ssa.Function) bool {
	p, ok := v.(*ssa.Parameter)
	return ok && isIn(fn, p.Parent())
}

// usedOutside reports whether a variable is read outside a function and its literals.
func (f *flow) usedOutside(v ssa.Value, fn *ssa.Function) bool {
	for _, other := range f.fns {
		if isIn(other, fn) {
			continue
		}
		for _, b := range other.Blocks {
			for _, i := range b.Instrs {
				var x ssa.Value
				switch i := i.(type) {
				case *ssa.UnOp:
					x = i.X
				case *ssa.Lookup:
					x = i.X
				case *ssa.Range:
					x = i.X
				case *ssa.Return:
					for _, r := range i.Results {
						for e := range f.of(r)[""] {
							if e.kind == cell && e.base == v {
								return true
							}
						}
					}
				case ssa.CallInstruction:
					for _, arg := range i.Common().Args {
						for e := range f.of(arg)[""] {
							if e.kind == cell && e.base == v {
								return true
							}
						}
					}
				}
				if x == nil {
					continue
				}
				for e := range f.of(x)[""] {
					if e.kind == cell && e.base == v {
						return true
					}
				}
			}
		}
	}
	return false
}

// overwritten reports whether a later store replaces the value with one that may stay: then the
// code replaces it on purpose.
func (f *flow) overwritten(s sink, to elem) bool {
	for _, fn := range f.fns {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				other, ok := i.(*ssa.Store)
				if !ok || i == s.at || i.Pos() < s.at.Pos() || !f.of(other.Addr)[""][to] {
					continue
				}
				if !slices.ContainsFunc(f.memories(other.Val), func(e elem) bool { return f.end(e.from) != nil }) {
					return true
				}
			}
		}
	}
	return false
}

func (f *flow) memories(v ssa.Value) (list []elem) {
	for e := range f.carried(f.of(v)) {
		if e.kind == memory {
			list = append(list, e)
		}
	}
	return list
}

// receives reports whether a function of the flow makes the channel and one reads it.
func (f *flow) receives(channel places) bool {
	for e := range channel[""] {
		if e.kind != cell {
			continue
		}
		for _, fn := range f.fns {
			for _, b := range fn.Blocks {
				for _, i := range b.Instrs {
					if u, ok := i.(*ssa.UnOp); ok && u.Op == token.ARROW && f.of(u.X)[""][e] {
						return true
					}
				}
			}
		}
	}
	return false
}

// waits reports whether the function that starts a goroutine waits for anything, before or after.
func (f *flow) waits(at ssa.Instruction) bool {
	for _, b := range at.Parent().Blocks {
		for _, i := range b.Instrs {
			switch i := i.(type) {
			case *ssa.UnOp:
				if i.Op == token.ARROW {
					return true
				}
			case *ssa.Select:
				return true
			case ssa.CallInstruction:
				if c := i.Common(); c.IsInvoke() && c.Method.Name() == "Wait" {
					return true
				} else if callee := c.StaticCallee(); callee != nil && callee.Name() == "Wait" {
					return true
				}
			}
		}
	}
	return false
}
