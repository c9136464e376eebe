package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// HeapMaker makes values of T, and slices of them, on a Heap or a Buddy, or by a Shared or a Proxy before one: things of
// different size that come and go. Declare it once, at package level, with HeapOf: the zero HeapMaker panics.
type HeapMaker[T any] struct {
	finalizer func(*T) error // nil: none
	plain     bool           // T was looked at
}

// HeapOf declares T for heaps, with the finalizer that Delete runs, or nil for none. A T that holds a Go pointer stops the
// program here, with the field named.
//
//	var (
//		frogs = arena.HeapOf[Frog](nil)
//		logs  = arena.HeapOf((*LogFile).close)
//	)
func HeapOf[T any](finalizer func(*T) error) HeapMaker[T] {
	if err := CheckPlain(reflect.TypeFor[T]()); err != nil {
		panic("arena: " + err.Error())
	}
	return HeapMaker[T]{finalizer, true}
}

// New gives a zeroed T, or nil when the heap is full. The finalizer must bear a zero T.
func (m HeapMaker[T]) New(h Reallocator) *T {
	m.declared()
	x := (*T)(h.Alloc(uint64(unsafe.Sizeof(*new(T))), arena_c.AlignOf[T]()))
	if x != nil {
		arena_c.Zero(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	return x
}

// Make gives a T that construct has made ready. When construct fails or panics, T is freed and not finalized. It gives
// nil, nil when the heap is full.
func (m HeapMaker[T]) Make(h Reallocator, construct func(*T) error) (x *T, err error) {
	if x = m.New(h); x == nil {
		return nil, nil
	}
	done := false
	defer func() {
		if !done {
			err = errors.Join(err, h.Free(unsafe.Pointer(x)))
			x = nil
		}
	}()
	err = construct(x)
	done = err == nil
	return x, err
}

// Delete finalizes x and frees it, whatever the finalizer says. Where x is no live block of T's size, it is refused, and
// the finalizer doesn't run.
func (m HeapMaker[T]) Delete(h Reallocator, x *T) (err error) {
	m.declared()
	if err := isBlock[T](h, unsafe.Pointer(x), 1, "Delete", "", ""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Free(unsafe.Pointer(x))) }()
	return m.finalize(unsafe.Slice(x, 1))
}

// Slice returns a slice of n zeroed T on h, or nil when h is full. Its cap is n, so that append can't run into what lies
// behind. Grow makes it longer, and DeleteSlice frees it. An empty slice is a block, too. A negative n is a caller's bug and
// panics.
//
// The slice lives as long as h does, or until Grow or DeleteSlice. A value in a block keeps it as a [Slice]:
//
//	chunk.Tiles = arena.SliceOf(base, tiles.Slice(h, n))
//
// Cost: that of Alloc, and the zeroing. One goroutine at a time uses h, unless it is a Shared.
func (m HeapMaker[T]) Slice(h Reallocator, n int) []T {
	m.declared()
	size := sizeOf[T]("Slice", 0, n)
	p := h.Alloc(size, arena_c.AlignOf[T]())
	if p == nil {
		return nil
	}
	arena_c.Zero(p, uintptr(size))
	return unsafe.Slice((*T)(p), n)
}

// Grow returns a slice of n elements, cap n: those of s, and zeroed ones behind them. It ends s, also where the slice stays
// in its place. When h is full it returns nil and no error, and s is as it was. A nil s is Slice.
//
// The block is that of all of s's cap. So a list may begin as Slice(h, 64)[:0], take values by the built-in append up to its
// cap, and Grow from there; Grow to len(s) gives the room back that was never used. An n below len(s) is a caller's bug and
// panics. A slice that Grow ended, that was freed, or that begins or ends elsewhere than its block is refused with an error.
// Two slices of one block aren't told apart while its size is the same, as a Buddy's block may be after Grow.
//
// Finalizers don't run: the values move. Cost: that of Realloc, and the zeroing.
func (m HeapMaker[T]) Grow(h Reallocator, s []T, n int) ([]T, error) {
	m.declared()
	size := sizeOf[T]("Grow", len(s), n)
	if s == nil {
		return m.Slice(h, n), nil
	}
	if err := isSlice(h, s, "Grow"); err != nil {
		return nil, err
	}
	p, err := h.Realloc(unsafe.Pointer(unsafe.SliceData(s)), size)
	if p == nil {
		return nil, err
	}
	used := uint64(len(s)) * uint64(unsafe.Sizeof(*new(T)))
	arena_c.Zero(unsafe.Add(p, used), uintptr(size-used))
	return unsafe.Slice((*T)(p), n), nil
}

// DeleteSlice finalizes the elements of s, the last one first, and frees its block, whatever the finalizers say. nil is
// nothing to free. A slice that Grow ended, that was freed, or that begins or ends elsewhere than its block is refused, and
// no finalizer runs. Cost: that of Free, and of the finalizers.
func (m HeapMaker[T]) DeleteSlice(h Reallocator, s []T) (err error) {
	m.declared()
	if s == nil {
		return nil
	}
	if err := isSlice(h, s, "DeleteSlice"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Free(unsafe.Pointer(unsafe.SliceData(s)))) }()
	return m.finalize(s)
}

