package scope

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// ObjectMaker makes values of T that have a finalizer. Declare it once, at package level, with
// Object.
type ObjectMaker[T any] struct {
	plain Maker[T]
	class uint64
	fin   func(*T) error
}

// Object declares a type T with a finalizer, and returns the ObjectMaker of T. The finalizer runs
// exactly once for each T that was made: when its scope closes, however the scope ends, the newest
// first; or earlier, at Put of an [ObjectPool], when a cache removes it, or when a constructor
// fails. T must not hold Go pointers (see [Plain]). To close a Go value with a scope, use
// [Scope.Own]. The finalizer may not allocate in the scope of its T.
func Object[T any](finalizer func(*T) error) ObjectMaker[T] {
	if finalizer == nil {
		panic(fmt.Sprintf("scope: Object of %v without a finalizer: use Plain", reflect.TypeFor[T]()))
	}
	// A func(*T) is called as one of an unsafe.Pointer: a closure between them would cost each
	// finalizer a call.
	class := stack.NewClass(stack.FinalizerOf+reflect.TypeFor[T]().String(), uint64(reflect.TypeFor[T]().Size()),
		*(*func(unsafe.Pointer) error)(unsafe.Pointer(&finalizer)))
	return ObjectMaker[T]{Plain[T](), class, finalizer}
}

// New returns a zeroed T. The finalizer must accept a zero T. A full scope unwinds. Cost: a call,
// the increment of an offset, the zeroing, and 8 bytes of the arena. The T begins at a multiple of
// 8.
func (m ObjectMaker[T]) New(s Scope) *T {
	x := arena_c.NewNode[T](s.h, s.gen+m.plain.key-stack.Key, m.class)
	if arena_c.Checked { // NoteMade asks too, but isn't inlined here
		stack.NoteMade(s.h)
	}
	return x
}

// TryNew is New, but returns nil where New unwinds. [Scope.Err] then returns the reason.
func (m ObjectMaker[T]) TryNew(s Scope) *T {
	p := s.h.Node(s.gen+m.plain.key-stack.Key, uint64(unsafe.Sizeof(*new(T))), arena_c.NodeSize-1)
	if p == nil {
		return nil
	}
	s.h.Link(p, m.class)
	if arena_c.Checked {
		stack.NoteMade(s.h)
	}
	return arena_c.Clear((*T)(p))
}

// Make returns a T that the constructor fn has initialized. fn gets the T zeroed. The T joins the
// chain of finalizers only after fn has succeeded, so the T is finalized before the objects that fn
// made in s. If fn returns an error, panics or runs out of room, all objects that fn made in s are
// finalized and freed, and the T is freed without its finalizer. A value that fn took from an older
// pool stays live.
func (m ObjectMaker[T]) Make(s Scope, fn func(*T) error) (*T, error) {
	m.plain.declared()
	return construct(s, m.class, fn)
}

// Slice returns n zeroed T; cap is len. Each T has its finalizer, and the last T is finalized
// first. A full scope unwinds, and a negative n panics. Cost: as [Maker.Slice], and 40 bytes of the
// arena plus alignment.
func (m ObjectMaker[T]) Slice(s Scope, n int) []T {
	m.plain.declared()
	if n < 0 {
		panic(stack.Misusef("a slice of %d elements", n))
	}
	p := stack.Objects(s.its(), s.gen, n, uint64(unsafe.Sizeof(*new(T))), sizeOf[T](n), m.class)
	if p == nil {
		panic(refusal(s))
	}
	return unsafe.Slice((*T)(p), n)
}
