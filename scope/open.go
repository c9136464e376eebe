package scope

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Open opens a scope in s. The new scope covers s until the new scope closes. Messages and reports
// show at most 128 bytes of name. If the arena already has its planned number of open scopes
// (limits.scopes, 64 by default), Open unwinds with a full error. The scope of a load or of the
// frame counts as one of them.
//
// Cost: no byte of the arena and, with Close, a few ns on a scratch arena. Regions and the frame
// count the bytes of scopes by name. There Open and Close cost tens of ns, and a search through the
// names if the last scope at the same depth had another name. A name in the budget's memory is
// copied to the Go heap.
func (s Scope) Open(name string) Scope { return s.mayNest().Open(name) }

func (s Scope) mayNest() *Stack {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Open in"))
	}
	return stackOf(s.h)
}

// Close runs the finalizers of s, the newest first. Then it rewinds the arena to the offset at
// which s was opened. It returns the finalizers' errors, joined with the error of [Scope.Err] and
// with errors of the arenas in s that still have live blocks ([arena.Heap.MayLive]). If s is
// covered, frozen or closed, or is the scope of a load or of the frame, Close returns a [Misuse]
// and changes nothing.
func (s Scope) Close() error {
	h := s.its()
	if h.Gen != s.gen || h.Odd|h.Asked|h.Misused != 0 || h.Depth <= h.Base {
		return s.closeLong()
	}
	r := h.Top()
	if h.Chain != r.Chain {
		return stackOf(h).closeTop(h)
	}
	h.Close(r)
	return nil
}

// closeLong is Close where the fast path doesn't apply: s may not allocate, only its owner may
// close it, s has a refusal to report, or the arena needs more work.
func (s Scope) closeLong() error {
	h, st := s.h, stackOf(s.h)
	if !s.open() || st == nil || h.Depth <= h.Base {
		return s.misuse("Close of")
	}
	met := st.take(h, h.Depth)
	err := joined(met, st.closeTop(h))
	st.TellWarning()
	return err
}

// Do opens a scope in s, runs fn in the new scope, and closes the scope, however fn ends. Do
// returns a full error that unwinds fn, of any arena. If fn returns nil, Do returns an error that
// fn ignored in this arena. If the arena already has its planned number of open scopes, Do returns
// a full error without running fn (see [Scope.Open]). If fn ignored a full error and panics later,
// Do returns that full error, with the panic as its Cause. At any other panic, or a Goexit, Do runs
// the finalizers, and the panic or Goexit goes on. Do joins the finalizers' errors with the error
// of fn.
func (s Scope) Do(name string, fn func(Scope) error) error { return s.mayNest().do(name, fn) }

// Err returns the error of an allocation that s has refused, if no other call has returned the
// error. This is the first [Misuse] or, without a Misuse, the last full error ([ErrFull]). Err
// returns nil if there is no such error, and a Misuse if s is closed. Close returns the error as
// well, and so do Do and Load if their function returns nil.
func (s Scope) Err() error {
	st, depth := stackOf(s.its()), s.h.Find(s.gen)
	if st == nil || depth == 0 {
		return s.misuse("use of")
	}
	return st.peek(s.h, depth)
}

// Open opens a scope on top of the arena: in the topmost scope, if one is open. See Scope.Open.
func (st *Stack) Open(name string) Scope { return st.open(st.lent.Load(), name) }

// open is Open for the borrower with that number of the lending.
func (st *Stack) open(lent uint64, name string) Scope {
	h := st.h
	// the lending is compared first: another borrower may be using the arena
	if st.lent.Load() != lent || h.Odd|h.Misused != 0 || h.Depth >= h.Slots || arena_c.Checked {
		if full := st.openLong(lent, name); full != nil {
			panic(full)
		}
	}
	gen := h.Open() // the rest is tryOpen, without a call
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return Scope{h, gen}
}

func (st *Stack) tryOpen(name string) (Scope, *FullError) {
	if full := st.openLong(st.lent.Load(), name); full != nil {
		return Scope{}, full
	}
	h := st.h
	gen := h.Open()
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return Scope{h, gen}, nil
}

// openLong does the work that isn't in the fast path. It returns a full error if the table of
// scopes has no free entry.
func (st *Stack) openLong(lent uint64, name string) *FullError {
	h := st.h
	if st.lent.Load() != lent {
		panic(st.givenBack("Open on"))
	}
	st.settle(h) // while the refused scope is still the topmost
	if st.sink != nil || st.warn != nil {
		st.look()
		st.TellWarning()
	}
	if h.Odd&(arena_c.Closing|arena_c.Building) != 0 || h.Depth > 0 && h.Gen == 0 {
		panic(st.at(st.Depth() - 1).misuse("Open in"))
	}
	if h.Depth == h.Slots {
		return st.scopesFull(name)
	}
	if h.Depth > 0 {
		if full := st.noPlace("scopes", h.Depth, h.Slots, name); full != nil {
			return full
		}
	}
	n := &st.notes[h.Depth+1]
	n.owed, n.lost = nil, nil
	return nil
}

func (st *Stack) do(name string, fn func(Scope) error) (err error) {
	before := st.opened()
	s, full := st.tryOpen(name)
	if full != nil {
		return full
	}
	depth := st.Depth()
	st.inside++
	defer func() {
		st.inside--
		// fn closed s or the budget, so the open scopes aren't fn's
		if st.dropped || !s.alive() {
			switch v := handled(recover()).(type) {
			case nil:
			case *FullError:
				err = v
			default:
				panic(v)
			}
			return
		}
		other, verdict := st.verdict(recover(), err, before)
		if verdict == nil && other == nil {
			verdict = joined(st.leftOpen(depth), st.takeSince(before))
		}
		if verdict != nil || other != nil {
			err = joined(verdict, st.fail(depth-1))
		} else {
			err = st.CloseTo(depth - 1)
		}
		if other != nil {
			panic(other)
		}
		st.TellWarning()
	}()
	return fn(s)
}

// leftOpen returns the misuse of a function that ends with scopes open from depth up, or nil.
func (st *Stack) leftOpen(depth int) error {
	if st.Depth() <= depth {
		return nil
	}
	names := make([]string, 0, 1)
	for i := depth; i < st.Depth(); i++ {
		_, name, _ := st.Opened(i)
		names = append(names, fmt.Sprintf("%q", name))
	}
	if len(names) == 1 {
		return bug("scope %s of %s was left open; close it in the function that opens it", names[0], st.Arena)
	}
	return bug("%d scopes of %s were left open: %s; close each in the function that opens it", len(names), st.Arena, strings.Join(names, ", "))
}
