package stack

import "github.com/upfront-mem/upfront/arena_c"

// Open opens a scope on top of the arena: in the topmost scope, if one is open. It returns the end
// of the arena and the scope's generation. lent is the number of the lending ([Stack.Lending]), or
// 0 for an arena that isn't lent: if the lending has ended, Open panics. If the table of scopes is
// full, Open panics with the full error.
func (st *Stack) Open(lent uint64, name string) (h *arena_c.Scopes, gen uint64) {
	h = st.h
	// the lending is compared first: another borrower may be using the arena
	if st.lent.Load() != lent || h.Odd|h.Misused != 0 || h.Depth >= h.Slots || arena_c.Checked {
		if full := st.openLong(lent, name); full != nil {
			panic(full)
		}
	}
	gen = h.Open() // the rest is begin, without a call
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return h, gen
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
		panic(st.topMisuse("Open in"))
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
	n.owed, n.unreported = nil, nil
	return nil
}

// Running is a function that runs in a scope of its own.
type Running struct {
	st     *Stack
	gen    uint64
	before Depths
	depth  int // with the scope
}

// Begin opens a scope for a function. The caller runs the function and defers a call of End. Begin
// returns a full error if the table of scopes has no free entry.
func (st *Stack) Begin(name string) (r Running, full *FullError) {
	r = Running{st: st, before: st.depths()}
	if full := st.openLong(st.lent.Load(), name); full != nil {
		return r, full
	}
	h := st.h
	r.gen = h.Open()
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), r.gen
	n.site.Note()
	r.depth = st.Depth()
	st.inside++
	return r, nil
}

// Scope returns the end and the generation of the function's scope.
func (r *Running) Scope() (h *arena_c.Scopes, gen uint64) { return r.st.h, r.gen }

// End closes the function's scope and returns the error with which the function ends. v is the
// value of recover, and err is the function's error. A panic that isn't a full error goes on.
func (r *Running) End(v any, err error) error {
	st := r.st
	st.inside--
	// the function closed its scope or the budget, so the open scopes aren't the function's
	if st.dropped || st.h.Find(r.gen) == 0 {
		switch v := handled(v).(type) {
		case nil:
			return err
		case *FullError:
			return v
		default:
			panic(v)
		}
	}
	other, verdict := st.Verdict(v, err, r.before)
	if verdict == nil && other == nil {
		verdict = joined(st.leftOpen(r.depth), st.takeSince(r.before))
	}
	if verdict != nil || other != nil {
		err = joined(verdict, st.fail(r.depth-1))
	} else {
		err = st.CloseTo(r.depth - 1)
	}
	if other != nil {
		panic(other)
	}
	st.TellWarning()
	return err
}

// Close closes the scope of the generation gen at an end of an arena. It returns the errors of the
// finalizers and the errors that no call has returned so far. If the scope isn't the topmost, or
// only the arena's owner may close it, Close returns a [Misuse] and changes nothing.
func Close(h *arena_c.Scopes, gen uint64) error {
	if h.Gen != gen || h.Odd|h.Asked|h.Misused != 0 || h.Depth <= h.Base {
		return closeLong(h, gen)
	}
	r := h.Top()
	if h.Chain != r.Chain {
		return Of(h).closeTop(h, r.Chain)
	}
	h.Close(r)
	return nil
}

// closeLong is Close where the fast path doesn't apply: the scope may not allocate, only its owner
// may close it, it has a refusal to report, or the arena needs more work.
func closeLong(h *arena_c.Scopes, gen uint64) error {
	st := Of(h)
	if h.Gen != gen || st == nil || h.Depth <= h.Base {
		return MisuseOf(h, gen, "Close of")
	}
	refused := st.take(h, h.Depth)
	err := joined(refused, st.closeFrom(h, h.Depth))
	st.TellWarning()
	return err
}

// Err returns the error of a request that a scope has refused, if no other call has returned the
// error. It returns a [Misuse] if the scope is closed.
func Err(h *arena_c.Scopes, gen uint64) error {
	st, depth := Of(h), h.Find(gen)
	if st == nil || depth == 0 {
		return MisuseOf(h, gen, "use of")
	}
	return st.peek(h, depth)
}
