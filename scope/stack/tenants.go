package stack

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// NamesOf returns the names of the budget, the arena and the scope, for messages. pre: the scope is
// alive.
func NamesOf(h *arena_c.Scopes, gen uint64) (budget, arena, scope string) {
	st := Of(h)
	return st.Budget, st.Arena, st.nameOf(h, h.Find(gen))
}

// KeysFull returns the full error of a StringMap in a scope that has all of its n keys. pre: the
// scope is alive, or h is nil for a heap in no budget.
func KeysFull(h *arena_c.Scopes, gen uint64, n int) *FullError {
	if h == nil {
		return &FullError{What: "keys", Asked: 1, Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMapOn"}
	}
	budget, arena, scope := NamesOf(h, gen)
	return &FullError{Budget: budget, Arena: arena, Scope: scope, What: "keys", Asked: 1,
		Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMap"}
}

// Holding returns the open scope that contains p, and reports whether p is in a state. h is nil if
// p is in no budget. A p in a budget but in no open scope panics.
func Holding(p unsafe.Pointer) (h *arena_c.Scopes, gen uint64, inState bool) {
	st := stackWith(p)
	if st == nil {
		return nil, 0, false
	}
	for _, h := range st.ends() {
		at := h.Offset(p)
		for depth := uint64(1); depth <= h.Depth; depth++ {
			if from, end := st.edgesOf(h, depth); at-from < end-from {
				st.rooms.mu.Lock()
				inState = st.watch != nil || at-st.rooms.from < st.rooms.to-st.rooms.from
				st.rooms.mu.Unlock() // not deferred: a defer in a loop allocates
				return h, h.Record(depth).Gen, inState
			}
		}
	}
	panic(Misusef("a container on a heap in %s whose scope is closed", st.Arena))
}

// WasClosed returns the misuse of a closed scope, with a text that stays valid when the budget
// closes. If h is nil it is the misuse of a container that was freed.
func WasClosed(h *arena_c.Scopes, gen uint64) error {
	if h == nil {
		return &Misuse{"use of a container that was freed", true}
	}
	if st := Of(h); st == nil || st.made != numberOf(gen) {
		if t, ok := tombstoneOf(gen); ok {
			return t.misuse("use of", gen)
		}
	}
	return MisuseOf(h, gen, "use of")
}
