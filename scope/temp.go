package scope

import "github.com/upfront-mem/upfront/arena_c"

// nodeOfTemp is the size of a node that ends temporaries.
const nodeOfTemp = 2 * arena_c.NodeSize

// Temp returns a scope of exactly n bytes at the far end of the arena, for temporaries: objects
// that a load needs only for a while, for example. The scope ends with s, in order with the
// finalizers. In a load it ends at the latest when the load returns. Close ends it earlier, if no
// newer temporaries are open.
//
// Temporaries nest: only the newest scope allocates, and older ones keep their bytes. A request
// that doesn't fit in the n bytes fails with a full error that names an n that is enough. Use Temp
// for a known size, such as a file's. For an unknown size use a scratch arena or a [Builder].
//
// s must be the topmost scope, or the newest of the temporaries. If n bytes aren't free, or
// limits.scopes temporaries are open, Temp unwinds with a full error. Cost: 16 bytes of s and up to
// 63 for alignment, one call into C.
func (s Scope) Temp(n int) Scope {
	if n < 0 {
		panic(bug("Temp of %d bytes", n))
	}
	if !s.open() {
		panic(s.misuse("Temp of"))
	}
	st := stackOf(s.h)
	far := &st.row.Temp
	switch {
	case far.Odd&arena_c.Closing != 0:
		panic(Scope{far, far.Top().Gen}.misuse("Temp next to"))
	case st.h.Odd&arena_c.Building != 0:
		panic(st.at(st.Depth() - 1).misuse("Temp next to"))
	case far.Depth == far.Slots:
		panic(st.tableFull("scopes", far.Slots, tempName))
	}
	st.look()
	st.TellWarning()
	gen := s.h.TempOpen(s.gen, min(uint64(n), arena_c.OffsetMax-1))
	if gen == 0 {
		if s.isTemp() {
			st.noteOf(far, far.Depth).met = met{s.gen, st.tempFull(far)}
		}
		panic(refusal(s))
	}
	kept := st.noteOf(far, far.Depth)
	kept.owed, kept.lost = nil, nil
	st.tellTemp(s, gen, uint64(n))
	return Scope{far, gen}
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
