package container

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/stack"
)

// life is the lifetime of a container, whose bytes may also be on a heap.
type life struct{ lifetime.Life }

func lifeOf(s scope.Scope) life { return life{lifetime.Of(s)} }

// The records of containers that no scope ends: on a heap outside a budget, or freed.
var outside, freed = &arena_c.Record{Gen: 1}, &arena_c.Record{}

// takeOn allocates the zeroed bytes of a container on a heap, or returns nil if the heap is full.
// It also returns their lifetime, and whether they are in a state.
func takeOn(a arena.Reallocator, size uint64) (bytes []byte, l life, inState kept) {
	p := a.Alloc(size, wordSize)
	if p == nil {
		return nil, life{}, false
	}
	arena_c.Zero(p, uintptr(size))
	h, gen, state := stack.Holding(p)
	l = life{lifetime.Life{Record: outside, Gen: 1}}
	if h != nil {
		l = lifeOf(scope.At(h, gen))
	}
	return unsafe.Slice((*byte)(p), size), l, kept(state)
}

// end frees the bytes of a container on a heap, which begin at p. It returns an error for a
// container that has ended or isn't on a heap.
func (l *life) end(kind string, on arena.Reallocator, p unsafe.Pointer) error {
	switch {
	case !l.began().Alive():
		return lifetime.Closed{Life: l.Life, What: "Free of a " + kind}
	case on == nil:
		return &scope.Misuse{Text: "Free of a " + kind +
			": its scope frees it; NewListOn and the like make one on a heap, for Free"}
	}
	*l = life{lifetime.Life{Record: freed, Gen: 1}}
	return on.Free(p)
}

// began returns l, and panics for a zero container. Methods that must be inlined don't call it.
func (l life) began() life {
	if l.Record == nil {
		panic(zero)
	}
	return l
}

var zero = &scope.Misuse{Text: "a zero container: NewList, NewDeque, NewMap and NewStringMap make one in a scope"}

// kept is true for a container in a state of package save, whose bytes are the same in every build.
type kept bool

func keptIn(s scope.Scope) kept { return lifetime.Watching(s) != nil }

// gone ends removed values. In a state they become zeros in every build. Elsewhere they are marked
// for the race detector, which reports a goroutine that still reads one.
func gone[T any](inState kept, values []T) {
	if inState {
		clear(values)
		return
	}
	arena_c.Dead(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(*new(T)))
}

const wordSize = 8

// check panics for bad arguments before the scope allocates; n counts units.
func check(kind string, n, most int, unit string, declared bool) {
	if !declared {
		panic(&scope.Misuse{Text: "a Maker that was never declared: make it with scope.Plain or scope.Object"})
	}
	if n < 0 || n > most {
		panic(&scope.Misuse{Text: fmt.Sprintf("a %s of %d %s: at most %d", kind, n, unit, most)})
	}
}

func declared[T any](m scope.Maker[T]) bool { return m != scope.Maker[T]{} }

var octets = scope.Plain[byte]()

// take allocates all bytes of a container C at once, so that a full error names their whole size.
func take[C any](s scope.Scope, size uint64) []byte {
	bytes := octets.SliceAligned(s, int(min(size, math.MaxInt)), wordSize)
	if arena_c.Checked && len(bytes) != 0 {
		arena_c.NoteType(unsafe.Pointer(unsafe.SliceData(bytes)), reflect.TypeFor[C]().String())
	}
	return bytes
}

// cut returns the first n values of rest, and removes them from rest, rounded up to a multiple of
// 8. The bytes are a container's or an image's.
func cut[T any](rest *[]byte, n int) []T {
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*rest))), n)
	*rest = (*rest)[min(words[T](n), uint64(len(*rest))):]
	return values
}

// sizeOf returns the size of n values in bytes, or math.MaxInt, which fits in no scope, if that is
// less.
func sizeOf[T any](n int) uint64 {
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(*new(T))))
	if over != 0 {
		return math.MaxInt
	}
	return min(size, math.MaxInt)
}

func words[T any](n int) uint64 { return (sizeOf[T](n) + wordSize - 1) &^ (wordSize - 1) }

// View reads the bytes of a snapshot. Package save implements View.
type View interface {
	// Snapshot returns the snapshot's bytes at the place of state, a range of the live state's
	// bytes.
	Snapshot(state []byte) []byte
}

// imageOf returns the snapshot's bytes of a container of size bytes that begins at first.
func imageOf[T any](v View, first *T, size uint64) []byte {
	return v.Snapshot(unsafe.Slice((*byte)(unsafe.Pointer(first)), size))
}

// note registers a container of type C with the state of s: its bytes, the check of an image, the
// conversion of older ones, and the places of its values.
func note[C any](s scope.Scope, bytes []byte, look func(image []byte) error,
	convert func(image, old []byte, count, size uint64) (place, func() error, error), values ...stack.TenantValues) {
	t := stack.Tenant{Name: reflect.TypeFor[C]().String(), Check: look, Convert: convert, Values: values}
	lifetime.Watching(s).NoteTenant(bytes, t)
}

func valuesAt[T any](what string, bytes []byte, values []T) stack.TenantValues {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(values))) - uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	return stack.TenantValues{What: what, Offset: uint64(at), Count: uint64(len(values)), Type: reflect.TypeFor[T]()}
}