// finalize runs the finalizer of each element, the last one first. One that panics, or ends the goroutine, doesn't keep
// the others from running.
func (m HeapMaker[T]) finalize(s []T) (err error) {
	if m.finalizer == nil {
		return nil
	}
	left := len(s)
	defer func() {
		if left > 0 {
			err = errors.Join(err, m.finalize(s[:left]))
		}
	}()
	for left > 0 {
		left--
		err = errors.Join(err, m.finalizer(&s[left]))
	}
	return err
}

// declared refuses the zero HeapMaker, which nobody asked whether its T holds Go pointers.
func (m HeapMaker[T]) declared() {
	if !m.plain {
		panic(fmt.Sprintf("arena: BUG: a HeapMaker of %v that was never declared: make it with arena.HeapOf", reflect.TypeFor[T]()))
	}
}

// sizeOf is the size of n T, at least `least` of them, or one that no block has when that would be more.
func sizeOf[T any](what string, least, n int) uint64 {
	if n < least {
		panic(fmt.Sprintf("arena: BUG: HeapMaker.%s of %v to %d elements: at least %d", what, reflect.TypeFor[[]T](), n, least))
	}
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(*new(T))))
	if over != 0 || size > arena_c.OffsetMax {
		return arena_c.OffsetMax
	}
	return size
}

// isBlock refuses what is no live block for n T. of and why are what the words say beside T.
func isBlock[T any](h Reallocator, p unsafe.Pointer, n int, what, of, why string) error {
	size, err := h.SizeOf(p)
	if err != nil {
		return fmt.Errorf("arena: HeapMaker.%s of a %s%v: %w", what, of, reflect.TypeFor[T](), err)
	}
	want := uint64(n) * uint64(unsafe.Sizeof(*new(T)))
	if b, ok := h.(rounds); ok {
		want = b.sizeFor(want, arena_c.AlignOf[T]())
	}
	if size != want {
		return fmt.Errorf("arena: BUG: HeapMaker.%s of a %s%v: its block has %d bytes, not %d%s", what, of, reflect.TypeFor[T](),
			size, want, why)
	}
	return nil
}

// isSlice refuses a slice that isn't all of a live block.
func isSlice[T any](h Reallocator, s []T, what string) error {
	return isBlock[T](h, unsafe.Pointer(unsafe.SliceData(s)), cap(s), what, "[]", ": it was cut, or Grow ended it")
}

// NewString copies a text to h and returns what a T holds in place of a string; base is that of the region or of the budget
// that h lies in. False means that h is full. DeleteString frees the text. An empty text takes no block. A base that h
// doesn't lie in is a caller's bug and panics. Cost: that of Alloc, and the copy.
func NewString[Text string | []byte](h Reallocator, base Base, text Text) (s String, ok bool) {
	if len(text) == 0 {
		return String{}, true
	}
	p := h.Alloc(uint64(len(text)), 1)
	if p == nil {
		return String{}, false
	}
	bytes := unsafe.Slice((*byte)(p), len(text))
	copy(bytes, text)
	return StringOf(base, bytes), true
}

// DeleteString frees a text that NewString made. An empty one is nothing to free. One that was freed, that NewString didn't
// make on h, or that doesn't lie in base is refused. Cost: that of Free.
func DeleteString(h Reallocator, base Base, s String) error {
	if s.Len() == 0 {
		return nil
	}
	bytes := s.bytes.Get(base)
	if bytes == nil {
		return fmt.Errorf("arena: BUG: DeleteString of %d bytes that don't lie in the base of %d bytes", s.bytes.count, base.size)
	}
	return octets.DeleteSlice(h, bytes)
}

var octets = HeapOf[byte](nil)
