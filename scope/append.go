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
	return appended(s, m.key, list, unsafe.SliceData(xs), len(xs)) // their capacity would be a word more than there are registers
}

func appended[T any](s Scope, declared uint64, list []T, xs *T, n int) []T {
	h, first := s.h, unsafe.SliceData(list)
	size, at := uint64(unsafe.Sizeof(*xs)), h.Offset(unsafe.Pointer(first))
	// In a checked build it is one request.
	if n == 1 && size != 0 && at+size*uint64(len(list)) == h.Cursor && at >= h.Top().Mark && !arena_c.Checked {
		if p, ok := h.Grow(s.gen+declared-key, at, size); ok {
			if arena_c.Crossing && len(list) == 0 { // what has no bytes has no place elsewhere
				first = (*T)(p)
			}
			*(*T)(p) = *xs
			return unsafe.Slice(first, len(list)+1)
		}
	}
	return appendSlow(s, declared, list, unsafe.Slice(xs, n))
}

func appendSlow[T any](s Scope, declared uint64, list, xs []T) []T {
	Maker[T]{key: declared}.declared()
	longer, ok := appendTo(s, list, xs)
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
