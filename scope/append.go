package scope

import (
	"fmt"
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
// allocation, no call into C (in temporaries a new piece is one).
func (m Maker[T]) Append(s Scope, list []T, xs ...T) []T {
	return appended(s, m.ask, list, unsafe.SliceData(xs), len(xs)) // their capacity would be a word more than there are registers
}

func appended[T any](s Scope, ask uint64, list []T, xs *T, n int) []T {
	slot, first := s.slot, unsafe.SliceData(list)
	size, at := uint64(unsafe.Sizeof(*xs)), slot.Offset(unsafe.Pointer(first))
	end := at + size*uint64(len(list))
	if n == 1 && size != 0 && end == slot.Cursor && at >= slot.Start && !arena_c.Checked { // there it is one request
		if p, ok := slot.Grow(s.tag+ask, size); ok {
			*(*T)(p) = *xs
			return unsafe.Slice(first, len(list)+1)
		}
	}
	return appendSlow(s, ask, list, unsafe.Slice(xs, n))
}

func appendSlow[T any](s Scope, ask uint64, list, xs []T) []T {
	Maker[T]{ask}.declared()
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
		panic(&Misuse{fmt.Sprintf("a slice of %d and %d more elements", len(list), len(xs)), false})
	}
	if !s.allocates(sizeOf[T](len(xs))) {
		return nil, false
	}
	first, room := unsafe.SliceData(list), cap(list)
	if needed+room == 0 {
		return list, true
	}
	if at, size := s.slot.Offset(unsafe.Pointer(first)), sizeOf[T](room); s.holds(at, size) {
		if making := s.stack().notes[s.slot.Index()].making; needed > room && at < making.start && !s.isTemp() {
			panic(&Misuse{"Append inside a constructor to a list that is older: what it takes goes back if the constructor fails; " +
				"append before, or Clone the list inside", false})
		}
		if needed > room && at+size == s.slot.Cursor {
			more, before := sizeOf[T](needed-room), s.slot.Refused
			if _, ok := s.slot.Grow(s.generation()+more, more); ok {
				room = needed
			} else if !s.growsNow() {
				return nil, false // a new place would take more
			}
			s.slot.Refused = before
		}
		if needed <= room {
			longer = unsafe.Slice(first, room)[:needed]
			copy(longer[len(list):], xs)
			return longer, true
		}
	}
	return move(s, list, xs, max(2*len(list), needed))
}

// move copies list and xs to a new place.
func move[T any](s Scope, list, xs []T, capacity int) (longer []T, ok bool) {
	size, used := sizeOf[T](capacity), sizeOf[T](len(list)+len(xs))
	p := s.take(size, arena_c.AlignOf[T]())
	if p == nil {
		return nil, false
	}
	longer = unsafe.Slice((*T)(p), capacity)[:len(list)+len(xs)]
	copy(longer, list)
	copy(longer[len(list):], xs)
	if used < size {
		arena_c.Zero(unsafe.Add(p, used), uintptr(size-used))
	}
	return longer, true
}

// holds says whether size bytes at an offset lie in s: not in an enclosing scope, even where that ends and s begins.
func (s Scope) holds(at, size uint64) bool {
	start, end := s.slot.Start, s.slot.Cursor
	if s.isTemp() {
		row := s.slot.Row()
		start = row.Edge
		if newest := s.slot.FarAt(); at >= newest { // in an older piece
			start, end = max(start, newest), row.End
		}
	}
	return at >= start && at <= end && size <= end-at
}

// allocates says whether s can give anything, and when it can't, remembers size as refused.
func (s Scope) allocates(size uint64) bool {
	if s.usable() {
		return true
	}
	s.take(size, 1)
	return false
}
