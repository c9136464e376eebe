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
)

// noCopy has go vet refuse copies: one would know a scope that the other doesn't.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// life says whether a scope is alive: open, be it covered or frozen, or while its finalizers run. What a container
// keeps of a scope is another's afterwards.
type life struct {
	record *arena_c.Record
	gen    uint64
	scope  scope.Scope
}

// lifeOf is the life of s, which is open.
func lifeOf(s scope.Scope) life {
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	return life{h.Record(h.Find(gen)), gen, s} // one word more, and alive copies it
}

func (l life) alive() bool { return l.record.Gen == l.gen }

// What a container knows where it isn't a scope that ends it: its heap lies in no budget, or it was freed.
var outside, freed = &arena_c.Record{Gen: 1}, &arena_c.Record{}

// takeOn takes the zeroed bytes of a container on a heap, nil when that is full: and what is to be known of them.
func takeOn(a arena.Reallocator, size uint64) (bytes []byte, l life, inState kept) {
	p := a.Alloc(size, wordSize)
	if p == nil {
		return nil, life{}, false
	}
	arena_c.Zero(p, uintptr(size))
	s, state, ok := scope.Holding(p)
	l = life{record: outside, gen: 1}
	if ok {
		l = lifeOf(s)
	}
	return unsafe.Slice((*byte)(p), size), l, kept(state)
}

// end ends a container on a heap, whose bytes begin at p.
func (l *life) end(kind string, on arena.Reallocator, p unsafe.Pointer) error {
	switch {
	case !l.began().alive():
		return closed{*l, "Free of a " + kind}
	case on == nil:
		return &scope.Misuse{Text: "Free of a " + kind + " that was made in a scope, which ends it: NewListOn and its like make one on a heap"}
	}
	*l = life{record: freed, gen: 1}
	return on.Free(p)
}

// began is l of a container that was made; it is for all but what must be inlined.
func (l life) began() life {
	if l.record == nil {
		panic(zero)
	}
	return l
}

var zero = &scope.Misuse{Text: "a zero container: NewList, NewDeque, NewMap and NewStringMap make one in a scope"}

// closed is what a container panics with when something is put into it and its scope is closed.
// What there is to say it works out when it is asked: a call here, and Push would not be inlined.
type closed struct {
	life life
	what string
}

// Error is what was to be done, and what the scope says.
func (c closed) Error() string { return c.what + ": " + c.Unwrap().Error() }

// Unwrap is a *scope.Misuse, so that errors.Is finds scope.ErrClosed.
func (c closed) Unwrap() error { return scope.WasClosed(c.life.scope) }

// kept says whether a container lies in a state of package save, whose bytes are the same in every
// build.
type kept bool

func keptIn(s scope.Scope) kept { return scope.Watching(s) != nil }

// gone is called with values that were taken away. In a state they become zeros, in every build.
// Elsewhere the race detector is told: it reports a goroutine that still reads one.
func gone[T any](inState kept, values []T) {
	if inState {
		clear(values)
		return
	}
	arena_c.Dead(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(*new(T)))
}

// wordSize is what the parts of a container are aligned to.
const wordSize = 8

// check refuses what is wrong before a scope is asked: unit is what n counts.
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

// take takes the bytes of a container C, all at once: so a full says what all of it needs.
func take[C any](s scope.Scope, size uint64) []byte {
	bytes := octets.SliceAligned(s, int(min(size, math.MaxInt)), wordSize)
	if arena_c.Checked && len(bytes) != 0 {
		arena_c.NoteType(unsafe.Pointer(unsafe.SliceData(bytes)), reflect.TypeFor[C]().String())
	}
	return bytes
}

// cut cuts n values off the bytes of a container, up to the next multiple of 8. The bytes are those
// in the scope, or an image of them.
func cut[T any](rest *[]byte, n int) []T {
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*rest))), n)
	*rest = (*rest)[min(words[T](n), uint64(len(*rest))):]
	return values
}

// sizeOf is the size of n values, or one that no scope has when that would be more.
func sizeOf[T any](n int) uint64 {
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(*new(T))))
	if over != 0 {
		return math.MaxInt
	}
	return min(size, math.MaxInt)
}

// words is sizeOf, up to the next multiple of 8.
func words[T any](n int) uint64 { return (sizeOf[T](n) + wordSize - 1) &^ (wordSize - 1) }

// View shows the bytes of a snapshot: a View of package save does.
type View interface {
	// Snapshot gives what the snapshot has in the place of bytes of the state.
	Snapshot(state []byte) []byte
}

// imageOf is the snapshot's of a container whose first word is given, of so many bytes.
func imageOf[T any](v View, first *T, size uint64) []byte {
	return v.Snapshot(unsafe.Slice((*byte)(unsafe.Pointer(first)), size))
}

// note tells a state of a container of type C in its bytes: how to look at an image of them, and
// which values lie there. s is that of the state.
func note[C any](s scope.Scope, bytes []byte, look func(image []byte) error, values ...scope.TenantValues) {
	t := scope.Tenant{Name: reflect.TypeFor[C]().String(), Check: look, Values: values}
	scope.Watching(s).NoteTenant(bytes, t)
}

// valuesAt are the values, which lie in a container's bytes.
func valuesAt[T any](what string, bytes []byte, values []T) scope.TenantValues {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(values))) - uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	return scope.TenantValues{What: what, Offset: uint64(at), Count: uint64(len(values)), Type: reflect.TypeFor[T]()}
}
