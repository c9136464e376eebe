package scope

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
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
	return Maker[T]{key: key}
}

// New returns a zeroed T. If s is full, New unwinds to the enclosing Load or Do, which returns the
// error. Outside of Load and Do the panic has the same text. Cost: the same increment of an offset
// as in C, and the zeroing (make bench), inlined; no Go allocation, no call into C.
func (m Maker[T]) New(s Scope) *T {
	if arena_c.Checked {
		return noted(s, arena_c.New[T](s.h, s.gen+m.key-key))
	}
	return arena_c.New[T](s.h, s.gen+m.key-key)
}

// TryNew is New, but returns nil where New unwinds. [Scope.Err] then returns the reason. Use TryNew
// while the game runs, and on goroutines that a load starts.
func (m Maker[T]) TryNew(s Scope) *T {
	if arena_c.Checked {
		return noted(s, arena_c.TryNew[T](s.h, s.gen+m.key-key))
	}
	return arena_c.TryNew[T](s.h, s.gen+m.key-key)
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
		panic(undeclared)
	}
}

// nodeMask returns the alignment mask of a T with a node's word before it.
func nodeMask[T any]() uint64 { return max(arena_c.AlignOf[T](), arena_c.NodeSize) - 1 }

func (s Scope) making() making {
	if m := stackOf(s.h).noteOf(s.h, s.h.Find(s.gen)).making; m.gen == s.gen {
		return m
	}
	return making{}
}

// construct is Make, with a node's word before the T if class isn't 0.
func construct[T any](s Scope, class uint64, fn func(*T) error) (made *T, err error) {
	if !s.open() {
		panic(s.misuse("Make in"))
	}
	h, st := s.h, stackOf(s.h)
	to := markOf(h)
	// at least 1, so that no older object ends where the T begins
	size, p := max(uint64(unsafe.Sizeof(*made)), 1), unsafe.Pointer(nil)
	if class != 0 {
		p = h.Node(s.gen, size, nodeMask[T]())
	} else {
		p, _ = h.Bump(s.gen, size, arena_c.AlignOf[T]()-1)
	}
	if p == nil {
		panic(refusal(s))
	}
	arena_c.Zero(p, unsafe.Sizeof(*made))
	noted(s, (*T)(p))
	n := st.noteOf(h, to.depth)
	was := s.making()
	n.making = making{s.gen, was.from, to.cursor}
	if was.from == 0 {
		n.making.from = to.cursor
	}
	st.inside++
	done, returned := false, false
	defer func() {
		st.inside--
		if h.Find(s.gen) != to.depth {
			return // fn closed s: there is nothing left to undo
		}
		n.making = was
		if done {
			return
		}
		parts := st.undo(h, to)
		if returned {
			err = joined(err, parts)
			st.TellWarning()
		} else if parts != nil { // fn panicked: Close returns the errors
			n.lost = joined(n.lost, parts)
			h.Odd |= oddNoted
		}
	}()
	if err := fn((*T)(p)); err != nil {
		returned = true
		return nil, err
	}
	if !s.open() {
		panic(s.misuse("Make in"))
	}
	if class != 0 {
		h.Link(p, class)
	}
	done = true
	return (*T)(p), nil
}

// undo unwinds one end of the arena to a mark and returns the finalizers' errors. The mark's scope
// stays open.
func (st *Stack) undo(h *arena_c.Scopes, to mark) error {
	u := unwinding{st: st, h: h, to: to, frozen: h.Depth == to.depth && h.Gen == 0}
	return u.run()
}

// mayGrow panics if the allocation at an offset is older than the running constructor. If the
// constructor fails, the new bytes are freed, and the older object would still use them.
func (s Scope) mayGrow(at uint64, what string) {
	if start := s.making().start; start != 0 && at-s.h.Start <= start-s.h.Start {
		panic(bug("%s that is older: the new bytes are freed if the constructor fails; make it, or a Clone of it, inside the constructor", what))
	}
}
