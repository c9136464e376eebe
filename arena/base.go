package arena

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Base is a block that offsets count from: a region, a whole budget, or bytes that were read from a file. Size is bytes.
type Base struct {
	start unsafe.Pointer
	size  uint64
}

// BaseOf makes a base of a block, which must stay where it is while pointers from the base are in use.
func BaseOf(block []byte) Base {
	return Base{unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block))}
}

// BaseAt makes a base of size bytes at start.
func BaseAt(start unsafe.Pointer, size uint64) Base { return Base{start, size} }

// Bytes is the block: what a save game writes. In checked and asan builds what lives in a budget is copied there; it doesn't
// lie there.
func (b Base) Bytes() []byte {
	arena_c.Gather(b.start, b.size)
	return unsafe.Slice((*byte)(b.start), b.size)
}

// offset is where p lies, plus 1, so that 0 is nil. Outside the base is a caller's bug.
func (b Base) offset(p unsafe.Pointer, size uint64, what string) uint64 {
	offset := arena_c.Place(p, b.start)
	if offset > b.size || size > b.size-offset {
		panic(fmt.Sprintf("arena: BUG: %s to something outside its base of %d bytes: copy it there first", what, b.size))
	}
	return offset + 1
}

// empty is the offset of no bytes at p, plus 1; 0 where p lies outside, as no bytes may.
func (b Base) empty(p unsafe.Pointer) uint64 {
	if offset := arena_c.Place(p, b.start); offset <= b.size {
		return offset + 1
	}
	return 0
}

// Ptr is a pointer that may live in a block: an offset from a Base, never an address. The zero Ptr is nil. 8 bytes.
type Ptr[T any] struct {
	_      [0]*T // so that no conversion makes one of another's, and who describes a type sees T
	stored uint64
}

// PtrTo makes a Ptr of a pointer into the base; nil gives nil. A pointer elsewhere is a caller's bug and panics.
func PtrTo[T any](b Base, p *T) Ptr[T] {
	if p == nil {
		return Ptr[T]{}
	}
	return Ptr[T]{stored: b.offset(unsafe.Pointer(p), uint64(unsafe.Sizeof(*p)), "Ptr")}
}

// Get is the pointer; nil for nil, and for an offset that the base can't have. Cost: three comparisons, inlined.
func (p Ptr[T]) Get(b Base) (x *T) {
	at := p.stored - 1 // of nil beyond every size
	if at <= b.size && uint64(unsafe.Sizeof(*x)) <= b.size-at {
		if place := unsafe.Add(b.start, at); uintptr(place)%unsafe.Alignof(*x) == 0 {
			x = (*T)(arena_c.Position(place))
		}
	}
	return
}

// IsNil says whether it is the zero Ptr.
func (p Ptr[T]) IsNil() bool { return p.stored == 0 }

// Slice is a slice that may live in a block: an offset and a count of elements. The zero Slice is nil. 16 bytes.
type Slice[T any] struct {
	_             [0]*T // as in a Ptr
	stored, count uint64
}

// SliceOf makes a Slice of a slice into the base; cap is forgotten. A slice elsewhere is a caller's bug and panics. An
// empty one keeps its address, since a block may lie behind it that is to be freed; elsewhere it gives nil.
func SliceOf[T any](b Base, s []T) Slice[T] {
	if len(s) == 0 {
		return Slice[T]{stored: b.empty(unsafe.Pointer(unsafe.SliceData(s)))}
	}
	var zero T
	size := uint64(len(s)) * uint64(unsafe.Sizeof(zero))
	return Slice[T]{stored: b.offset(unsafe.Pointer(unsafe.SliceData(s)), size, "Slice"), count: uint64(len(s))}
}

// Get is the slice, with cap == len; nil for nil, and for what the base can't have. Cost: three comparisons, inlined.
func (s Slice[T]) Get(b Base) (list []T) {
	at := s.stored - 1 // of nil beyond every size
	if at <= b.size && s.count <= roomFor[T](b.size-at) {
		if place := unsafe.Add(b.start, at); uintptr(place)%unsafe.Alignof(*new(T)) == 0 {
			list = unsafe.Slice((*T)(arena_c.Position(place)), s.count)
		}
	}
	return
}

// roomFor is how many T have room in so many bytes.
func roomFor[T any](bytes uint64) uint64 {
	if unsafe.Sizeof(*new(T)) == 0 {
		return min(1<<38, math.MaxInt)
	}
	return bytes / uint64(unsafe.Sizeof(*new(T)))
}

// Len is the number of elements.
func (s Slice[T]) Len() int { return int(s.count) }

// String is a string that may live in a block: an offset and a length in bytes.
type String struct{ bytes Slice[byte] }

// StringOf makes a String of bytes in the base: copy a Go string there first.
func StringOf(b Base, bytes []byte) String {
	if len(bytes) == 0 {
		return String{SliceOf(b, bytes)}
	}
	stored := b.offset(unsafe.Pointer(unsafe.SliceData(bytes)), uint64(len(bytes)), "String")
	return String{Slice[byte]{stored: stored, count: uint64(len(bytes))}}
}

// Get is the string. It is a view of the block, not a copy: it dies with the scope of its bytes, so don't keep it in a
// map, an error or a log record; strings.Clone gives one to keep.
func (s String) Get(b Base) string {
	bytes := s.bytes.Get(b)
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// Len is the length in bytes.
func (s String) Len() int { return s.bytes.Len() }
