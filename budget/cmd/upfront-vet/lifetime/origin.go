package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// An origin is a scope, or what is known of it: where it was opened, or whence it came.
type origin struct {
	kind   source
	at     ssa.CallInstruction // that opened it; nil: it came by a parameter
	fn     *ssa.Function       // which has it: that opened it, or which Do or Load calls with it
	in     []*origin           // the scopes that it may be opened in
	base   ssa.Value           // the parameter or global that it came by
	path   string
	closes []ssa.Instruction // in fn, in order
	lost   bool              // who closes it can't be seen
	ends   bool              // on all paths, when fn returns at the latest
}

type source int

const (
	opened source = iota
	temporary
	ofDo
	ofLoad
	foreign
)

// within says whether o ends when outer does, at the latest.
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

// An elem is one of the things that a value may be, or lead to.
type elem struct {
	kind sort
	from *origin         // memory, keeper
	made ssa.Instruction // memory: the call that gave it
	base ssa.Value       // cell: the variable; given: the parameter or global
	path string          // given: how to come to it from there, see field, content and target
	off  string          // cell, given: what of it is pointed to
}

type sort int

const (
	memory sort = iota // points into the memory of a scope
	keeper             // a scope, or what knows when it is closed
	cell               // points to a variable, or a composite value, of this function or of a closure of it
	given              // what lies at a path from a parameter or a global
)

// Steps of paths.
const (
	content = "[]" // an element of a slice, a map or a channel
	key     = "[k]"
	target  = "*" // what a pointer points to
)

func field(i int) string { return "." + string(rune('0'+min(i, '~'-'0'))) }

// longest are the bytes of a path beyond which things are no longer told apart, or are let go.
const longest = 12

type set map[elem]bool

// places are the elems of a value by where in it they lie: "" is the value itself, ".1" the second field of a struct. The places
// of a variable are those of what it holds.
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

// put adds what q has, below a place.
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

// part is what lies at a place. What is known of the whole holds for each part.
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

// isPointer says whether values of t point to something, or may.
func isPointer(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.String || u.Kind() == types.UnsafePointer
	case *types.Struct, *types.Array, *types.Tuple:
		return false
	}
	return true
}
