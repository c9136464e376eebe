package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Ref refers to a T in a scope and detects that the scope has closed. It is plain data of 16 bytes
// and may be stored in a block of any region, so that longer-lived data can refer to objects of a
// level. A Ref is valid only in its process. The zero Ref refers to no T.
type Ref[T any] struct {
	gen uint64 // of its scope
	// offset from the arena's header; above refOffset the stack's id, and refFar
	at uint64
}

// refOffset is above all offsets: the stack's id is stored from that bit on. refFar is set if the
// header is the far end's.
const (
	refOffset = 1 << 40
	refFar    = 1 << 63
)

// RefTo returns a Ref to x. x must be in s itself, not in a scope around s or inside s. For a nil
// x, RefTo returns the zero Ref.
//
// RefTo panics if x is a chunk of a pool (use a HandlePool), or if a constructor that still runs
// made x in s (see [ObjectMaker.Make]). RefTo also panics if x isn't in s, or if s is closed. x may
// be a value of a container (see package container), or in a block of an [arena.Heap]. The Ref is
// then valid until the value is removed or the block is freed. Cost: a check of each of the arena's
// planned pools, and O(open scopes of the arena); no Go allocation, no call into C.
func RefTo[T any](s Scope, x *T) Ref[T] {
	if !s.alive() {
		panic(s.misuse("RefTo in"))
	}
	if x == nil {
		return Ref[T]{}
	}
	if wrong := s.refuses(unsafe.Pointer(x), uint64(unsafe.Sizeof(*x))); wrong != "" {
		panic(bug("RefTo of a %T that %s", *new(T), wrong))
	}
	at := s.h.Offset(unsafe.Pointer(x))%refOffset | stackOf(s.h).id*refOffset
	if s.isTemp() {
		at |= refFar
	}
	return Ref[T]{s.gen, at}
}

// Get returns the T that r refers to, or nil if the T's scope or the whole budget is closed. While
// the scope closes, a finalizer that calls Get may get a T that is already finalized.
//
// Call Get on the goroutine that uses the scope's arena, or on a goroutine that keeps the scope
// from closing (budget.Reader). For a Ref that RefTo didn't make, Get returns nil or an address
// inside an arena that has an open scope. Cost: O(open scopes of the arena), a few loads for each
// scope; no call into C.
func (r Ref[T]) Get() *T {
	st := stackAt(r.at % refFar / refOffset)
	if st == nil {
		return nil
	}
	h := st.h
	if r.at&refFar != 0 {
		h = &st.row.Temp
	}
	if h.Find(r.gen) == 0 {
		return nil
	}
	from, at := st.h.Start, (r.at%refOffset-st.h.Start+h.Back)%refOffset
	if align := arena_c.AlignOf[T](); at%align != 0 || at > st.row.Size() || uint64(unsafe.Sizeof(*new(T))) > st.row.Size()-at {
		return nil
	}
	return (*T)(st.h.At(from + at))
}

// refuses returns why there can't be a Ref to the size bytes at p, or "". pre: s is live.
func (s Scope) refuses(p unsafe.Pointer, size uint64) string {
	h, st, depth := s.h, stackOf(s.h), s.h.Find(s.gen)
	at := h.Offset(p)
	from, end := st.edgesOf(h, depth)
	if at-from > end-from || size > end-at {
		return fmt.Sprintf("is not in scope %q of %s itself", st.nameOf(h, depth), st.Arena)
	}
	for i := range st.row.Pools {
		pool := st.row.Pool(i)
		first := arena_c.Place(unsafe.Pointer(pool), unsafe.Pointer(h)) + pool.Chunks
		if pool.Gen != 0 && at-first < uint64(pool.Count)*pool.Stride {
			return "is a chunk of a pool, which may be put and taken again; name it by a handle, of a HandlePool"
		}
	}
	if making := s.making(); making.from != 0 && at-h.Start >= making.from-h.Start {
		return fmt.Sprintf("may be gone before scope %q of %s closes: its constructor hasn't succeeded yet; "+
			"refer to it when Make has returned", st.nameOf(h, depth), st.Arena)
	}
	return ""
}

func (st *Stack) edgesOf(h *arena_c.Scopes, depth uint64) (from, end uint64) {
	switch {
	case h.Back == 0:
		from = h.Record(depth).Mark
		return from, from + h.Bytes(depth)
	case depth == h.Depth:
		return st.tempStart(), h.Cursor
	}
	next := h.Record(depth + 1)
	return next.Edge - h.Back, next.Mark
}
