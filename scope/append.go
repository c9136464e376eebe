package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Append appends xs to list, as the built-in append does, but the result is in memory of s,
// wherever list is. Use it as list = m.Append(s, list, x), because the result may or may not share
// memory with the old list.
//
//   - A list in s with capacity for xs stays where it is.
//   - A list that is the newest allocation of s also stays, and grows by the bytes for xs.
//   - Any other list is copied to a new place in s, even if it is in an enclosing scope or on the
//     Go heap. The copy has capacity for twice the old length, or for the new length if that is
//     larger. The old bytes of the list are freed when the scope that they are in closes.
//
// xs may be part of list. Append unwinds if s is full. It also unwinds if s is covered or closed,
// even if list has capacity left. list is then unchanged. While a constructor runs (see
// [Maker.Make]), Append panics if list is in s, has too little capacity, and is older than the
// constructor's object. Cost: a few ns for one element if list is the newest allocation, or a copy
// if the list moves; no Go allocation, no call into C.
func (m Maker[T]) Append(s Scope, list []T, xs ...T) []T {
	// the cap of xs isn't passed: one word more would not fit the registers
	return appended(list, s.h, (s.gen+m.key)^stack.Key, unsafe.SliceData(xs), len(xs))
}

// appended is Append of the n elements at xs. The top bit of gen is set if the Maker wasn't
// declared. The fast path appends one element to the newest allocation. appendSlow does all other
// work, and all work in builds whose fast paths call C. list is the first parameter because the
// result then needs fewer moves.
//
// A list on the Go heap may end where another object begins, which the compiler's pointer check
// refuses; here that end is only compared. The function is nosplit because appendSlow checks the
// stack itself.
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

func appendSlow[T any](list []T, h *arena_c.Scopes, gen uint64, xs *T, n int) []T {
	if gen >= stack.Key {
		panic(stack.Undeclared)
	}
	s := Scope{h, gen}
	longer, ok := appendTo(s, list, unsafe.Slice(xs, n))
	if !ok {
		panic(refusal(s))
	}
	return longer
}

// appendTo is Append, but returns false if s refuses.
func appendTo[T any](s Scope, list, xs []T) (longer []T, ok bool) {
	needed := len(list) + len(xs)
	// only a T of no bytes can have that many elements
	if needed < 0 {
		panic(stack.Misusef("a slice of %d and %d more elements", len(list), len(xs)))
	}
	if !s.open() {
		s.take(sizeOf[T](len(xs)), 1) // so that s remembers the refusal
		return nil, false
	}
	first, room := unsafe.SliceData(list), cap(list)
	if needed+room == 0 {
		return list, true
	}
	if at, size := s.h.Offset(unsafe.Pointer(first)), sizeOf[T](room); s.holds(at, size) {
		if needed > room {
			stack.MayGrow(s.h, s.gen, at, "Append inside a constructor to a list")
		}
		if needed > room && at+size == s.h.Cursor {
			p, ok := s.h.Grow(s.gen, at, min(sizeOf[T](needed-room), arena_c.OffsetMax))
			if !ok {
				return nil, false // a new place would need more
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

// holds reports whether the size bytes at an offset are in s itself. pre: s is the topmost scope.
func (s Scope) holds(at, size uint64) bool {
	start, end := s.h.Top().Mark, s.h.Cursor
	if s.h.Back != 0 {
		start = stack.TempStart(s.h)
	}
	return start <= at && at <= end && size <= end-at
}
