package scope

import "unsafe"

// Addr is the address of a T as plain data of 8 bytes, for places that can't hold a *T, such as a
// list on scratch of objects in the level. It checks nothing, so its T must outlive it. Checked and
// asan builds catch a stale Addr like any stale pointer. An Addr is valid only in its process. Use
// a [Ref] or a handle for a T that may end first, and an [arena.Ptr] for data that is saved, hashed
// or sent. The zero Addr is nil.
type Addr[T any] struct{ at uint64 }

// AddrOf returns the Addr of x, which is in the arena of s: in s, or in a scope around or inside s.
// s may be covered, or frozen, as a load's scope is after the load. nil gives the zero Addr. It
// panics if x is elsewhere, on the Go heap say, or s is closed. Cost: O(scopes open there); no Go
// allocation, no call into C.
func AddrOf[T any](s Scope, x *T) Addr[T] {
	if !s.alive() {
		panic(s.misuse("AddrOf in"))
	}
	if x != nil && !stackOf(s.h).has(unsafe.Pointer(x), uint64(unsafe.Sizeof(*x))) {
		panic(bug("AddrOf of a %T that is not in %s", *x, stackOf(s.h).Arena))
	}
	return Addr[T]{uint64(uintptr(unsafe.Pointer(x)))}
}

// Get returns the pointer, nil for the zero Addr. Cost: a comparison, inlined.
//
//go:nocheckptr
func (a Addr[T]) Get() *T {
	if a.at == 0 {
		return nil
	}
	return (*T)(unsafe.Add(unsafe.Pointer(nil), a.at))
}

// has reports whether the size bytes at p are within the used bytes of the near or the far end.
func (st *Stack) has(p unsafe.Pointer, size uint64) bool {
	at := st.h.Offset(p)
	return at-st.h.Start <= st.h.Cursor-st.h.Start && size <= st.h.Cursor-at ||
		at-st.h.Limit <= st.row.End-st.h.Limit && size <= st.row.End-at
}
