package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Ref refers to a T in a scope and detects that the scope has closed. It is plain data of 16 bytes
// and may be stored in a block of any region, so that longer-lived data can refer to objects of a
// level. A Ref is valid only in its process. The zero Ref refers to no T.
type Ref[T any] struct {
	gen uint64 // of its scope
	at  uint64 // the place that stack.Refer returned
}

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
	at, wrong := stack.Refer(s.h, s.gen, unsafe.Pointer(x), uint64(unsafe.Sizeof(*x)))
	if wrong != "" {
		panic(stack.Misusef("RefTo of a %T that %s", *new(T), wrong))
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
	return (*T)(stack.Referred(r.gen, r.at, uint64(unsafe.Sizeof(*new(T))), arena_c.AlignOf[T]()))
}
