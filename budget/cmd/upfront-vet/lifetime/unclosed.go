package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// unclosed reports scopes that are still open where the function returns that opened them.
func (f *flow) unclosed() {
	leaves := f.leaving()
	for _, o := range f.opened {
		if o.kind != opened || o.lost || leaves[o] || len(o.closes) == 0 && !f.mustClose(o) {
			continue
		}
		before := f.statuses(o, o.fn, unopened)
		for _, b := range o.fn.Blocks {
			r, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
			if !ok || b == o.fn.Recover || before[r]&open == 0 || f.forgiven(o, r) {
				continue
			}
			if len(o.closes) == 0 {
				f.p.report("unclosed", o.at.Pos(), "the scope that %s opens is never closed; defer its Close", f.p.expr(o.at))
			} else {
				where := "at its end"
				if r.Pos().IsValid() {
					where = "at " + f.p.line(r.Pos(), o.at.Pos())
				}
				f.p.report("unclosed", o.at.Pos(), "the scope that %s opens is still open when the function returns %s; defer its Close",
					f.p.expr(o.at), where)
			}
			break
		}
	}
}

// leaving are the scopes that others have when the function has returned, or may have: they may close them.
func (f *flow) leaving() map[*origin]bool {
	leaves := map[*origin]bool{}
	f.sinks(func(s sink) {
		away := s.how == returned || s.how == sent || s.how == started || s.how == asked
		for to := range s.where[""] {
			if to.kind == given || to.kind == memory || strings.HasSuffix(to.off, content) || s.how == put ||
				to.kind == cell && to.base.Parent() != s.fn {
				away = true
			}
		}
		if !away {
			return
		}
		for e := range f.carried(s.what) {
			if e.kind == keeper {
				leaves[e.from] = true
			}
		}
	})
	return leaves
}

// mustClose says whether a scope that nobody closes is one too many each time the function is called. One on a budget that
// the function makes ends with that; and what a test leaves open, its budget tells.
func (f *flow) mustClose(o *origin) bool {
	if doing(o.at.Common().StaticCallee()).what != opens { // a function that opens one for its callers may know who closes it
		return false
	}
	if strings.HasSuffix(f.p.pass.Fset.Position(o.at.Pos()).Filename, "_test.go") {
		return false
	}
	for _, in := range o.in {
		if in.kind == opened && len(in.closes) == 0 && !f.mustClose(in) {
			return false
		}
	}
	for v := range o.fn.Signature.Results().Variables() {
		if carries(v.Type()) { // what it gives may lie there
			return false
		}
	}
	return len(o.in) > 0
}

// forgiven: a function that fails may leave open what it opened in the scope of a Do or a load around: that closes it.
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
