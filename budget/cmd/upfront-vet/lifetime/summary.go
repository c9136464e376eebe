package lifetime

import (
	"cmp"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// A summary has the effects of a function for its callers. It is also a fact, for other packages.
type summary struct {
	Moves  []move
	Closes []place // scopes that are closed when it returns
}

func (*summary) AFact() {}

// A place is the value at a path from a parameter.
type place struct {
	Param int
	Path  string
}

// A move is a value that a function returns, or keeps beyond the call. At the end of From.Path, the
// step opened is a scope that the function opens in the scope before, and leaves open.
type move struct {
	From place
	To   int    // a parameter, or one of the values below
	At   string // the place in the result, or the part of the parameter's target
}

// The values of move.To that aren't a parameter.
const (
	asResult  = -1
	inGlobal  = -2
	somewhere = -3
)

// summary returns the summary of a function of this package or of another, or nil.
func (p *pkg) summary(fn *ssa.Function) *summary {
	if o := fn.Origin(); o != nil {
		fn = o
	}
	if s, ok := p.summaries[fn]; ok {
		return s
	}
	p.summaries[fn] = nil // a recursive call finds no summary
	object, _ := fn.Object().(*types.Func)
	if d := doing(fn); d.what != nothing {
		p.summaries[fn] = d.summary(fn)
	} else if fn.Pkg == p.ssa && fn.Blocks != nil {
		p.summaries[fn] = p.flow(fn).summarize()
	} else if s := new(summary); object != nil && p.pass.ImportObjectFact(object.Origin(), s) {
		p.summaries[fn] = s
	}
	return p.summaries[fn]
}

// follow returns the values at a path from an argument of a call.
func (f *flow) follow(i ssa.CallInstruction, v ssa.Value, path string) places {
	p, t := f.of(v), v.Type()
	for path != "" {
		switch step := path[:1]; step {
		case ".":
			p, path = p.part(path[:2]), path[2:]
		case target:
			// The path continues with the part that is pointed to.
			part := path[1:]
			if k := strings.IndexAny(part, target+opened+temporary+allocated+held); k >= 0 {
				part = part[:k]
			}
			p, path = f.load(inside(p, part), false), path[1+len(part):]
		case held:
			return places{"": f.scopes(p, t)}
		case opened, temporary:
			p, path = f.open(i, step, f.scopes(p, t)), path[1:]
		case allocated:
			m := places{}
			for e := range f.scopes(p, t) {
				m.add("", elem{e.root, e.path + allocated, i})
			}
			return m
		default:
			return nil
		}
		t = types.Typ[types.Invalid] // a later step has no pointer to a scope
	}
	return p
}

// paramOf returns the number of a parameter of the flow's function, or -1.
func (f *flow) paramOf(v ssa.Value) int {
	p, ok := v.(*ssa.Parameter)
	if !ok {
		return -1
	}
	return slices.Index(f.root.Params, p)
}

// place returns the place of an elem for callers of the flow's function. If there is none, Param
// is -1.
func (f *flow) place(e elem) place {
	path, _ := e.pointer()
	if f.origin(e.scope()) != nil {
		return place{-1, path}
	}
	return place{f.paramOf(e.root), path}
}

// placeOfResult returns the place of a result for callers. The result may be a scope that the
// function leaves open, or memory of a temporary.
func (f *flow) placeOfResult(e elem) place {
	at := f.place(e)
	o := f.origin(e.scope())
	if o == nil || len(o.in) != 1 {
		return at
	}
	if e.path == temporary+allocated || e.path == opened && !o.lent() && len(o.closes) == 0 {
		for in := range o.in {
			at = f.place(in)
		}
		at.Path += e.path
	}
	return at
}

func (f *flow) summarize() *summary {
	s := &summary{f.keeps(), f.closesAlways()}
	for at, elems := range f.returns[f.root] {
		if f.root.Signature.Results().Len() == 1 {
			at = strings.TrimPrefix(at, field(0))
		}
		for e := range elems {
			if from := f.placeOfResult(e); from.Param >= 0 {
				s.Moves = append(s.Moves, move{from, asResult, at})
			}
		}
	}
	slices.SortFunc(s.Moves, func(a, b move) int {
		return cmp.Or(a.From.compare(b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.At, b.At))
	})
	s.Moves = slices.Compact(s.Moves)
	slices.SortFunc(s.Closes, place.compare)
	return s
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.Param, q.Param), cmp.Compare(p.Path, q.Path))
}
