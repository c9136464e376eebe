package arena

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Heap gives blocks of any size, in any order, and takes them back: for C libraries, and for the few things whose life
// nobody knows. It is the only arena that fragments: LargestFree may be far below Stats.Free. Each operation takes the
// same time however full it is; a crossing into C is a good part of it.
//
// A block costs 16 bytes beside its own, is rounded up to 16, and takes 32 at least. Misuse is told by a sealed header
// before each block: arena_c/heap.h says what it can't tell. It is a small value; copies are the same heap, and one
// goroutine at a time may use it. It lives as long as its block.
type Heap struct{ header *arena_c.Heap }

var _ Reallocator = Heap{}

// NewHeap makes a heap of the block, which has at least 272 bytes. What was in the block is lost.
func NewHeap(block []byte) (Heap, error) {
	if err := checkBlock("Heap", block, arena_c.LineSize); err != nil {
		return Heap{}, err
	}
	header := arena_c.HeapInit(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	if header == nil {
		return Heap{}, fmt.Errorf("arena: a Heap needs a block of at least %d bytes, this one has %d", arena_c.HeapBlock, len(block))
	}
	return Heap{header}, nil
}

// Alloc gives size bytes aligned to align, and to 16 at least, not zeroed; nil when the heap is full. Size 0 gives an
// address of its own.
func (h Heap) Alloc(size, align uint64) unsafe.Pointer {
	size, _ = asked("Heap", size, align)
	return h.its().Alloc(size, align)
}

// Free takes a block back. A double free, and an address that is no block of this heap, are refused and change nothing.
func (h Heap) Free(p unsafe.Pointer) error {
	return refused("Heap.Free", h.its().Free(p))
}

// Realloc gives the block another size, and keeps its contents and its alignment. It shrinks in place, and grows in
// place, up or down, where there is room; otherwise the block moves. When the heap is full it gives nil and no error,
// and p is as it was. A nil p is Alloc aligned to 16. An address that is no live block is refused, with an error.
func (h Heap) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	q := h.its().Realloc(p, size)
	if q == nil && p != nil {
		_, code := h.header.SizeOf(p)
		return nil, refused("Heap.Realloc", code)
	}
	return q, nil
}

// SizeOf is the size that was asked for. An address that is no live block is refused, with an error.
func (h Heap) SizeOf(p unsafe.Pointer) (uint64, error) {
	size, code := h.its().SizeOf(p)
	return size, refused("Heap.SizeOf", code)
}

// Reset frees everything. Addresses from before are refused, also where nothing was written since.
func (h Heap) Reset() { h.its().Reset() }

// HeapStats are those of a heap. The headers of blocks are in Used; Padding isn't counted.
type HeapStats struct {
	Stats
	Live    uint64 // blocks
	Failed  uint64 // requests that were refused for want of room since NewHeap
	Bounded uint64 // of those, how many a block may have fitted that lies deeper in its list than Alloc looks
}

// Stats reads the counts.
func (h Heap) Stats() HeapStats {
	x := h.its()
	size := x.End - x.First
	return HeapStats{Stats{Size: size, Used: x.Used, Free: size - x.Used, Peak: x.Peak}, x.Live, x.Failed, x.Bounded}
}

// LargestFree is the size of the largest free block: of what Alloc could give aligned to 16. Cost: O(blocks).
func (h Heap) LargestFree() uint64 { return h.its().Largest() }

// HeapMaker makes values of T on a heap, or by a proxy before one. Declare it once, at package level, with HeapOf: the zero
// HeapMaker panics.
type HeapMaker[T any] struct{ finalizer func(*T) error }

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
	if finalizer == nil { // it tells one that was declared
		finalizer = func(*T) error { return nil }
	}
	return HeapMaker[T]{finalizer}
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
	size, err := h.SizeOf(unsafe.Pointer(x))
	if err != nil {
		return fmt.Errorf("arena: HeapMaker.Delete of a %T: %w", *new(T), err)
	}
	want := uint64(unsafe.Sizeof(*x))
	if b, ok := h.(rounds); ok {
		want = b.sizeFor(want, arena_c.AlignOf[T]())
	}
	if size != want {
		return fmt.Errorf("arena: BUG: HeapMaker.Delete of a %T: its block has %d bytes, not %d", *new(T), size, want)
	}
	defer func() { err = errors.Join(err, h.Free(unsafe.Pointer(x))) }()
	return m.finalizer(x)
}

// declared refuses the zero HeapMaker, which nobody asked whether its T holds Go pointers.
func (m HeapMaker[T]) declared() {
	if m.finalizer == nil {
		panic(fmt.Sprintf("arena: BUG: a HeapMaker of %v that was never declared: make it with arena.HeapOf", reflect.TypeFor[T]()))
	}
}

func (h Heap) its() *arena_c.Heap { return made(h.header, "Heap") }
