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
	if p.its().lent.Load() != p.lent {
		panic(p.stack.givenBack(what))
	}
	return p.stack
}

func (p Scratch) its() *Stack { return madeScratch(p.stack) }

// madeScratch is the stack of what isn't zero.
func madeScratch(st *Stack) *Stack {
	if st == nil {
		panic(zeroScratch)
	}
	return st
}

// Open opens a scope on top of the scratch arena: in the topmost scope, if one is open. See [Scope.Open].
func (p Scratch) Open(name string) Scope {
	return p.its().open(p.lent, name)
}

// Do opens a scope on top of the scratch arena, runs fn in it and closes it, whatever happens. It is how a
// loader uses scratch: a load that fails closes nothing on scratch arenas. See [Scope.Do].
func (p Scratch) Do(name string, fn func(Scope) error) error {
	return p.borrowed("Do on").do(name, fn)
}

// Depth is the number of open scopes, 0 when the budget is closed.
func (p Scratch) Depth() int {
	if p.its().dropped { // the header may be a newer budget's
		return 0
	}
	return p.borrowed("Depth of").Depth()
}

// Stats reads the scratch arena's figures, live; none when the budget is closed.
func (p Scratch) Stats() Stats {
	if p.its().dropped {
		return Stats{}
	}
	return p.borrowed("Stats of").Stats()
}

// Scratches are the scratch arenas of a worker: two, unless the plan says otherwise, so that a
// function whose result must live on its caller's scratch has another one for what it needs itself.
// It is a small value.
type Scratches struct {
	first *Stack
	lent  uint64 // number of the lending, the same for each
}

// Scratches are the siblings as a worker sees them, until EndLending. The stack is the first.
func (st *Stack) Scratches() Scratches { return Scratches{st, st.scratch().lent} }

// Scratch is one of them, counted from 0. Another number is a caller's bug and panics.
func (p Scratches) Scratch(which int) Scratch {
	if which < 0 || which >= len(madeScratch(p.first).Siblings) {
		panic(bug("scratch %d of the %d that a worker has", which, len(p.first.Siblings)))
	}
	return Scratch{p.first.Siblings[which], p.lent}
}

// Pick is the first scratch arena that holds none of the scopes: a function that is given a scope for its result takes its scratch
// from Pick of that scope, and never closes, or covers, what its caller has to fill. Scopes of other arenas conflict with
// no scratch. When each scratch arena holds one, and for a scope that is closed, it panics: that is
// a caller's bug. Cost: a comparison a scope and a scratch arena.
func (p Scratches) Pick(conflicts ...Scope) Scratch {
	for _, s := range conflicts {
		if !s.alive() {
			panic(s.misuse("Pick beside"))
		}
	}
	for which := range madeScratch(p.first).Siblings {
		scratch := p.Scratch(which)
		row := scratch.borrowed("Pick of").row
		if !slices.ContainsFunc(conflicts, func(s Scope) bool { return s.h.Row() == row }) {
			return scratch
		}
	}
	siblings := p.first.Siblings
	panic(bug("Pick: each of %s to %s holds a scope that it should avoid", siblings[0].Arena,
		siblings[len(siblings)-1].Arena))
}
