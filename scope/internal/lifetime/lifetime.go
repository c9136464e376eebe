// Package lifetime has the end of a scope as containers and caches see it.
package lifetime

import (
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Life reports whether a scope is alive: open, also covered or frozen, or running its finalizers.
// Afterwards the bytes have a new owner.
type Life struct {
	Record *arena_c.Record
	Gen    uint64
	End    *arena_c.Scopes // of the arena; nil for a container in no scope
}

// Of returns the life of s, which must be open.
func Of(s scope.Scope) Life {
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	return Life{h.Record(h.Find(gen)), gen, h}
}

// Watching returns the Stack of s if a state is being made there, or nil.
func Watching(s scope.Scope) *stack.Stack {
	header, _ := s.C()
	return stack.Watching((*arena_c.Scopes)(header))
}

// Alive reports whether the scope is alive.
func (l Life) Alive() bool { return l.Record.Gen == l.Gen }

// Closed is the panic of an operation after the scope has closed. It makes its text in Error,
// because a call in the operation would keep that from being inlined.
type Closed struct {
	Life Life
	What string // "Push to a List"
}

// Error names the operation and the scope's end.
func (c Closed) Error() string {
	used := strings.TrimPrefix(c.Unwrap().Error(), "scope: BUG: use of ")
	if c.Life.End == nil {
		return "scope: BUG: " + c.What + " that was freed"
	}
	return "scope: BUG: " + c.What + " in " + used
}

// Unwrap returns a *scope.Misuse, so that errors.Is finds scope.ErrClosed.
func (c Closed) Unwrap() error { return stack.WasClosed(c.Life.End, c.Life.Gen) }
