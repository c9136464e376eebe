//go:build go1.27

package scope

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// New returns a zeroed T without a [Maker], from Go 1.27 on:
//
//	frog := s.New[Frog]()
//
// For a Maker, T is checked where the Maker is declared. New checks T at each call. If T holds a Go
// pointer, at any depth, New panics with an error that wraps a [Misuse] and names the fields.
// Otherwise New works as [Maker.New]. For plain data with a finalizer use an [ObjectMaker]. Cost:
// as Maker.New, inlined, and three instructions more where T is itself a type parameter; no Go
// allocation, no call into C.
//
// The garbage collector doesn't follow a pointer to an incomplete C type. New refuses this pointer
// only in checked builds, and Plain refuses it in all builds.
func (s Scope) New[T any]() (x *T) { // arena_c.New written out: the inliner refuses its call
	if arena_c.Crossing || arena_c.Race || ^uintptr(0)>>32 == 0 {
		mustBePlain[T]()
		return noted(s, arena_c.New[T](s.h, s.gen))
	}
	p, h := any((*refused[T])(nil)), s.h
	if (*(**pointerWords)(unsafe.Pointer(&p))).of.pointers != 0 {
		panic(p)
	}
	at := (h.Cursor + uint64(unsafe.Alignof(*x)-1)) & -uint64(unsafe.Alignof(*x))
	if h.Gen == s.gen {
		x = (*T)(unsafe.Add(unsafe.Pointer(h), at))
		if at += uint64(unsafe.Sizeof(*x)); at <= h.Limit {
			h.Cursor = at
			clear((*[1]T)(unsafe.Pointer(x))[:])
			return
		}
		h.Asked = arena_c.Asked | uint64(unsafe.Sizeof(*x))
	} else {
		h.Misused = s.gen
	}
	panic(arena_c.Refusal{Arena: h, Gen: s.gen})
}

// Slice returns n zeroed T without a [Maker], from Go 1.27 on. It works as [Maker.Slice], and
// checks T as [Scope.New] does.
func (s Scope) Slice[T any](n int) []T {
	mustBePlain[T]()
	return makeSlice[T](s, n, true)
}

// Pool makes a pool of n chunks without a [Maker], from Go 1.27 on. It works as [Maker.Pool], and
// checks T as [Scope.New] does.
func (s Scope) Pool[T any](n int) Pool[T] {
	mustBePlain[T]()
	return Pool[T]{openPool[T](s, n, 0, false)}
}

// mustBePlain panics if T may not be stored in a block.
func mustBePlain[T any]() {
	p := any((*refused[T])(nil))
	if (*(**pointerWords)(unsafe.Pointer(&p))).of.pointers != 0 || arena_c.Checked && !isPlain(reflect.TypeFor[T]()) {
		panic(p)
	}
}

// plainTypes are the types that isPlain has found to be plain.
var plainTypes sync.Map

// isPlain reports whether arena.CheckPlain accepts t. It asks once for each type.
func isPlain(t reflect.Type) bool {
	if _, found := plainTypes.Load(t); found {
		return true
	}
	if arena.CheckPlain(t) != nil {
		return false
	}
	plainTypes.Store(t, nil)
	return true
}

// refused is the panic value for a T that holds Go pointers, always as a nil pointer. One interface
// has both the words of the type for the check, and T for the message, because the inliner's budget
// doesn't allow two. The array makes the compiler refuse a T of 2^37 bytes, as Plain does.
type refused[T any] struct {
	_ [1 << (13 * (^uintptr(0) >> 63))]T
}

// Unwrap lets a handler of the panic use errors.As.
func (*refused[T]) Unwrap() error { return stack.Misusef("%v", arena.CheckPlain(reflect.TypeFor[T]())) }

func (r *refused[T]) Error() string { return r.Unwrap().Error() }

// typeWords are the first words of Go's description of a type. A type's description has a constant
// address, so the check of a T is one comparison.
type typeWords struct {
	size     uintptr
	pointers uintptr // bytes up to the end of the last pointer that the collector follows
}

// pointerWords is Go's description of a pointer type.
type pointerWords struct {
	_  [4*unsafe.Sizeof(uintptr(0)) + 16]byte
	of *typeWords
}

// A program fails at its start if its Go describes types in another way.
var _ = func() (none struct{}) {
	type with struct {
		before [3]uint32
		at     *int32
		after  [5]uint16
	}
	type without struct {
		before [3]uint32
		at     uintptr
		after  [5]uint16
	}
	for _, x := range []struct {
		of   any
		want typeWords
	}{
		{(*with)(nil), typeWords{unsafe.Sizeof(with{}), unsafe.Offsetof(with{}.after)}},
		{(*without)(nil), typeWords{unsafe.Sizeof(without{}), 0}},
	} {
		if *(*(**pointerWords)(unsafe.Pointer(&x.of))).of != x.want {
			panic("scope: New, Slice and Pool of a Scope don't know the types of this version of Go")
		}
	}
	return
}()
