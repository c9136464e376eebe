package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/scope/stack"
)

// Addr is the address of a T as plain data of 8 bytes. It is for places that can't hold a *T, such
// as a list in a scratch arena of objects that are in the level. An Addr checks nothing, so the T
// must outlive the Addr. Checked and asan builds catch a stale Addr like any stale pointer. An Addr
// is valid only in its process. Use a [Ref] or a handle for a T that may end first, and an
// [arena.Ptr] in data that is saved, hashed or sent. The zero Addr is nil.
type Addr[T any] struct{ at uint64 }

// AddrOf returns the Addr of x. x must be in the arena of s: in s itself, or in a scope around s or
// inside s. s may be covered, or frozen like the scope of a load that has returned. For a nil x,
// AddrOf returns the zero Addr. AddrOf panics if x isn't in the arena (it may be on the Go heap),
// or if s is closed. Cost: O(open scopes of the arena); no Go allocation, no call into C.
func AddrOf[T any](s Scope, x *T) Addr[T] {
	if !s.alive() {
		panic(s.misuse("AddrOf in"))
	}
	if x != nil && !stack.Has(s.h, unsafe.Pointer(x), uint64(unsafe.Sizeof(*x))) {
		panic(stack.Misusef("AddrOf of a %T that is not in %s", *x, stack.Of(s.h).Arena))
	}
	return Addr[T]{uint64(uintptr(unsafe.Pointer(x)))}
}

// Get returns the pointer, or nil for the zero Addr. Cost: a comparison, inlined.
//
//go:nocheckptr
func (a Addr[T]) Get() *T {
	if a.at == 0 {
		return nil
	}
	return (*T)(unsafe.Add(unsafe.Pointer(nil), a.at))
}
