package scope

import (
	"iter"

	"github.com/upfront-mem/upfront/arena_c"
)

func init() { arena_c.Explain = why }

// why is most often the full at its end.
func why(r arena_c.Refusal) error {
	h, st := r.Arena, stackOf(r.Arena)
	s := Scope{h, r.Gen}
	_, bad := h.BadAlign(r.Gen)
	if (st == nil || st.made != numberOf(r.Gen)) && h.Misused != r.Gen { // refused before its budget closed
		if l, ok := lostOf(r.Gen); ok {
			if err := lastOf(l.told, r.Gen); err != nil {
				return err
			}
			return l.misuse("allocation in", r.Gen)
		}
	}
	switch {
	case bad:
		return badAlign
	case r.Gen&key != 0:
		return undeclared
	case st == nil:
		return s.misuse("use of")
	}
	depth := h.Find(r.Gen)
	if h.Misused == r.Gen && depth == 0 {
		return s.misuse("allocation in")
	}
	st.settle(h)
	if depth != 0 {
		if n := st.noteOf(h, depth); n.err != nil && (depth != h.Depth || h.Asked == 0) {
			return n.err // it came last
		}
	}
	if depth == h.Depth && h.Asked != 0 {
		return st.remembered(h, depth)
	}
	if err := lastOf(st.told(), r.Gen); err != nil {
		return err
	}
	return s.misuse("allocation in")
}

// explained is the panic value with its reason worked out now, before an unwinding changes what it
// would say.
func explained(v any) any {
	if r, ok := v.(arena_c.Refusal); ok {
		return why(r)
	}
	return v
}

// handled is explained for who recovers a panic and tells it: the scope that refused needn't.
func handled(v any) any {
	e := explained(v)
	if r, ok := v.(arena_c.Refusal); ok {
		forget(r)
	}
	return e
}

// forget is for who has told why a scope refused: its Close needn't tell it again.
func forget(r arena_c.Refusal) {
	h, st := r.Arena, stackOf(r.Arena)
	if st == nil {
		return
	}
	st.settle(h)
	depth, bad := h.BadAlign(r.Gen)
	if !bad {
		depth = h.Find(r.Gen &^ key)
	}
	if depth != 0 {
		_ = st.tell(h, depth)
	}
}

// settle finds out who asked last without being the topmost scope, while that can be said: a scope
// that is alive is told so by its Err and its Close; who is closed was told already, by a panic or
// nil.
func (st *Stack) settle(h *arena_c.Scopes) {
	gen := h.Misused
	depth, err := st.misused(h)
	if err == nil {
		return
	}
	h.Odd |= oddNoted
	n := st.noteOf(h, depth)
	n.told = lastError{gen, err}
	if n.err == nil {
		n.err = err
	}
	if h.Odd&arena_c.Closing == 0 { // the misuse is what is told; what it is refused from now on comes after it
		*askedOf(h, depth) = 0
	}
}

// misused is the scope that asked last without being the topmost, and what is wrong with that.
func (st *Stack) misused(h *arena_c.Scopes) (depth uint64, err error) {
	gen := h.Misused
	if gen == 0 {
		return 0, nil
	}
	h.Misused = 0
	depth, bad := h.BadAlign(gen)
	if !bad {
		depth = h.Find(gen &^ key)
	}
	switch {
	case depth == 0:
		return 0, nil
	case bad:
		return depth, badAlign
	case gen&key != 0:
		return depth, undeclared
	}
	return depth, Scope{h, gen}.misuse("allocation in")
}

// askedOf is what the scope at a depth was refused: the header's own word, if it is the topmost.
func askedOf(h *arena_c.Scopes, depth uint64) *uint64 {
	if depth == h.Depth {
		return &h.Asked
	}
	return &h.Record(depth).Asked
}

// met is what the scope at a depth remembers: a misuse, a full, or nil.
func (st *Stack) met(h *arena_c.Scopes, depth uint64) error {
	if err := st.noteOf(h, depth).err; err != nil {
		return err
	}
	return st.remembered(h, depth)
}

// tell is met for who reports it: it is forgotten then.
func (st *Stack) tell(h *arena_c.Scopes, depth uint64) error {
	err := st.met(h, depth)
	st.noteOf(h, depth).err = nil
	if full, ok := err.(*FullError); ok {
		st.lastFull = full
	}
	*askedOf(h, depth) = 0
	return err
}

// remembered is the full that the scope at a depth met, or nil. It says what was so when it was asked
// for first.
func (st *Stack) remembered(h *arena_c.Scopes, depth uint64) error {
	asked := *askedOf(h, depth)
	if asked == 0 {
		return nil
	}
	n, gen := st.noteOf(h, depth), h.Record(depth).Gen
	if full, ok := n.told.err.(*FullError); ok && n.told.gen == gen && full.asked == asked {
		return full
	}
	last, fulls := st.lastFull, st.fulls
	full := st.full(h, asked)
	full.Scope = st.nameOf(h, depth)
	if n.told = (lastError{gen, full}); !full.OnPurpose && full.Asked+arena_c.AlignMax <= full.Free {
		n.told.err = badAlign // no other could ask for more than there is
		st.lastFull, st.fulls = last, fulls
	}
	return n.told.err
}

// workOut finds out what the scopes of an end met, from a depth up, while they can still say why: a
// panic on its way may be asked for it when they are closed.
func (st *Stack) workOut(h *arena_c.Scopes, depth uint64) {
	st.settle(h)
	for i := max(depth, 1); i <= h.Depth; i++ {
		_ = st.remembered(h, i)
	}
}

// opened is how many scopes were open at both ends when something began: what is open above is its own.
type opened struct{ near, far uint64 }

func (st *Stack) opened() opened { return opened{st.h.Depth, st.row.Temp.Depth} }

// since ranges over the scopes that were opened since, the lowest first.
func (st *Stack) since(o opened) iter.Seq2[*arena_c.Scopes, uint64] {
	return func(yield func(h *arena_c.Scopes, depth uint64) bool) {
		for depth := o.near + 1; depth <= st.h.Depth; depth++ {
			if !yield(st.h, depth) {
				return
			}
		}
		for depth := o.far + 1; depth <= st.row.Temp.Depth; depth++ {
			if !yield(&st.row.Temp, depth) {
				return
			}
		}
	}
}

// rememberedSince is what a Try... met in the scopes opened since, or in the temporaries: a full, a misuse, or nil. Who asks
// tells it.
func (st *Stack) rememberedSince(o opened) error {
	st.settle(st.h)
	st.settle(&st.row.Temp)
	for h, depth := range st.since(o) {
		if st.met(h, depth) != nil {
			return st.tell(h, depth)
		}
	}
	return nil
}

func (st *Stack) anyFull(o opened) *FullError {
	for h, depth := range st.since(o) {
		if full, ok := st.remembered(h, depth).(*FullError); ok {
			return full
		}
	}
	return nil
}
