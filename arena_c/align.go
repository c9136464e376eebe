package arena_c

// Each request's alignment is decided once: here for a type, in scope.Scope.AllocUnzeroed and
// package arena's mask for a number from Go, in upfront_is_align (base.h) for a number from C. A
// pool raises it to 8 (pool.h). The bump takes it as it is.

import (
	"reflect"
	"sync"
	"unsafe"
)

// narrow reports whether the compiler aligns 64-bit words to 4 bytes, as on 32-bit targets.
const narrow = unsafe.Alignof(uint64(0)) == 4

// AlignOf returns the alignment of a T in a block. On all targets it is the alignment of 64-bit
// targets. The compiler's own alignment would move fields after a 64-bit word on 32-bit targets. It
// would also break a promise of Go's allocator: that the first 64-bit word of an allocation is
// aligned for sync/atomic.
func AlignOf[T any]() uint64 {
	align := uint64(unsafe.Alignof(*new(T)))
	if narrow && align == 4 && unsafe.Sizeof(*new(T)) >= 8 {
		return alignOf(reflect.TypeFor[T]())
	}
	return align
}

var aligns sync.Map // by reflect.Type: a uint64

// alignOf inspects a type once; later calls cost a look-up.
func alignOf(t reflect.Type) uint64 {
	if known, ok := aligns.Load(t); ok {
		return known.(uint64)
	}
	align := uint64(4)
	if hasWord(t) {
		align = 8
	}
	aligns.Store(t, align)
	return align
}

// hasWord reports whether a T contains a 64-bit word.
func hasWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int64, reflect.Uint64, reflect.Float64, reflect.Complex128:
		return true
	case reflect.Array:
		return hasWord(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasWord(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
