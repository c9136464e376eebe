package lifetime

import (
	"go/types"
	"maps"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// unclosed reports scopes that are still open when the function that opened them returns.
func (f *flow) unclosed() {
	leaves := f.leaving()
	for o := range f.opened {
		if o.scope.path != opened || o.lost || leaves[o.scope] || len(o.closes) == 0 && !f.mustClose(o) {
			continue
		}
		before := f.states(o)
		for r := range exits(o.fn) {
			if before[r]&open == 0 || f.forgiven(o, r) {
				continue
			}
			if len(o.closes) == 0 {
				f.p.report("unclosed", o.at.Pos(), "the scope that %s opens is never closed; defer its Close",
					f.p.expr(o.at))
			} else {
				where := "at its end"
				if r.Pos().IsValid() {
					where = "at " + f.p.line(r.Pos(), o.at.Pos())
				}
				f.p.report("unclosed", o.at.Pos(), "the scope that %s opens is still open "+
					"when the function returns %s; defer its Close", f.p.expr(o.at), where)
			}
			break
		}
	}
}

// leaving returns the scopes that other functions may reach, and so may close, after the return.
func (f *flow) leaving() set {
	leaves := set{}
	f.sinks(func(s sink) {
		away := s.how == returned || s.how == sent || s.how == started || s.how == asked
		for to := range s.where[""] {
			kind := to.kind()
			elsewhere := kind == given || kind == memory || kind == cell && to.root.Parent() != s.at.Parent()
			away = away || elsewhere || to.is(content+address) || s.how == put
		}
		if away {
			maps.Copy(leaves, f.carried(s.what))
		}
	})
	return leaves
}

// mustClose reports whether each call of the function leaves one more scope open. It doesn't if the
// function made the budget, which ends the scope. In a test it needn't: the test's budget reports
// open scopes.
func (f *flow) mustClose(o *origin) bool {
	if doing(o.at.Common().StaticCallee()).what != opens { // its callers may close it
		return false
	}
	if strings.HasSuffix(f.p.pass.Fset.Position(o.at.Pos()).Filename, "_test.go") {
		return false
	}
	for in := range o.in {
		outer := f.origin(in)
		if outer == nil || outer.lent() || in.path != opened {
			continue
		}
		if len(outer.closes) == 0 && !f.mustClose(outer) {
			return false
		}
	}
	for v := range o.fn.Signature.Results().Variables() {
		if f.p.carries(v.Type()) { // a result may hold it
			return false
		}
	}
	return len(o.in) > 0
}

// forgiven reports whether a return with an error may leave a scope open: the Do or load around
// closes it.
func (f *flow) forgiven(o *origin, r *ssa.Return) bool {
	call := o.at.Common()
	if len(call.Args) == 0 || !isScope(call.Args[0].Type()) {
		return false
	}
	for _, v := range r.Results {
		if types.Identical(v.Type(), errorType) {
			c, ok := resultOf(r, v).(*ssa.Const)
			if !ok || !c.IsNil() {
				return true
			}
		}
	}
	return false
}
