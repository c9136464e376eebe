package scope

import "unsafe"

// Addr is the address of a T as plain data of 8 bytes, where a *T can't lie: of a list on scratch of what lies in the level.
// It asks nothing, so it is for what lives longer than the Addr does: a stale one is a stale pointer, which checked and asan
// builds catch as they catch any. It means nothing in another process. What may end first has a [Ref], or a handle; what is
// saved, hashed or sent, an [arena.Ptr]. The zero Addr is nil.
type Addr[T any] struct{ at uint64 }

// AddrOf makes an Addr of x, which lies in the arena of s: in s, or in a scope around or inside it. s may be covered or
// frozen, as that of a load is afterwards. nil gives the zero Addr. An x that lies elsewhere, on the Go heap too, is a
// caller's bug and panics, and so is an s that is closed. Cost: a look at the scopes open there; no Go allocation, no call
// into C.
func AddrOf[T any](s Scope, x *T) Addr[T] {
	if !s.alive() {
		panic(s.misuse("AddrOf in"))
	}
	if x != nil && !stackOf(s.h).has(unsafe.Pointer(x), uint64(unsafe.Sizeof(*x))) {
		panic(bug("AddrOf of a %T that doesn't lie in %s", *x, stackOf(s.h).Arena))
	}
	return Addr[T]{uint64(uintptr(unsafe.Pointer(x)))}
}

// Get is the pointer, nil for the zero Addr. Cost: a comparison, inlined.
//
//go:nocheckptr
func (a Addr[T]) Get() *T {
	if a.at == 0 {
		return nil
	}
	return (*T)(unsafe.Add(unsafe.Pointer(nil), a.at))
}

// has says whether size bytes at p are in use, at one end or the other.
func (st *Stack) has(p unsafe.Pointer, size uint64) bool {
	at := st.h.Offset(p)
	return at-st.h.Start <= st.h.Cursor-st.h.Start && size <= st.h.Cursor-at ||
		at-st.h.Limit <= st.row.End-st.h.Limit && size <= st.row.End-at
}
