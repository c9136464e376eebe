package arena

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Base is the block that offsets count from: a region, a whole budget, or bytes read from a file.
// It is a small value.
type Base struct {
	start unsafe.Pointer
	size  uint64
}

// BaseOf returns the base of a block. The block must not move while pointers from the base are in
// use.
func BaseOf(block []byte) Base {
	return Base{unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block))}
}

// BaseAt returns the base of size bytes at start.
func BaseAt(start unsafe.Pointer, size uint64) Base { return Base{start, size} }

// Bytes returns the block, for example to write it to a save game. In checked and asan builds Bytes
// first copies the objects into the block from their real addresses.
func (b Base) Bytes() []byte {
	arena_c.Gather(b.start, b.size)
	return unsafe.Slice((*byte)(b.start), b.size)
}

// offset returns p's offset plus 1, so that 0 is nil. It panics if size bytes at p aren't all in
// the base.
func (b Base) offset(p unsafe.Pointer, size uint64, what string) uint64 {
	offset := arena_c.Place(p, b.start)
	if offset > b.size || size > b.size-offset {
		panic(fmt.Sprintf("arena: BUG: the target of a %s is outside its base of %d bytes: copy it there first", what,
			b.size))
	}
	return offset + 1
}

// empty is offset for an empty slice at p, and returns 0 if p is outside the base.
func (b Base) empty(p unsafe.Pointer) uint64 {
	if offset := arena_c.Place(p, b.start); offset <= b.size {
		return offset + 1
	}
	return 0
}

// Ptr is a pointer that may be stored in a block: an offset from a Base. The zero Ptr is nil. A Ptr
// has 8 bytes.
type Ptr[T any] struct {
	_      [0]*T // forbids conversion to another Ptr, and shows T to code that describes types
	stored uint64
}

// PtrTo returns a Ptr to p, or the nil Ptr if p is nil. It panics if the T isn't all in the base.
func PtrTo[T any](b Base, p *T) Ptr[T] {
	if p == nil {
		return Ptr[T]{}
	}
	return Ptr[T]{stored: b.offset(unsafe.Pointer(p), uint64(unsafe.Sizeof(*p)), "Ptr")}
}

// Get returns the pointer. It returns nil for a nil Ptr, and for an offset that is outside the base
// or misaligned for a T. Cost: three comparisons, inlined.
func (p Ptr[T]) Get(b Base) (x *T) {
	at := p.stored - 1 // a nil wraps to beyond every size
	if at <= b.size && uint64(unsafe.Sizeof(*x)) <= b.size-at {
		if place := unsafe.Add(b.start, at); uintptr(place)%unsafe.Alignof(*x) == 0 {
			x = (*T)(arena_c.Position(place))
		}
	}
	return
}

// IsNil reports whether p is the zero Ptr.
func (p Ptr[T]) IsNil() bool { return p.stored == 0 }

// Slice is a slice that may be stored in a block: an offset and a count of elements. The zero Slice
// is nil. A Slice has 16 bytes.
type Slice[T any] struct {
	_             [0]*T // see Ptr
	stored, count uint64
}

// SliceOf returns a Slice of s, without s's cap. It panics if an element is outside the base. An
// empty s in the base keeps its address, because it may have a block to free. An empty s elsewhere
// becomes the nil Slice.
func SliceOf[T any](b Base, s []T) Slice[T] {
	if len(s) == 0 {
		return Slice[T]{stored: b.empty(unsafe.Pointer(unsafe.SliceData(s)))}
	}
	var zero T
	size := uint64(len(s)) * uint64(unsafe.Sizeof(zero))
	return Slice[T]{stored: b.offset(unsafe.Pointer(unsafe.SliceData(s)), size, "Slice"), count: uint64(len(s))}
}

// Get returns the slice, with cap == len. It returns nil for a nil Slice, and for a Slice that is
// outside the base or misaligned for a T. Cost: three comparisons, inlined.
func (s Slice[T]) Get(b Base) (list []T) {
	at := s.stored - 1 // a nil wraps to beyond every size
	if at <= b.size && s.count <= roomFor[T](b.size-at) {
		if place := unsafe.Add(b.start, at); uintptr(place)%unsafe.Alignof(*new(T)) == 0 {
			list = unsafe.Slice((*T)(arena_c.Position(place)), s.count)
		}
	}
	return
}

func roomFor[T any](bytes uint64) uint64 {
	if unsafe.Sizeof(*new(T)) == 0 {
		return min(1<<38, math.MaxInt)
	}
	return bytes / uint64(unsafe.Sizeof(*new(T)))
}

// Len returns the number of elements.
func (s Slice[T]) Len() int { return int(s.count) }

// String is a string that may be stored in a block: an offset and a length in bytes. A String has
// 16 bytes.
type String struct{ bytes Slice[byte] }

// StringOf returns a String of bytes. It panics if the bytes are outside the base, so first copy a
// Go string into the base.
func StringOf(b Base, bytes []byte) String {
	if len(bytes) == 0 {
		return String{SliceOf(b, bytes)}
	}
	stored := b.offset(unsafe.Pointer(unsafe.SliceData(bytes)), uint64(len(bytes)), "String")
	return String{Slice[byte]{stored: stored, count: uint64(len(bytes))}}
}

// Get returns the string, a view that lives as long as the text in the block. In a map, an error or
// a log record keep a copy from strings.Clone instead of the view.
func (s String) Get(b Base) string {
	bytes := s.bytes.Get(b)
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// Len returns the length in bytes.
func (s String) Len() int { return s.bytes.Len() }
