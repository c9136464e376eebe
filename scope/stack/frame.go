package stack

import "github.com/upfront-mem/upfront/arena_c"

// A frame without finalizers and errors ends without the slow path of Open and Close.

// Changes returns a number that changes when a scope opens, nodes run, or a full error is reported.
// While the number stays the same and the arena or its chain is empty, only the arena's cursor can
// change.
func (st *Stack) Changes() uint64 { return st.h.Next + st.unwound + uint64(st.fulls) }

// plain reports whether exactly one scope is open, and its Close has no work and no error.
func (st *Stack) plain() bool {
	h := st.h
	return h.Depth == 1 && len(st.seen) != 0 && h.Chain|h.Asked|h.Misused|st.row.Temp.Depth == 0 && h.Odd&^oddNames == 0
}

// NextPlain freezes the only scope of st, replaces the scope of next by a new one, and returns the
// new scope and the used bytes of st. It returns false and changes nothing if the scope of st or of
// next has finalizers or errors, and in checked builds.
func (st *Stack) NextPlain(next *Stack) (h *arena_c.Scopes, gen, used uint64, ok bool) {
	if arena_c.Checked || !st.plain() || !next.plain() {
		return nil, 0, 0, false
	}
	h = st.h
	used = h.Cursor - h.Start
	if len(st.seen) != 1 {
		st.look()
	}
	st.moved(used, arena_c.Site{})
	h.Gen = 0
	h = next.h
	next.moved(0, arena_c.Site{})
	h.Close(h.Top())
	gen = h.Open()
	next.notes[1].gen, next.seen[0].gen = gen, gen
	return h, gen, used, true
}
