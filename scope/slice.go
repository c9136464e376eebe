package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Slice returns n zeroed T; cap is len, so that append can't overwrite the next object. A full
// scope unwinds, a negative n panics.
func (m Maker[T]) Slice(s Scope, n int) []T {
	m.declared()
	return makeSlice[T](s, n, true)
}

// TrySlice is Slice, but returns nil where Slice unwinds. [Scope.Err] then returns the reason. A
// slice of 0 elements isn't nil.
func (m Maker[T]) TrySlice(s Scope, n int) []T {
	m.declared()
	return makeSlice[T](s, n, false)
}

// SliceCap returns a slice of n zeroed T with the given capacity. The elements up to the capacity
// are zeroed as well. Within the capacity the built-in append stays in s. Beyond the capacity the
// built-in append moves the slice to the Go heap, and [Maker.Append] keeps it in s. A full scope
// unwinds. SliceCap panics if n is negative or larger than the capacity.
func (m Maker[T]) SliceCap(s Scope, n, capacity int) []T {
	m.declared()
	if n < 0 || n > capacity {
		panic(stack.Misusef("a slice of %d elements with room for %d", n, capacity))
	}
	return makeSlice[T](s, capacity, true)[:n]
}

// SliceAligned is Slice, but aligns the first element to align bytes, or to the alignment of T if
// that is larger. SliceAligned panics if align isn't a power of two up to 1 MiB.
func (m Maker[T]) SliceAligned(s Scope, n int, align uint64) []T {
	m.declared()
	checkAlign(align)
	return makeAligned[T](s, n, max(align, arena_c.AlignOf[T]()), true)
}

// Clone returns a copy of list in s; cap is len. Clone of nil returns nil. A full scope unwinds.
func (m Maker[T]) Clone(s Scope, list []T) []T {
	m.declared()
	if list == nil && s.open() {
		return nil
	}
	return clone(s, list)
}

func makeSlice[T any](s Scope, n int, unwind bool) []T {
	return makeAligned[T](s, n, arena_c.AlignOf[T](), unwind)
}

func makeAligned[T any](s Scope, n int, align uint64, unwind bool) []T {
	if n < 0 {
		panic(stack.Misusef("a slice of %d elements", n))
	}
	size := sizeOf[T](n)
	p := s.take(size, align)
	if p == nil {
		if unwind {
			panic(refusal(s))
		}
		return nil
	}
	arena_c.Zero(p, uintptr(size))
	return notedSlice(s, unsafe.Slice((*T)(p), n))
}

func clone[T any](s Scope, list []T) []T {
	made, ok := move(s, list, nil, len(list))
	if !ok {
		panic(refusal(s))
	}
	return made
}

// Bytes returns n zeroed bytes; cap is len. A full scope unwinds, a negative n panics. Cost: a bump
// and the zeroing; no Go allocation, no call into C.
func (s Scope) Bytes(n int) []byte {
	if h := s.h; h != nil && h.Gen == s.gen && uint64(n) <= h.Limit-h.Cursor && !arena_c.Crossing {
		p := unsafe.Add(unsafe.Pointer(h), h.Cursor)
		h.Cursor += uint64(n)
		arena_c.Zero(p, uintptr(n))
		return slice[byte](p, n)
	}
	return makeSlice[byte](s, n, true)
}

func move[T any](s Scope, list, xs []T, capacity int) (longer []T, ok bool) {
	size, used := sizeOf[T](capacity), sizeOf[T](len(list)+len(xs))
	p := s.take(size, arena_c.AlignOf[T]())
	if p == nil {
		return nil, false
	}
	longer = notedSlice(s, unsafe.Slice((*T)(p), capacity))[:len(list)+len(xs)]
	copy(longer, list)
	copy(longer[len(list):], xs)
	if used < size {
		arena_c.Zero(unsafe.Add(p, used), uintptr(size-used))
	}
	return longer, true
}

// slice is unsafe.Slice without its check of the address space, which takes as long as the rest of
// the fast path.
func slice[T any](first unsafe.Pointer, n int) []T {
	header := struct {
		first  unsafe.Pointer
		len, c int
	}{first, n, n}
	return *(*[]T)(unsafe.Pointer(&header))
}
