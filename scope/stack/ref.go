package stack

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// A reference to a place is an offset from the header of an end. refOffset is above all offsets:
// the Stack's id is stored from that bit on. refFar is set if the end is the far one.
const (
	refOffset = 1 << 40
	refFar    = 1 << 63
)

// Refer returns a reference to the size bytes at p, which must be in the scope itself. If there
// can't be one, wrong says why. pre: the scope is alive.
func Refer(h *arena_c.Scopes, gen uint64, p unsafe.Pointer, size uint64) (at uint64, wrong string) {
	if wrong = refuses(h, gen, p, size); wrong != "" {
		return 0, wrong
	}
	at = h.Offset(p)%refOffset | Of(h).id*refOffset
	if h.Back != 0 {
		at |= refFar
	}
	return at, ""
}

// Referred returns the address of a reference into the scope of the generation gen. It returns nil
// if that scope is closed, or if size bytes of that alignment can't be there.
func Referred(gen, at, size, align uint64) unsafe.Pointer {
	st := stackAt(at % refFar / refOffset)
	if st == nil {
		return nil
	}
	h := st.h
	if at&refFar != 0 {
		h = &st.row.Temp
	}
	if h.Find(gen) == 0 {
		return nil
	}
	from := st.h.Start
	at = (at%refOffset - from + h.Back) % refOffset
	if at%align != 0 || at > st.row.Size() || size > st.row.Size()-at {
		return nil
	}
	return st.h.At(from + at)
}

// refuses returns why there can't be a reference to the size bytes at p, or "". pre: the scope is
// alive.
func refuses(h *arena_c.Scopes, gen uint64, p unsafe.Pointer, size uint64) string {
	st, depth := Of(h), h.Find(gen)
	at := h.Offset(p)
	from, end := st.edgesOf(h, depth)
	if at < from || at > end || size > end-at {
		return fmt.Sprintf("is not in scope %q of %s itself", st.nameOf(h, depth), st.Arena)
	}
	for i := range st.row.Pools {
		pool := st.row.Pool(i)
		first := arena_c.Place(unsafe.Pointer(pool), unsafe.Pointer(h)) + pool.Chunks
		if pool.Gen != 0 && at-first < uint64(pool.Count)*pool.Stride {
			return "is a chunk of a pool, which may be put and taken again; name it by a handle, of a HandlePool"
		}
	}
	if making := makingOf(h, gen); making.from != 0 && at >= making.from {
		return fmt.Sprintf("may be gone before scope %q of %s closes: its constructor hasn't succeeded yet; "+
			"refer to it when Make has returned", st.nameOf(h, depth), st.Arena)
	}
	return ""
}

// Has reports whether the size bytes at p are within the used bytes of the arena of an end.
func Has(h *arena_c.Scopes, p unsafe.Pointer, size uint64) bool {
	st := Of(h)
	at := st.h.Offset(p)
	near := st.h.Start <= at && at <= st.h.Cursor && size <= st.h.Cursor-at
	return near || st.h.Limit <= at && at <= st.row.End && size <= st.row.End-at
}

// TempStart returns the offset of the newest temporaries from the far end's header.
func TempStart(far *arena_c.Scopes) uint64 { return Of(far).tempStart() }
