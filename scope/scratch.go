package scope

import "slices"

// Scratch is a worker's own scratch arena, for scopes that follow the call stack. It is lent by a budget and held by
// handle: goroutines move between threads, so there is no scratch arena "of this thread". It is a small value; one goroutine at a
// time uses it. A scratch arena that was given back refuses: its methods panic.
type Scratch struct {
	stack *Stack
	lent  uint64 // number of the lending
}

// scratch is the stack as a worker sees it, until EndLending.
func (st *Stack) scratch() Scratch { return Scratch{st, min(st.lent.Load(), lentDropped-1)} }

// EndLending makes the scratch arenas that Scratches gave so far refuse.
func (st *Stack) EndLending() {
	if st.h.Depth == 0 {
		st.row.Over()
	}
	st.lent.Add(1)
}

// borrowed is the stack of a scratch arena that wasn't given back. Who kept one looks from another goroutine than the new
// borrower's: the number is atomic.
func (p Scratch) borrowed(what string) *Stack {
	if p.stack.lent.Load() != p.lent {
		panic(p.stack.givenBack(what))
	}
	return p.stack
}

// Open opens a scope on top of the scratch arena: in the topmost scope, if one is open. See [Scope.Open].
func (p Scratch) Open(name string) Scope {
	return p.stack.open(p.lent, name)
}

// Do opens a scope on top of the scratch arena, runs fn in it and closes it, whatever happens. It is how a
// loader uses scratch: a load that fails closes nothing on scratch arenas. See [Scope.Do].
func (p Scratch) Do(name string, fn func(Scope) error) error {
	return p.borrowed("Do on").do(name, fn)
}

// Depth is the number of open scopes, 0 when the budget is closed.
func (p Scratch) Depth() int {
	if p.stack.dropped { // the header may be a newer budget's
		return 0
	}
	return p.borrowed("Depth of").Depth()
}

// Stats reads the scratch arena's figures, live; none when the budget is closed.
func (p Scratch) Stats() Stats {
	if p.stack.dropped {
		return Stats{}
	}
	return p.borrowed("Stats of").Stats()
}

// Scratches are the two scratch arenas of a worker. There are two, so that a function whose result must live on its caller's scratch has
// another one for what it needs itself. It is a small value.
type Scratches struct{ scratches [2]Scratch }

// Scratches are two stacks as a worker sees them, until EndLending.
func (st *Stack) Scratches(second *Stack) Scratches {
	return Scratches{[2]Scratch{st.scratch(), second.scratch()}}
}

// Scratch is one of the two: which is 0 or 1. Another number is a caller's bug and panics.
func (p Scratches) Scratch(which int) Scratch { return p.scratches[which] }

// Pick is the first scratch arena that holds none of the scopes: a function that is given a scope for its result takes its scratch
// from Pick of that scope, and never closes, or covers, what its caller has to fill. Scopes of other arenas conflict with
// neither scratch. When both scratch arenas hold one, and for a scope that is closed, it panics: that is a caller's bug. Cost: two
// comparisons a scope.
func (p Scratches) Pick(conflicts ...Scope) Scratch {
	for _, s := range conflicts {
		if !s.alive() {
			panic(s.misuse("Pick beside"))
		}
	}
	for _, scratch := range p.scratches {
		row := scratch.borrowed("Pick of").row
		if !slices.ContainsFunc(conflicts, func(s Scope) bool { return s.h.Row() == row }) {
			return scratch
		}
	}
	first, second := p.scratches[0].stack, p.scratches[1].stack
	panic(bug("Pick: %s and %s both hold a scope that it should avoid; a function can leave at most one alone",
		first.Arena, second.Arena))
}
