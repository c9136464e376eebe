package scope

import "github.com/upfront-mem/upfront/arena_c"

// A frame in which there is nothing to run and nothing to tell ends without the long way of Open and
// Close.

// Changes moves on whenever a scope opens or nodes run. While it stays, and the arena is empty or no
// node is in its chain, it differs from what it was by its cursor alone.
func (st *Stack) Changes() uint64 { return st.h.Next + st.unwound }

// plain says that one scope is open, and that there is nothing to run or to tell when it closes.
func (st *Stack) plain() bool {
	h := st.h
	return h.Depth == 1 && h.Chain|h.Asked|h.Misused|st.row.Temp.Depth == 0 && h.Odd&^oddNames == 0
}

// NextPlain freezes the only scope, whose bytes it gives, and opens that of the next buffer anew.
// False, and nothing has changed: in one of the two there is something to run or to tell.
func (st *Stack) NextPlain(next *Stack) (s Scope, used uint64, ok bool) {
	if arena_c.Checked || !st.plain() || !next.plain() {
		return Scope{}, 0, false
	}
	h := st.h
	used = h.Cursor - h.Start
	if lines := st.names.lines; lines != nil {
		line := &lines[st.notes[1].line]
		line.Peak = max(line.Peak, used)
	}
	h.Gen = 0
	h = next.h
	h.Close(h.Top())
	gen := h.Open()
	next.notes[1].gen = gen
	return Scope{h, gen}, used, true
}
