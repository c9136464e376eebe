package scope

// Pad is a worker's own scratch arena, for scopes that follow the call stack. It is lent by a budget and held by
// handle: goroutines move between threads, so there is no pad "of this thread". It is a small value; one goroutine at a
// time uses it.
type Pad struct{ stack *Stack }

// Pad is the stack as a worker sees it.
func (st *Stack) Pad() Pad { return Pad{st} }

// Open opens a scope on top of the pad: in the topmost scope, if one is open. See Scope.Open.
func (p Pad) Open(name string) Scope { return p.stack.Open(name) }

// Do opens a scope on top of the pad, runs fn in it and closes it, whatever happens. See Scope.Do.
func (p Pad) Do(name string, fn func(Scope) error) error { return p.stack.Open(name).do(fn) }

// Depth is the number of open scopes.
func (p Pad) Depth() int { return p.stack.Depth() }

// Stats reads the pad's figures, live.
func (p Pad) Stats() Stats { return p.stack.Stats() }
