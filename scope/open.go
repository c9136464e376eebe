package scope

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Open opens a scope in s and covers s until it closes. The name is for messages and reports, which
// show its first 128 bytes. Cost:
// no byte of the arena; on a scratch arena a few ns; in regions and the frame, which count what scopes hold by
// name, tens, and for a name that is new in its place a look through the names. It unwinds as full
// when the arena's planned number of nested scopes (limits.scopes, 64 by default) is open; the scope
// of a load, or of the frame, is one of them.
func (s Scope) Open(name string) Scope { return s.mayNest().Open(name) }

func (s Scope) mayNest() *Stack {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Open in"))
	}
	return stackOf(s.h)
}

// Close runs the finalizers of s, newest first, then rewinds to where the scope was opened. Their
// errors come back joined, and with them what Err says, and which heaps that lie in s have live blocks
// ([arena.Heap.MayLive]). Closing a scope twice, or one that is
// covered, is refused with an error that says so, and changes nothing.
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

// closeLong is Close of a scope that may not allocate, is its owner's, remembers something, or lies
// on an arena that is out of the ordinary.
func (s Scope) closeLong() error {
	h, st := s.h, stackOf(s.h)
	if !s.open() || st == nil || h.Depth <= h.Base {
		return s.misuse("Close of")
	}
	met := st.take(h, h.Depth)
	return joined(met, st.closeTop(h))
}

// Do opens a scope, runs fn in it and closes it, whatever happens. A full in fn, of any scope,
// becomes the returned error, and so does one scope too many (see [Scope.Open]); other panics and
// Goexit unwind and go on. Errors of finalizers are joined to fn's.
func (s Scope) Do(name string, fn func(Scope) error) error { return s.mayNest().do(name, fn) }

// Err is what a Try... met last in s since it opened: a full, or the misuse of allocating while s was
// covered or frozen; or nil.
func (s Scope) Err() error {
	st, depth := stackOf(s.its()), s.h.Find(s.gen)
	if st == nil || depth == 0 {
		return s.misuse("use of")
	}
	return st.peek(s.h, depth)
}

// Open opens a scope on top of the arena, in the topmost one if there is one. See Scope.Open.
func (st *Stack) Open(name string) Scope { return st.open(st.lent.Load(), name) }

// open is Open for who has the arena on loan.
func (st *Stack) open(lent uint64, name string) Scope {
	h := st.h
	if st.lent.Load() != lent || h.Odd|h.Misused != 0 || h.Depth >= h.Slots || arena_c.Checked { // first: another may use the arena
		if full := st.openLong(lent, name); full != nil {
			panic(full)
		}
	}
	gen := h.Open() // what tryOpen does, without a call
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return Scope{h, gen}
}

// tryOpen is Open for who returns a full.
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

// openLong says why a scope can't open, or does what the short way leaves out.
func (st *Stack) openLong(lent uint64, name string) *FullError {
	h := st.h
	if st.lent.Load() != lent {
		panic(st.givenBack("Open on"))
	}
	st.settle(h) // who was refused is still the topmost
	if st.sink != nil {
		st.look()
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

// do is Do of a scope or a scratch arena.
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
		if st.dropped || !s.alive() { // fn closed it, or the budget: what is open now is somebody else's
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
	}()
	return fn(s)
}

// leftOpen is the misuse of who ends while scopes from depth up, opened inside, are open; nil when
// there is none.
func (st *Stack) leftOpen(depth int) error {
	if st.Depth() <= depth {
		return nil
	}
	names := make([]string, 0, 1)
	for i := depth; i < st.Depth(); i++ {
		_, name, _ := st.Opened(i)
		names = append(names, fmt.Sprintf("%q", name))
	}
	return bug("scope %s of %s was left open: close it where it is opened", strings.Join(names, ", "), st.Arena)
}
