package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// HeapMaker makes values of T, and slices of them, on a Heap or a Buddy, or through a Shared or a
// Proxy in front of one. Declare it once, at package level, with HeapOf: the zero HeapMaker panics.
type HeapMaker[T any] struct {
	finalizer func(*T) error // nil: none
	plain     bool           // T was checked for Go pointers
}

// HeapOf declares T for heaps. Delete and DeleteSlice call the finalizer, unless it is nil. If T
// holds a Go pointer, HeapOf panics and names the field.
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

// New returns a zeroed T, or nil when the heap is full. The finalizer must accept a zero T.
func (m HeapMaker[T]) New(h Reallocator) *T {
	m.declared()
	x := (*T)(h.Alloc(uint64(unsafe.Sizeof(*new(T))), arena_c.AlignOf[T]()))
	if x != nil {
		arena_c.Zero(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	return x
}

// Make returns a T that construct has initialized, or nil and no error when the heap is full. If
// construct fails or panics, Make frees T without finalizing it.
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

// Delete finalizes x and frees it, even if the finalizer fails. If x isn't a live block of T's
// size, Delete returns an error and doesn't run the finalizer.
func (m HeapMaker[T]) Delete(h Reallocator, x *T) (err error) {
	m.declared()
	if freed, err := m.release(h, unsafe.Pointer(x), 1); freed {
		return err
	}
	if err := isBlock[T](h, unsafe.Pointer(x), 1, "Delete", "", ""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Free(unsafe.Pointer(x))) }()
	return m.finalize(unsafe.Slice(x, 1))
}

// Slice returns a slice of n zeroed T on h, or nil when h is full. The slice's cap is n, so that
// append can't write past it. Grow makes the slice longer, and DeleteSlice frees it. An empty slice
// also has a block. Slice panics if n is negative.
//
// The slice lives until Grow, DeleteSlice, or a Reset or the end of h. A value in a block stores
// the slice as a [Slice]:
//
//	chunk.Tiles = arena.SliceOf(base, tiles.Slice(h, n))
//
// Cost: an Alloc, and the zeroing. One goroutine at a time uses h, unless it is a Shared.
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

// Grow returns a slice of len n and cap n: the elements of s, followed by zeroed elements. s itself
// ends, even if the elements stay in place. When h is full, Grow returns nil and no error, and s is
// unchanged. For a nil s, Grow is Slice.
//
// Grow resizes the slice's block, which s's cap fills. So a list may begin as Slice(h, 64)[:0],
// append up to its cap, and Grow from there. Grow to len(s) frees the unused capacity. Grow panics
// if n is below len(s). It returns an error if s was freed, was ended by Grow, or begins or ends
// elsewhere than its block, whose size a Buddy rounds up. It can't detect this if a live block of
// the same size is at the slice's address.
//
// Finalizers don't run, because the values only move. Cost: a Realloc, and the zeroing.
func (m HeapMaker[T]) Grow(h Reallocator, s []T, n int) ([]T, error) {
	m.declared()
	size := sizeOf[T]("Grow", len(s), n)
	if s == nil {
		return m.Slice(h, n), nil
	}
	p, err := resize[T](h, s, size)
	if p == nil {
		return nil, err
	}
	used := uint64(len(s)) * uint64(unsafe.Sizeof(*new(T)))
	arena_c.Zero(unsafe.Add(p, used), uintptr(size-used))
	return unsafe.Slice((*T)(p), n), nil
}

// DeleteSlice finalizes the elements of s, the last one first, and frees its block, even if
// finalizers fail. For a nil s it does nothing. DeleteSlice returns an error, and runs no
// finalizer, for a slice for which Grow returns an error. Cost: a Free, and the finalizers.
func (m HeapMaker[T]) DeleteSlice(h Reallocator, s []T) (err error) {
	m.declared()
	if s == nil {
		return nil
	}
	if freed, err := m.release(h, unsafe.Pointer(unsafe.SliceData(s)), cap(s)); freed {
		return err
	}
	if err := isSlice(h, s, "DeleteSlice"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Free(unsafe.Pointer(unsafe.SliceData(s)))) }()
	return m.finalize(s)
}

