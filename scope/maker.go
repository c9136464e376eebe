package scope

import (
	"fmt"
	"reflect"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// Maker makes values of T in scopes. Declare it once, at package level, with Plain. It is a small
// value; the zero Maker is refused.
type Maker[T any] struct{ key uint64 }

// Plain declares T: plain data, which dies in silence with its scope. A T that holds a Go pointer at
// any depth stops the program with a message that names the field, because the collector doesn't
// look into a block.
func Plain[T any]() Maker[T] {
	t := reflect.TypeFor[T]()
	if err := arena.CheckPlain(t); err != nil {
		panic("scope: " + err.Error())
	}
	if uint64(t.Size()) >= arena_c.OffsetMax/2 {
		panic(fmt.Sprintf("scope: %v has %d bytes, more than a block can have", t, t.Size()))
	}
	return Maker[T]{key}
}

// New gives a zeroed T. A full scope unwinds to the enclosing Load or Do, which returns the error;
// outside both it panics with the same text. Cost: that of the same bump in C and the zeroing (make
// bench), inlined; no Go allocation, no call into C.
func (m Maker[T]) New(s Scope) *T { return arena_c.New[T](s.h, s.gen+m.key-key) }

// TryNew is New that gives nil when the scope is full; the scope remembers ([Scope.Err]). It is for
// play, and for goroutines that a loader starts.
func (m Maker[T]) TryNew(s Scope) *T { return arena_c.TryNew[T](s.h, s.gen+m.key-key) }

// Make gives a T that fn has made ready. When fn fails, or panics, or a full unwinds it, all that it
// made in s is finalized and its bytes are free again, T's too.
func (m Maker[T]) Make(s Scope, fn func(*T) error) (*T, error) {
	m.declared()
	return construct(s, 0, fn)
}

func (m Maker[T]) declared() {
	if m.key == 0 {
		panic(undeclared)
	}
}
