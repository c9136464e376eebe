package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// An elem is one possible value of a variable, or a value reached through it: the value at a path
// from a root. The path's last step says its kind.
type elem struct {
	root ssa.Value       // a parameter, a global, a variable, or the call or parameter of a scope
	path string          // the steps from the root
	made ssa.Instruction // memory: the call that returned it
}

// Steps of paths. A field is a step of two bytes; its second is none of these.
const (
	content   = "[]" // an element of a slice, a map or a channel
	key       = "[k]"
	target    = "*" // the target of a pointer
	address   = "&" // last: the address of the part before
	opened    = "+" // last: a scope that the root opened, or received from Do or Load
	temporary = "-" // last: a scope for temporaries
	allocated = "$" // last: memory of the scope before
	held      = "!" // of an effect: the scope of a value that holds one
)

func field(i int) string { return "." + string(rune('0'+min(i, '~'-'0'))) }

// longest is the greatest length of a path, in bytes; longer paths are merged or dropped.
const longest = 12

type sort int

const (
	memory sort = iota // points into the memory of a scope
	keeper             // a scope of this function, or a value that detects its end
	cell               // points to a variable or a composite value of this function or its closures
	given              // the value at a path from a parameter or a global
)

func (e elem) kind() sort {
	switch {
	case e.is(allocated):
		return memory
	case e.is(opened), e.is(temporary):
		return keeper
	}
	switch e.root.(type) {
	case *ssa.Parameter, *ssa.Global, nil:
		return given
	}
	return cell
}

func (e elem) is(step string) bool { return strings.HasSuffix(e.path, step) }

// target returns the path of the value that e points to.
func (e elem) target() string {
	if path, ok := strings.CutSuffix(e.path, address); ok {
		return path
	}
	return e.path + target
}

// pointer returns the path of the pointer through which e was reached, and the part of its target.
func (e elem) pointer() (path, part string) {
	if !e.is(address) {
		return e.path, ""
	}
	i := strings.LastIndex(e.path, target)
	return e.path[:max(i, 0)], e.path[i+1 : len(e.path)-1]
}

// scope returns the scope of memory.
func (e elem) scope() elem { return elem{root: e.root, path: strings.TrimSuffix(e.path, allocated)} }

// An origin has the facts about a scope that a function of the flow opens, or receives from Do or
// Load.
type origin struct {
	scope  elem
	at     ssa.CallInstruction // the call that opened it, or the Do or the Load
	fn     *ssa.Function       // the function that opened it, or that Do or Load calls with it
	load   bool
	in     set               // the scopes that it may be opened in
	closes []ssa.Instruction // in fn, in order
	lost   bool              // code that can't be seen may close it
	ends   bool              // closed on all paths, at the latest when fn returns
	states map[ssa.Instruction]status
}

// lent reports whether the scope comes from Do or Load.
func (o *origin) lent() bool {
	_, ok := o.scope.root.(*ssa.Parameter)
	return ok
}

// origin returns the facts about a scope. It returns nil for a scope of a caller.
func (f *flow) origin(scope elem) *origin {
	if scope.path == opened || scope.path == temporary {
		return f.origins[scope.root]
	}
	return nil
}

// within reports whether a scope ends when outer ends, or earlier.
func (f *flow) within(scope, outer elem) bool {
	if scope == outer {
		return true
	}
	if o := f.origin(scope); o != nil {
		for in := range o.in {
			if f.within(in, outer) {
				return true
			}
		}
	}
	return false
}

type set map[elem]bool

// places are the elems of a value by their place in it: "" is the value itself, ".1" the second
// field of a struct. For a variable they are the places in its contents.
type places map[string]set

func only(e elem) places { return places{"": {e: true}} }

func (p places) add(at string, e elem) bool {
	if len(at) > longest {
		at = at[:0]
	}
	s := p[at]
	if s == nil {
		s = set{}
		p[at] = s
	}
	if s[e] || len(s) > 64 {
		return false
	}
	s[e] = true
	return true
}

// put adds the elems of q below a place.
func (p places) put(at string, q places) (changed bool) {
	for where, s := range q {
		for e := range s {
			changed = p.add(at+where, e) || changed
		}
	}
	return changed
}

// part returns the elems at a place. An elem of the whole value also counts for each part.
func (p places) part(at string) places {
	q := places{}
	for where, s := range p {
		rest, ok := strings.CutPrefix(where, at)
		if !ok && where != "" {
			continue
		}
		for e := range s {
			switch kind := e.kind(); {
			case ok:
				q.add(rest, e)
			case kind == given && !e.is(address) && len(e.path) < longest:
				e.path += at
				q.add("", e)
			case kind == memory || kind == keeper:
				q.add("", e)
			}
		}
	}
	return q
}

func (p places) all(yield func(elem) bool) {
	for _, s := range p {
		for e := range s {
			if !yield(e) {
				return
			}
		}
	}
}

// isPointer reports whether values of t point to memory, or may.
func isPointer(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.String || u.Kind() == types.UnsafePointer
	case *types.Struct, *types.Array, *types.Tuple:
		return false
	}
	return true
}