// sized is a Reallocator that checks the size of a block and frees or resizes it in one call of C.
type sized interface {
	// freeSized reports false, and frees nothing, if p isn't a live block of that size.
	freeSized(p unsafe.Pointer, size uint64) (freed bool, err error)
	// reallocSized returns nil if it's full, or p isn't a live block of the size `had`.
	reallocSized(p unsafe.Pointer, had, size uint64) (unsafe.Pointer, error)
}

var _, _, _ sized = Heap{}, Buddy{}, Shared{}

// release frees a block for n T at once if no finalizer runs first. It reports false if it didn't.
func (m HeapMaker[T]) release(h Reallocator, p unsafe.Pointer, n int) (freed bool, err error) {
	if s, ok := h.(sized); ok && m.finalizer == nil {
		return s.freeSized(p, sizeFor[T](h, n))
	}
	return false, nil
}

// resize is Realloc of all of s. It returns an error if s isn't all of a live block.
func resize[T any](h Reallocator, s []T, size uint64) (unsafe.Pointer, error) {
	p := unsafe.Pointer(unsafe.SliceData(s))
	of, ok := h.(sized)
	if ok {
		q, err := of.reallocSized(p, sizeFor[T](h, cap(s)), size)
		if q != nil || err != nil {
			return q, err
		}
	}
	if err := isSlice(h, s, "Grow"); ok || err != nil {
		return nil, err
	}
	return h.Realloc(p, size)
}

// finalize runs the finalizer of each element, the last one first. If a finalizer panics or ends
// the goroutine, the other finalizers still run.
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

// declared panics for the zero HeapMaker, whose T was never checked.
func (m HeapMaker[T]) declared() {
	if !m.plain {
		panic(fmt.Sprintf("arena: BUG: a HeapMaker of %v that was never declared: make it with arena.HeapOf",
			reflect.TypeFor[T]()))
	}
}

// sizeOf returns the size of n T in bytes, or at most OffsetMax, a size that no block has. It
// panics if n is below `least`.
func sizeOf[T any](what string, least, n int) uint64 {
	if n < least {
		panic(fmt.Sprintf("arena: BUG: HeapMaker.%s of %v, to %d elements: give %d or more", what,
			reflect.TypeFor[[]T](), n, least))
	}
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(*new(T))))
	if over != 0 || size > arena_c.OffsetMax {
		return arena_c.OffsetMax
	}
	return size
}

// sizeFor returns the size that SizeOf returns for a block for n T.
func sizeFor[T any](h Reallocator, n int) uint64 {
	size := uint64(n) * uint64(unsafe.Sizeof(*new(T)))
	if b, ok := h.(rounds); ok {
		size = b.sizeFor(size, arena_c.AlignOf[T]())
	}
	return size
}

// isBlock returns an error if p is no live block for n T. The error has the text `of` before T, and
// ends with `why`.
func isBlock[T any](h Reallocator, p unsafe.Pointer, n int, what, of, why string) error {
	size, err := h.SizeOf(p)
	if err != nil {
		return fmt.Errorf("arena: HeapMaker.%s of a %s%v: %w", what, of, reflect.TypeFor[T](), err)
	}
	if want := sizeFor[T](h, n); size != want {
		return fmt.Errorf("arena: BUG: HeapMaker.%s of a %s%v: the block has %d bytes, the value %d%s", what, of,
			reflect.TypeFor[T](), size, want, why)
	}
	return nil
}

// isSlice returns an error if s isn't all of a live block.
func isSlice[T any](h Reallocator, s []T, what string) error {
	return isBlock[T](h, unsafe.Pointer(unsafe.SliceData(s)), cap(s), what, "[]",
		": the slice was cut, or Grow has replaced it")
}

// NewString copies text to h and returns it in the form that a T can store. base is the Base of the
// region or budget that contains h. It returns false when h is full. DeleteString frees the text.
// An empty text takes no block. NewString panics if h isn't in base. Cost: an Alloc, and the copy.
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

// DeleteString frees a text that NewString made; for an empty text it does nothing. It returns an
// error if the text was freed, wasn't made on h, or isn't in base. Cost: a Free.
func DeleteString(h Reallocator, base Base, s String) error {
	if s.Len() == 0 {
		return nil
	}
	bytes := s.bytes.Get(base)
	if bytes == nil {
		return fmt.Errorf("arena: BUG: DeleteString of %d bytes that aren't in the base of %d bytes", s.bytes.count,
			base.size)
	}
	return octets.DeleteSlice(h, bytes)
}

var octets = HeapOf[byte](nil)
