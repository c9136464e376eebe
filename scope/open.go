package scope

import "github.com/upfront-mem/upfront/scope/stack"

// Open opens a scope in s. The new scope covers s until the new scope closes. Messages and reports
// show at most 128 bytes of name. If the arena already has its planned number of open scopes
// (limits.scopes, 64 by default), Open unwinds with a full error. The scope of a load or of the
// frame counts as one of them.
//
// Cost: no byte of the arena and, with Close, a few ns on a scratch arena. Regions and the frame
// count the bytes of scopes by name. There Open and Close cost tens of ns, and a search through the
// names if the last scope at the same depth had another name. A name in the budget's memory is
// copied to the Go heap.
func (s Scope) Open(name string) Scope {
	st := s.mayNest()
	return At(st.Open(st.Lending(), name))
}

func (s Scope) mayNest() *stack.Stack {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Open in"))
	}
	return stack.Of(s.h)
}

// Close runs the finalizers of s, the newest first. Then it rewinds the arena to the offset at
// which s was opened. It returns the finalizers' errors, joined with the error of [Scope.Err] and
// with errors of the arenas in s that still have live blocks ([arena.Heap.MayLive]). If s is
// covered, frozen or closed, or is the scope of a load or of the frame, Close returns a [Misuse]
// and changes nothing.
func (s Scope) Close() error { return stack.Close(s.its(), s.gen) }

// Do opens a scope in s, runs fn in the new scope, and closes the scope, however fn ends. Do
// returns a full error that unwinds fn, of any arena. If fn returns nil, Do returns an error that
// fn ignored in this arena. If the arena already has its planned number of open scopes, Do returns
// a full error without running fn (see [Scope.Open]). If fn ignored a full error and panics later,
// Do returns that full error, with the panic as its Cause. At any other panic, or a Goexit, Do runs
// the finalizers, and the panic or Goexit goes on. Do joins the finalizers' errors with the error
// of fn.
func (s Scope) Do(name string, fn func(Scope) error) error { return do(s.mayNest(), name, fn) }

func do(st *stack.Stack, name string, fn func(Scope) error) (err error) {
	running, full := st.Begin(name)
	if full != nil {
		return full
	}
	defer func() { err = running.End(recover(), err) }()
	return fn(At(running.Scope()))
}

// Err returns the error of an allocation that s has refused, if no other call has returned the
// error. This is the first [Misuse] or, without a Misuse, the last full error ([ErrFull]). Err
// returns nil if there is no such error, and a Misuse if s is closed. Close returns the error as
// well, and so do Do and Load if their function returns nil.
func (s Scope) Err() error { return stack.Err(s.its(), s.gen) }
