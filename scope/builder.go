package scope

import (
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Builder gathers values whose number isn't known yet. It holds all free bytes of its scope until
// Done, and Done frees the bytes that no value takes. No value moves. The program gets pointers to
// the values only from Done.
//
// Until Done the scope is covered, so two Builders at once need scopes of two arenas. A [List]
// covers no scope, so several Lists may grow on one scratch arena. List.Slice then copies the
// values to another scope. In checked and asan builds the time of Build and Done grows with the
// free bytes. One goroutine at a time uses a Builder; don't copy it.
type Builder[T any] struct {
	_     stack.NoCopy
	scope Scope // its own, which covers the caller's
	items []T
}

// Build opens a scope in s, and returns a Builder in the new scope. s must be the topmost scope.
// Build fails where [Scope.Open] does, and costs as much.
func (m Maker[T]) Build(s Scope) Builder[T] {
	m.declared()
	inner := s.Open("builder")
	h, size := inner.h, uint64(unsafe.Sizeof(*new(T)))
	h.Odd |= arena_c.Building
	from := uint64(uintptr(unsafe.Pointer(h)))
	at := min(roundUp(from+h.Cursor, arena_c.AlignOf[T]())-from, h.Limit)
	room := uint64(math.MaxInt) // for a T of no bytes
	if size != 0 {
		room = (h.Limit - at) / size
	}
	r := h.Top()
	r.Limit, r.Edge = at, size // for a full error
	return Builder[T]{scope: inner, items: unsafe.Slice((*T)(h.MarkRoom(at, room*size)), room)[:0]}
}

// Push appends x. It unwinds if the scope is full, or after Done. Cost: as much as the built-in
// append within capacity, and a call; no Go allocation, no call into C.
func (b *Builder[T]) Push(x T) {
	if !b.TryPush(x) {
		panic(arena_c.Refusal{Arena: b.scope.h, Gen: b.scope.gen})
	}
}

// TryPush is Push, but returns false where Push unwinds. If the scope was full, then after Done
// [Scope.Err] of the scope passed to Build returns the error.
func (b *Builder[T]) TryPush(x T) bool {
	if h := b.scope.h; h.Gen == b.scope.gen {
		if len(b.items) < cap(b.items) {
			b.items = append(b.items, x)
			return true
		}
		h.Asked = arena_c.Asked | uint64(unsafe.Sizeof(x))
	} else {
		h.Misused = b.scope.gen
	}
	return false
}

func (b *Builder[T]) end() uint64 {
	return b.scope.h.Offset(unsafe.Pointer(unsafe.SliceData(b.items))) +
		uint64(len(b.items))*uint64(unsafe.Sizeof(*new(T)))
}

// Len returns the number of values.
func (b *Builder[T]) Len() int { return len(b.items) }

// Done returns the values; cap is len. The values are then in the scope passed to Build, and that
// scope allocates again. A second Done panics.
func (b *Builder[T]) Done() []T {
	s := b.scope
	if !s.open() {
		panic(s.misuse("Done of a Builder in"))
	}
	h, r, asked, at, size := s.h, s.h.Top(), s.h.Asked, s.h.Top().Limit, uint64(unsafe.Sizeof(*new(T)))
	items := b.items[:len(b.items):len(b.items)]
	if len(items) > 0 {
		h.Cursor = b.end()
		if arena_c.Checked {
			r.Count += arena_c.Object + uint64(len(items))*size
		}
	}
	if size != 0 {
		all := uint64(cap(b.items)) * size
		h.MarkLess(at, at+all, all-uint64(len(items))*size)
	}
	h.Odd &^= arena_c.Building
	h.Keep(r)
	notedSlice(Scope{h, h.Gen}, items)
	if asked != 0 {
		h.Asked = asked
	}
	return items
}
