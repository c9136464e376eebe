package stack

import "github.com/upfront-mem/upfront/arena_c"

// nodeOfTemp is the size of a node that ends temporaries.
const nodeOfTemp = 2 * arena_c.NodeSize

// OpenTemp opens temporaries of n bytes in a scope, at the far end of the arena. It returns that
// end and the generation of the temporaries. If the scope refuses, OpenTemp panics.
func OpenTemp(h *arena_c.Scopes, gen uint64, n int) (far *arena_c.Scopes, of uint64) {
	if n < 0 {
		panic(Misusef("Temp of %d bytes", n))
	}
	if h.Gen != gen {
		panic(MisuseOf(h, gen, "Temp of"))
	}
	st := Of(h)
	far = &st.row.Temp
	switch {
	case far.Odd&arena_c.Closing != 0:
		panic(MisuseOf(far, far.Top().Gen, "Temp next to"))
	case st.h.Odd&arena_c.Building != 0:
		panic(st.topMisuse("Temp next to"))
	case far.Depth == far.Slots:
		panic(st.tableFull("scopes", far.Slots, tempName))
	}
	st.look()
	st.TellWarning()
	of = h.TempOpen(gen, min(uint64(n), arena_c.OffsetMax-1))
	if of == 0 {
		if h.Back != 0 {
			st.noteOf(far, far.Depth).refused = refusal{gen, st.tempFull(far)}
		}
		panic(arena_c.Refusal{Arena: h, Gen: gen})
	}
	kept := st.noteOf(far, far.Depth)
	kept.owed, kept.unreported = nil, nil
	st.tellTemp(h, of, uint64(n))
	return far, of
}

// tempFull returns the full error of a Temp in the topmost scope of an end.
func (st *Stack) tempFull(h *arena_c.Scopes) *FullError {
	if h.Back == 0 || h.Asked == arena_c.Asked|nodeOfTemp {
		return st.full(h, h.Asked)
	}
	full := st.full(st.h, h.Asked) // the arena has no room, not the temporaries
	full.Scope = tempName
	return full
}
