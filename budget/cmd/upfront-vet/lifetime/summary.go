package lifetime

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// A summary has the effects of a function for its callers. It is also a fact, for other packages.
type summary struct {
	Gives  []gift
	Closes []place // scopes that are closed when it returns
	Keeps  []kept  // values that may be kept beyond the call
}

func (*summary) AFact() {}

func (s *summary) String() string {
	var parts []string
	for _, g := range s.Gives {
		parts = append(parts, fmt.Sprintf("result%s: %s of %d%s", g.Result, shares[g.What], g.Param, g.Path))
	}
	for _, c := range s.Closes {
		parts = append(parts, fmt.Sprintf("closes %d%s", c.Param, c.Path))
	}
	for _, k := range s.Keeps {
		parts = append(parts, fmt.Sprintf("keeps %s of %d%s in %d%s", shares[k.What], k.Param, k.Path, k.To, k.At))
	}
	return strings.Join(parts, "; ")
}

// A place is the value at a path from a parameter.
type place struct {
	Param int
	Path  string
}

// kept is a place whose value is stored in another parameter's memory, or elsewhere.
type kept struct {
	What  share
	Param int
	Path  string
	To    int
	At    string // the place in To: see elem.off
}

// The values of kept.To that aren't a parameter.
const (
	inGlobal  = -1
	somewhere = -2
)

// A gift is a result that comes from a parameter.
type gift struct {
	Result string
	What   share
	Param  int
	Path   string
}

type share int

const (
	itself share = iota
	itsMemory
	itsTemp
	itsKeeper
	itsOpened // a scope that the function opens in or on it, and leaves open
)

var shares = [...]string{"all", "memory", "temporaries", "a scope", "a scope that is opened in it"}

// summary returns the summary of a function of this package or of another, or nil.
func (p *pkg) summary(fn *ssa.Function) *summary {
	if o := fn.Origin(); o != nil {
		fn = o
	}
	if s, ok := p.summaries[fn]; ok {
		return s
	}
	if fn.Pkg != p.ssa || fn.Blocks == nil {
		object, ok := fn.Object().(*types.Func)
		if !ok {
			return nil
		}
		s := new(summary)
		if !p.pass.ImportObjectFact(object.Origin(), s) {
			s = nil
		}
		p.summaries[fn] = s
		return s
	}
	p.summaries[fn] = nil // a recursive call finds no summary
	f := p.flow(fn)
	s := f.summarize()
	p.summaries[fn] = s
	return s
}

// follow returns the values at a path from a value.
func (f *flow) follow(v ssa.Value, path string) (places, types.Type) {
	p, t := f.of(v), v.Type()
	for path != "" {
		switch {
		case path[0] == '.':
			i := int(path[1] - '0')
			s, ok := t.Underlying().(*types.Struct)
			if !ok || i >= s.NumFields() {
				return nil, t
			}
			p, t, path = p.part(path[:2]), s.Field(i).Type(), path[2:]
		case path[0] == '*':
			// The path continues with the part that is pointed to.
			off := path[1:]
			if k := strings.IndexByte(off, '*'); k >= 0 {
				off = off[:k]
			}
			path = path[1+len(off):]
			t = pointedTo(t, off)
			if t == nil {
				return nil, types.Typ[types.Invalid]
			}
			p = f.at(inside(p, off), t)
		default:
			return nil, t
		}
	}
	return p, t
}

// pointedTo returns the type of a part of a pointer's target.
func pointedTo(t types.Type, off string) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		t = u.Elem()
	case *types.Slice, *types.Map, *types.Chan:
	default:
		return nil
	}
	for off != "" {
		switch u := t.Underlying().(type) {
		case *types.Struct:
			i := int(off[1] - '0')
			if off[0] != '.' || i >= u.NumFields() {
				return nil
			}
			t, off = u.Field(i).Type(), off[2:]
		case *types.Array:
			if !strings.HasPrefix(off, content) {
				return nil
			}
			t, off = u.Elem(), off[len(content):]
		case *types.Slice:
			if !strings.HasPrefix(off, content) {
				return nil
			}
			t, off = u.Elem(), off[len(content):]
		case *types.Map:
			if strings.HasPrefix(off, key) {
				t, off = u.Key(), off[len(key):]
			} else {
				t, off = u.Elem(), strings.TrimPrefix(off, content)
			}
		case *types.Chan:
			t, off = u.Elem(), strings.TrimPrefix(off, content)
		default:
			return nil
		}
	}
	return t
}

// paramOf returns the number of a parameter of the flow's function, or -1.
func (f *flow) paramOf(v ssa.Value) int {
	p, ok := v.(*ssa.Parameter)
	if !ok {
		return -1
	}
	return slices.Index(f.root.Params, p)
}

func (f *flow) summarize() *summary {
	s := new(summary)
	single := f.root.Signature.Results().Len() == 1
	for at, elems := range f.returns[f.root] {
		if single {
			at = strings.TrimPrefix(at, field(0))
		}
		for e := range elems {
			g := gift{Result: at}
			from := e.from
			switch e.kind {
			case given:
				g.Param, g.Path = f.paramOf(e.base), e.path
			case memory, keeper:
				g.What = itsMemory
				if e.kind == keeper {
					g.What = itsKeeper
				}
				if from.kind == temporary && len(from.in) == 1 && e.kind == memory {
					g.What, from = itsTemp, from.in[0]
				}
				if from.kind == opened && e.kind == keeper && len(from.closes) == 0 && len(from.in) == 1 {
					g.What, from = itsOpened, from.in[0]
				}
				if from.kind != foreign {
					continue
				}
				g.Param, g.Path = f.paramOf(from.base), from.path
			default:
				continue
			}
			if g.Param >= 0 && !slices.Contains(s.Gives, g) {
				s.Gives = append(s.Gives, g)
			}
		}
	}
	for _, o := range f.foreign {
		if k := f.paramOf(o.base); k >= 0 && f.closesAlways(o) {
			s.Closes = append(s.Closes, place{k, o.path})
		}
	}
	s.Keeps = f.keeps()
	slices.SortFunc(s.Gives, func(a, b gift) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	slices.SortFunc(s.Closes, func(a, b place) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	slices.SortFunc(s.Keeps, func(a, b kept) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return s
}
