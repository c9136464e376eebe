package stack

import (
	"reflect"

	"github.com/upfront-mem/upfront/arena_c"
)

// OpenPool makes a pool of n chunks in a scope, for values of type of, and returns its header.
// class is the class of the values, or 0. If the scope or the table of pools refuses, OpenPool
// panics.
func OpenPool(h *arena_c.Scopes, gen, size, align, n, class uint64, handles bool, of reflect.Type) *arena_c.Pool {
	if h.Gen != gen {
		panic(MisuseOf(h, gen, "Pool in"))
	}
	st := Of(h)
	header, code := h.PoolOpen(gen, size, align, n, class, handles)
	switch code {
	case arena_c.OK:
	case arena_c.TableFull:
		panic(st.tableFull("pools", st.row.Pools, st.nameOf(h, h.Depth)))
	case arena_c.BadArgument:
		h.Asked = arena_c.Asked | arena_c.OffsetMax
		fallthrough
	default:
		panic(arena_c.Refusal{Arena: h, Gen: gen})
	}
	if arena_c.Checked && n != 0 {
		arena_c.NoteType(header.Chunk(0), of.String())
	}
	NoteMade(h)
	if st.watch != nil {
		st.watchPool(h, gen, header, of)
	}
	return header
}

// Finalized counts a finalizer that ran outside of an unwinding.
func (st *Stack) Finalized() { st.finalizers++ }
