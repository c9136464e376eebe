package scope

import (
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Checked builds note each allocation, with its type. In other builds these functions are empty.

func noted[T any](s Scope, x *T) *T {
	if arena_c.Checked && x != nil {
		stack.NoteValues(s.h, s.gen, unsafe.Pointer(x), uint64(unsafe.Sizeof(*x)), reflect.TypeFor[T]())
	}
	return x
}

func notedBytes(s Scope, p unsafe.Pointer, size uint64) unsafe.Pointer {
	if arena_c.Checked && p != nil {
		stack.NoteValues(s.h, s.gen, p, size, reflect.TypeFor[byte]())
	}
	return p
}

func notedSlice[T any](s Scope, list []T) []T {
	if arena_c.Checked {
		p := unsafe.Pointer(unsafe.SliceData(list))
		stack.NoteValues(s.h, s.gen, p, sizeOf[T](len(list)), reflect.TypeFor[T]())
	}
	return list
}

// notedMore notes that a list at first has grown: from a capacity of from elements to one of to.
func notedMore[T any](s Scope, first *T, from, to int) {
	if arena_c.Checked {
		stack.NoteMore(s.h, s.gen, unsafe.Pointer(first), sizeOf[T](from), sizeOf[T](to), reflect.TypeFor[T]())
	}
}
