package scope

import (
	"slices"

	"github.com/upfront-mem/upfront/scope/stack"
)

// Scratch is a worker's scratch arena, for scopes that follow the call stack. A budget lends the
// arena to a worker. The arena belongs to a worker, not to a thread, because goroutines move
// between threads. A Scratch is a small value; one goroutine at a time uses it. After the arena was
// returned to the budget, the methods panic; but Depth and Stats return zero once the budget is
// closed.
type Scratch struct {
	stack *stack.Stack
	lent  uint64 // number of the lending
}

// borrowed returns the Stack of a scratch arena whose lending goes on.
func (p Scratch) borrowed(what string) *stack.Stack {
	p.its().Borrowed(p.lent, what)
	return p.stack
}

func (p Scratch) its() *stack.Stack { return madeScratch(p.stack) }

var zeroScratch = stack.Misusef("a zero Scratch: get one from Budget.Scratch or Budget.Lease")

// madeScratch returns st, or panics if st is nil: the Stack of a zero Scratch or Scratches.
func madeScratch(st *stack.Stack) *stack.Stack {
	if st == nil {
		panic(zeroScratch)
	}
	return st
}

// Open opens a scope on top of the scratch arena: in the topmost scope, if one is open. See
// [Scope.Open].
func (p Scratch) Open(name string) (s Scope) {
	if p.stack == nil { // its, written out: the inliner refuses its call
		panic(zeroScratch)
	}
	s.h, s.gen = p.stack.Open(p.lent, name)
	return
}

// Do opens a scope on top of the scratch arena, runs fn in it and closes it, however fn ends. A
// loader uses a scratch arena with Do, because a load that fails closes no scopes of scratch
// arenas. See [Scope.Do].
func (p Scratch) Do(name string, fn func(Scope) error) error {
	return do(p.borrowed("Do on"), name, fn)
}

// Depth returns the number of open scopes, or 0 if the budget is closed.
func (p Scratch) Depth() int {
	if p.its().Dropped() {
		return 0
	}
	return p.borrowed("Depth of").Depth()
}

// Stats returns the present Stats of the scratch arena, or zero Stats if the budget is closed.
func (p Scratch) Stats() Stats {
	if p.its().Dropped() {
		return Stats{}
	}
	return p.borrowed("Stats of").Stats()
}

// Scratches are the scratch arenas of a worker. There are two arenas, unless the plan says
// otherwise. A function can put its result in a scope of one arena, which its caller opened, and
// open its own scopes on the other arena. A Scratches is a small value.
type Scratches struct {
	first *stack.Stack
	lent  uint64 // number of the lending, the same for each
}

// ScratchesOf returns a handle of an arena and its siblings, which is valid until the lending ends.
// It is for package budget. pre: first is the first sibling.
func ScratchesOf(first *stack.Stack) Scratches { return Scratches{first, first.Lending()} }

// Scratch returns the worker's scratch arena at the index which, from 0. It panics if which is out
// of range.
func (p Scratches) Scratch(which int) Scratch {
	if which < 0 || which >= len(madeScratch(p.first).Siblings) {
		panic(stack.Misusef("scratch %d: each worker has %d, from 0", which, len(p.first.Siblings)))
	}
	return Scratch{p.first.Siblings[which], p.lent}
}

// Pick returns the first scratch arena that contains none of the scopes in conflicts. A function
// that gets a scope for its result passes that scope to Pick, and opens its own scopes on the arena
// that Pick returns. So the function never closes or covers the caller's scope. Scopes of other
// arenas, such as a region, don't matter. Pick panics if each scratch arena contains one of the
// scopes, or if a scope is closed. Cost: a comparison for each scope and scratch arena, and O(open
// scopes) for each scope.
func (p Scratches) Pick(conflicts ...Scope) Scratch {
	for _, s := range conflicts {
		if !s.alive() {
			panic(s.misuse("Pick next to"))
		}
	}
	for which := range madeScratch(p.first).Siblings {
		scratch := p.Scratch(which)
		row := scratch.borrowed("Pick of").Row()
		if !slices.ContainsFunc(conflicts, func(s Scope) bool { return s.h.Row() == row }) {
			return scratch
		}
	}
	siblings := p.first.Siblings
	panic(stack.Misusef("Pick: each of %s to %s holds a conflicting scope; raise scratch.each in the plan",
		siblings[0].Arena, siblings[len(siblings)-1].Arena))
}
