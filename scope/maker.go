package scope

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Maker makes values of T in scopes. Declare a Maker once, at package level, with Plain. A Maker is
// a small value. Methods of the zero Maker panic, except TryNew, which returns nil.
type Maker[T any] struct {
	_   [0]*T // so that no conversion makes a Maker[T] of a Maker[U]
	key uint64
}

// Plain declares a type T of plain data, without a finalizer, and returns the Maker of T. Plain
// data holds no Go pointer at any depth, because the garbage collector doesn't look into an arena.
// If T holds a Go pointer, Plain panics with a message that names the fields. It also panics if T
// has 2^37 bytes or more.
func Plain[T any]() Maker[T] {
	t := reflect.TypeFor[T]()
	if err := arena.CheckPlain(t); err != nil {
		panic("scope: " + err.Error())
	}
	if uint64(t.Size()) >= arena_c.OffsetMax/2 {
		panic(fmt.Sprintf("scope: %v has %d bytes, more than a block can have", t, t.Size()))
	}
	return Maker[T]{key: stack.Key}
}

// New returns a zeroed T. If s is full, New unwinds to the enclosing Load or Do, which returns the
// error. Outside of Load and Do the panic has the same text. Cost: the same increment of an offset
// as in C, and the zeroing (make bench), inlined; no Go allocation, no call into C.
func (m Maker[T]) New(s Scope) *T {
	if arena_c.Checked {
		return noted(s, arena_c.New[T](s.h, s.gen+m.key-stack.Key))
	}
	return arena_c.New[T](s.h, s.gen+m.key-stack.Key)
}

// TryNew is New, but returns nil where New unwinds. [Scope.Err] then returns the reason. Use TryNew
// while the game runs, and on goroutines that a load starts.
func (m Maker[T]) TryNew(s Scope) *T {
	if arena_c.Checked {
		return noted(s, arena_c.TryNew[T](s.h, s.gen+m.key-stack.Key))
	}
	return arena_c.TryNew[T](s.h, s.gen+m.key-stack.Key)
}

// Make returns a T that the constructor fn has initialized. fn gets the T zeroed. If fn returns an
// error, panics or runs out of room, all objects that fn made in s are finalized and freed, and the
// T is freed. A value that fn took from an older pool stays live.
func (m Maker[T]) Make(s Scope, fn func(*T) error) (*T, error) {
	m.declared()
	return construct(s, 0, fn)
}

func (m Maker[T]) declared() {
	if m.key == 0 {
		panic(stack.Undeclared)
	}
}

// construct is Make, with a node's word before the T if class isn't 0.
func construct[T any](s Scope, class uint64, fn func(*T) error) (made *T, err error) {
	c := stack.Construct(s.its(), s.gen, uint64(unsafe.Sizeof(*made)), arena_c.AlignOf[T](), class)
	x := noted(s, (*T)(c.Object))
	defer func() { err = c.End(err) }()
	if err := c.Returned(fn(x)); err != nil {
		return nil, err
	}
	return x, nil
}
