package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// An origin is a scope, identified by the call that opened it or the value that it came from.
type origin struct {
	kind   source
	at     ssa.CallInstruction // the call that opened it; nil for a parameter
	fn     *ssa.Function       // the function that opened it, or that Do or Load calls with it
	in     []*origin           // the scopes that it may be opened in
	base   ssa.Value           // the parameter or global that it came from
	path   string
	closes []ssa.Instruction // in fn, in order
	lost   bool              // code that can't be seen may close it
	ends   bool              // closed on all paths, at the latest when fn returns
}

type source int

const (
	opened source = iota
	temporary
	ofDo
	ofLoad
	foreign
)

// within reports whether o ends when outer ends, or earlier.
func (o *origin) within(outer *origin) bool {
	if o == outer {
		return true
	}
	for _, in := range o.in {
		if in.within(outer) {
			return true
		}
	}
	return false
}

// An elem is one possible value of a variable, or a value reached through it.
type elem struct {
	kind sort
	from *origin         // memory, keeper
	made ssa.Instruction // memory: the call that returned it
	base ssa.Value       // cell: the variable; given: the parameter or global
	path string          // given: the path from base, of field, content and target
	off  string          // cell, given: the part that is pointed to
}

type sort int

const (
	memory sort = iota // points into the memory of a scope
	keeper             // a scope, or a value that detects its end
	cell               // points to a variable or a composite value of this function or its closures
	given              // the value at a path from a parameter or a global
)

// Steps of paths.
const (
	content = "[]" // an element of a slice, a map or a channel
	key     = "[k]"
	target  = "*" // the target of a pointer
)

func field(i int) string { return "." + string(rune('0'+min(i, '~'-'0'))) }

// longest is the greatest length of a path, in bytes; longer paths are merged or dropped.
const longest = 12

type set map[elem]bool

// places are the elems of a value by their place in it: "" is the value itself, ".1" the second
// field of a struct. For a variable they are the places in its contents.
type places map[string]set

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
			if p.add(at+where, e) {
				changed = true
			}
		}
	}
	return changed
}

// part returns the elems at a place. An elem of the whole value also counts for each part.
func (p places) part(at string) places {
	q := places{}
	for where, s := range p {
		if rest, ok := strings.CutPrefix(where, at); ok {
			for e := range s {
				q.add(rest, e)
			}
		} else if where == "" {
			for e := range s {
				switch e.kind {
				case given:
					if e.off == "" && len(e.path) < longest {
						e.path += at
						q.add("", e)
					}
				case memory, keeper:
					q.add("", e)
				}
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
