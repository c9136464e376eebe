package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Ref refers to a T in a scope and knows when the scope has closed. It is plain data of 16 bytes and may lie in a block of
// any region: what systems know of the level, they know by a Ref. It means nothing in another process. The zero Ref
// refers to nothing.
type Ref[T any] struct {
	place uint64 // the generation of its scope, and the place
	slot  uint64 // number and id of the stack, and the scope's index in it
}

const refSlots = 1 << 16 // indexes of scopes: limits.scopes is below it, and the far end's comes after the last

// RefTo makes a Ref to x, which lies in s itself: not in a scope around s or inside it. nil gives the zero Ref.
//
// It refuses what could be gone while s is open: a chunk of a pool, which HandlePool names, and what a constructor that
// runs now has made in s (see [ObjectMaker.Make]), until it has succeeded. Both are a caller's bug and panic, as is an x
// that lies elsewhere, or an s that is closed. Cost: a look at each of the arena's pools; no Go allocation, no call into
// C.
func RefTo[T any](s Scope, x *T) Ref[T] {
	if s.slot.Tag() != s.generation() {
		panic(s.misuse("RefTo in"))
	}
	if x == nil {
		return Ref[T]{}
	}
	if wrong := s.refuses(unsafe.Pointer(x), uint64(unsafe.Sizeof(*new(T)))); wrong != "" {
		panic(&Misuse{fmt.Sprintf("RefTo of a %T that %s", *new(T), wrong), false})
	}
	st := s.stack()
	return Ref[T]{s.generation() | s.slot.Offset(unsafe.Pointer(x)), (uint64(st.number)*(idMax+1)+st.id)*refSlots + s.slot.Index()}
}

// Get is what r refers to, or nil: its scope, or the whole budget, is closed. What a finalizer of the scope asks for
// while the scope closes may be finalized already.
//
// A Ref that is kept for 2^24 openings of a scope at its depth, or of 2^28 arenas, is taken for the newest. Ask
// where the scope's arena may be used, or from a goroutine that keeps it from closing (budget.Door). Cost: a few
// loads and comparisons; no call into C.
func (r Ref[T]) Get() *T {
	owner := r.slot / refSlots
	st := stackBy(owner%(idMax+1), uint32(owner/(idMax+1)))
	if st == nil {
		return nil
	}
	slot := st.row.Slot(r.slot % refSlots)
	if slot.Tag() != r.place&^arena_c.Offsets {
		return nil
	}
	return (*T)(slot.At(r.place & arena_c.Offsets))
}

// refuses says why there can't be a Ref to size bytes at p, or is empty. pre: s is live.
func (s Scope) refuses(p unsafe.Pointer, size uint64) string {
	st, row := s.stack(), s.slot.Row()
	place := s.slot.Offset(p)
	if !s.holds(place, size) {
		return fmt.Sprintf("doesn't lie in scope %q of %s itself", st.scopeName(s.slot), st.config.Arena)
	}
	for i := range row.Pools {
		if pool := row.Pool(i); pool.Open != 0 && uint64(uintptr(p)-uintptr(pool.Chunk(0))) < pool.Count()*pool.Stride {
			return "is a chunk of a pool, which may be put and taken again; name it by a handle, of a HandlePool"
		}
	}
	if making := st.notes[s.slot.Index()].making; making.serial != 0 && (s.isTemp() || place >= making.from) {
		return fmt.Sprintf("may be gone before scope %q of %s closes: its constructor hasn't succeeded yet; "+
			"refer to it when Make has returned", st.scopeName(s.slot), st.config.Arena)
	}
	return ""
}
