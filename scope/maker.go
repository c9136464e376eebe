package scope

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// Maker makes values of T in scopes. Declare it once, at package level, with Plain. It is a small value; the zero Maker
// is refused.
type Maker[T any] struct {
	ask uint64 // key + size of T
}

// Plain declares T: plain data, which dies in silence with its scope. A T that holds a Go pointer at any depth stops
// the program with a message that names the field, because the collector doesn't look into a block.
func Plain[T any]() Maker[T] {
	t := reflect.TypeFor[T]()
	if err := arena.CheckPlain(t); err != nil {
		panic("scope: " + err.Error())
	}
	if uint64(t.Size()) >= arena_c.OffsetMax/2 {
		panic(fmt.Sprintf("scope: %v has %d bytes, more than a block can have", t, t.Size()))
	}
	return Maker[T]{key + uint64(t.Size())}
}

// New gives a zeroed T. A full scope unwinds to the enclosing Load or Do, which returns the error; outside both it
// panics with the same text. Cost: that of the same bump in C and the zeroing (make bench), inlined; no Go allocation, no
// call into C.
func (m Maker[T]) New(s Scope) *T {
	if x, ok := arena_c.New[T](s.slot, s.tag+m.ask); ok {
		return x
	}
	panic(refusal(s))
}

// TryNew is New that gives nil when the scope is full; the scope remembers (Err). It is for play, and for goroutines
// that a loader starts.
func (m Maker[T]) TryNew(s Scope) *T {
	x, _ := arena_c.New[T](s.slot, s.tag+m.ask)
	return x
}

// Slice gives n zeroed T; cap is len, so that append can't run into what lies behind. A full scope unwinds, a negative
// n panics.
func (m Maker[T]) Slice(s Scope, n int) []T {
	m.declared()
	return makeSlice[T](s, n, true)
}

// TrySlice is Slice that gives nil when the scope is full; the scope remembers (Err). A slice of 0 is not nil.
func (m Maker[T]) TrySlice(s Scope, n int) []T {
	m.declared()
	return makeSlice[T](s, n, false)
}

func (m Maker[T]) declared() {
	if m.ask == 0 {
		panic(&Misuse{"a Maker that was never declared: make it with scope.Plain", false})
	}
}

func makeSlice[T any](s Scope, n int, unwind bool) []T {
	var zero T
	if n < 0 {
		panic(&Misuse{fmt.Sprintf("a slice of %d elements", n), false})
	}
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(zero)))
	if over != 0 {
		size = arena_c.OffsetMax
	}
	p := s.take(size, uint64(unsafe.Alignof(zero)))
	if p == nil {
		if unwind {
			panic(refusal(s))
		}
		return nil
	}
	arena_c.Zero(p, uintptr(size))
	return unsafe.Slice((*T)(p), n)
}
