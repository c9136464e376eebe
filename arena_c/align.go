package arena_c

// Alignment is decided where something is asked for: here for a type, in scope.Scope.AllocUnzeroed and package arena's mask for a number from
// Go, in upfront_is_align (base.h) for one from C; a pool makes it 8 at least (pool.h). The bump takes it as it is.

import (
	"reflect"
	"sync"
	"unsafe"
)

// narrow says whether the compiler aligns 64-bit words to 4 bytes: it does on 32-bit targets.
const narrow = unsafe.Alignof(uint64(0)) == 4

// AlignOf is the alignment of a T in a block: on every target what it is on 64-bit ones. The compiler's own would put what
// holds a 64-bit word elsewhere on 32-bit targets than on others, and break a promise that Go's allocator makes there: that
// the first 64-bit word of what it gives is good for sync/atomic.
func AlignOf[T any]() uint64 {
	align := uint64(unsafe.Alignof(*new(T)))
	if narrow && align == 4 && unsafe.Sizeof(*new(T)) >= 8 {
		return alignOf(reflect.TypeFor[T]())
	}
	return align
}

var aligns sync.Map // by reflect.Type: an uint64

// alignOf looks at a type once; from then on it costs a look-up.
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

// hasWord says whether there is a 64-bit word in a T.
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
