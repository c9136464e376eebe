package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Append gives list with xs behind it, as the built-in does, but what it gives lies in s, wherever list lay. It is for
// list = Append(s, list, x): who keeps the old list may share its elements, or not.
//
//   - A list in s that has capacity left stays where it is.
//   - So does the last thing that was made in s: the scope gives it just the bytes that it needs more.
//   - Any other list, of an enclosing scope or of the Go heap too, is copied to a new place, with capacity for twice its
//     length, or for what it needs if that is more. Its old bytes are free when their scope closes.
//
// xs may be part of list. A full scope unwinds, and so does a covered or closed one, even where there is capacity left;
// list is unchanged then. Cost: a few ns for one element behind the last thing made, a copy where the list moves; no Go
// allocation, no call into C.
func (m Maker[T]) Append(s Scope, list []T, xs ...T) []T {
	return appended(list, s.h, (s.gen+m.key)^key, unsafe.SliceData(xs), len(xs)) // a capacity more would leave the registers
}

// appended is Append in a scope of a generation, whose top bit is set where the Maker wasn't declared: n elements, the first
// of which is *xs. It has what happens most, one element behind the last thing in the scope; appendSlow has all else, and
// all of the builds whose fast paths cross into C. The end of a list on the Go heap may be another's beginning there, which
// the compiler's check of pointers refuses; it is only compared. The list is first because the result then needs fewer moves.
// It needs no look at the stack's limit: appendSlow has its own.
//
//go:nocheckptr
//go:nosplit
func appended[T any](list []T, h *arena_c.Scopes, gen uint64, xs *T, n int) []T {
	if size := uint64(unsafe.Sizeof(*xs)); n == 1 && size != 0 && !arena_c.Crossing {
		first, bytes := unsafe.Pointer(unsafe.SliceData(list)), size*uint64(len(list))
		cursor, p := h.Cursor, unsafe.Add(unsafe.Pointer(h), h.Cursor)
		if unsafe.Add(first, bytes) == p && h.Gen == gen && h.Top().Mark+bytes <= cursor && cursor+size <= h.Limit {
			h.Cursor = cursor + size
			*(*T)(p) = *xs
			return slice[T](first, len(list)+1)
		}
	}
	return appendSlow(list, h, gen, xs, n)
}

// slice is unsafe.Slice of what lies within the address space: that asks, which takes as long as all else here.
func slice[T any](first unsafe.Pointer, n int) []T {
	header := struct {
		first  unsafe.Pointer
		len, c int
	}{first, n, n}
	return *(*[]T)(unsafe.Pointer(&header))
}

func appendSlow[T any](list []T, h *arena_c.Scopes, gen uint64, xs *T, n int) []T {
	if gen >= key {
		panic(undeclared)
	}
	s := Scope{h, gen}
	longer, ok := appendTo(s, list, unsafe.Slice(xs, n))
	if !ok {
		panic(refusal(s))
	}
	return longer
}

// appendTo is Append that is false when s refuses.
func appendTo[T any](s Scope, list, xs []T) (longer []T, ok bool) {
	needed := len(list) + len(xs)
	if needed < 0 { // no memory has as many, but T may need none
		panic(bug("a slice of %d and %d more elements", len(list), len(xs)))
	}
	if !s.open() {
		s.take(sizeOf[T](len(xs)), 1) // so that s remembers who was refused
		return nil, false
	}
	first, room := unsafe.SliceData(list), cap(list)
	if needed+room == 0 {
		return list, true
	}
	if at, size := s.h.Offset(unsafe.Pointer(first)), sizeOf[T](room); s.holds(at, size) {
		if needed > room {
			s.mayGrow(at, "Append inside a constructor to a list")
		}
		if needed > room && at+size == s.h.Cursor {
			p, ok := s.h.Grow(s.gen, at, min(sizeOf[T](needed-room), arena_c.OffsetMax))
			if !ok {
				return nil, false // a new place would take more
			}
			if room == 0 {
				first = (*T)(p)
			}
			notedMore(s, first, room, needed)
			room = needed
		}
		if needed <= room {
			longer = unsafe.Slice(first, room)[:needed]
			copy(longer[len(list):], xs)
			return longer, true
		}
	}
	return move(s, list, xs, max(2*len(list), needed))
}

// holds says whether size bytes at an offset lie in s itself. pre: s is the topmost scope.
func (s Scope) holds(at, size uint64) bool {
	start, end := s.h.Top().Mark, s.h.Cursor
	if s.h.Back != 0 {
		start = stackOf(s.h).tempStart()
	}
	return at-start <= end-start && size <= end-at
}
