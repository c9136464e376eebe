package scope

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// ObjectMaker makes values of T that have a finalizer. Declare it once, at package level, with Object.
type ObjectMaker[T any] struct {
	ask   uint64 // key + size of T and the node behind it
	plain Maker[T]
	class uint64
	fin   func(*T) error
}

// Object declares T with a finalizer: it runs when the scope closes, on each T that was made, newest first, exactly
// once, whatever ended the scope. T holds no Go pointers (see [Plain]); a Go value that must close belongs to [Scope.Own]. The
// finalizer may not allocate in its own scope.
func Object[T any](finalizer func(*T) error) ObjectMaker[T] {
	if finalizer == nil {
		panic(fmt.Sprintf("scope: Object of %v without a finalizer: use Plain", reflect.TypeFor[T]()))
	}
	m := ObjectMaker[T]{ask: key + nodeOffset[T]() + nodeSize, plain: Plain[T](), fin: finalizer}
	// A function of a *T is called as one of any pointer is: a closure between them would cost a call for each finalizer.
	m.class = newClass("finalizer of "+reflect.TypeFor[T]().String(), *(*func(unsafe.Pointer) error)(unsafe.Pointer(&finalizer)))
	return m
}

// New gives a zeroed T, linked. The finalizer must bear a zero T. A full scope unwinds.
func (m ObjectMaker[T]) New(s Scope) *T {
	x := m.TryNew(s)
	if x == nil {
		panic(refusal(s))
	}
	return x
}

// TryNew is New that gives nil when the scope is full.
func (m ObjectMaker[T]) TryNew(s Scope) *T {
	var zero T
	node, before := nodeOffset[T](), s.slot.Refused
	p, ok := s.slot.Bump(s.tag+m.ask, node+nodeSize, max(arena_c.AlignOf[T](), nodeAlign)-1)
	if !ok {
		return m.tryTemp(s, before)
	}
	arena_c.Zero(p, unsafe.Sizeof(zero))
	return m.linked(s, (*T)(p))
}

// tryTemp is TryNew for who was refused: temporaries may take a new piece. before is what the scope remembered before.
func (m ObjectMaker[T]) tryTemp(s Scope, before uint64) *T {
	if !s.growsNow() {
		return nil
	}
	objects, nodes := m.take(s, 1)
	if nodes == nil {
		return nil
	}
	s.slot.Refused = before
	m.link(s, objects, nodes)
	return &objects[0]
}

const nodeSize, nodeAlign = uint64(unsafe.Sizeof(arena_c.Node{})), 8

// nodeOffset is where the node of a T lies, from the T.
func nodeOffset[T any]() uint64 {
	var zero T
	return (uint64(unsafe.Sizeof(zero)) + nodeAlign - 1) &^ (nodeAlign - 1)
}

// Make gives a T that fn has made ready. T is linked only after fn succeeded; what fn itself made in s dies after it.
// When fn fails, or panics, or a full unwinds it, all that it made in s is finalized and its bytes are free again.
func (m ObjectMaker[T]) Make(s Scope, fn func(*T) error) (*T, error) {
	m.plain.declared()
	x, err := construct(s, nodeOffset[T]()+nodeSize, max(arena_c.AlignOf[T](), nodeAlign), fn)
	if err != nil {
		return nil, err
	}
	return m.linked(s, x), nil
}

// linked puts x, whose node lies behind it, into the chain.
func (m ObjectMaker[T]) linked(s Scope, x *T) *T {
	p := unsafe.Pointer(x)
	s.slot.Link((*arena_c.Node)(unsafe.Add(p, nodeOffset[T]())), m.class, s.slot.Offset(p))
	return x
}

// Slice gives n zeroed T, each linked: the last dies first. cap is len. A full scope unwinds.
func (m ObjectMaker[T]) Slice(s Scope, n int) []T {
	objects, nodes := m.take(s, n)
	if nodes == nil {
		panic(refusal(s))
	}
	m.link(s, objects, nodes)
	return objects
}

// take makes n zeroed objects and their nodes behind them, in one bump; nodes is nil when the scope is full, and never else.
func (m ObjectMaker[T]) take(s Scope, n int) (objects []T, nodes []arena_c.Node) {
	m.plain.declared()
	var zero T
	size, align := uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T]()
	if n < 0 {
		panic(&Misuse{"a slice of a negative number of elements", false})
	}
	if uint64(n) >= arena_c.OffsetMax/(size+nodeSize) {
		s.slot.Refused = s.generation() + tooMuch
		return nil, nil
	}
	front := (size*uint64(n) + nodeAlign - 1) &^ (nodeAlign - 1)
	p := s.take(front+nodeSize*uint64(n), max(align, nodeAlign))
	if p == nil {
		return nil, nil
	}
	arena_c.Zero(p, uintptr(size)*uintptr(n))
	return unsafe.Slice((*T)(p), n), unsafe.Slice((*arena_c.Node)(unsafe.Add(p, front)), n)
}

func (m ObjectMaker[T]) link(s Scope, objects []T, nodes []arena_c.Node) {
	for i := range nodes {
		s.slot.Link(&nodes[i], m.class, s.slot.Offset(unsafe.Pointer(&objects[i])))
	}
}
