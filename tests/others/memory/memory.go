// Package memory has the public functions of modernc.org/memory, and takes all memory from one
// arena.Heap. So a program can bound the memory of all C code that modernc translated to Go:
// SQLite, modernc.org/libc, and other libraries. A line of the program's go.mod replaces modernc's
// package by this package:
//
//	replace modernc.org/memory => ./memory
//
// The program chooses the heap at the start of main:
//
//	memory.Use(heap, block) // heap is an arena.Heap on the block
//
// libc allocates before main. Until Use, memory comes from a block of 256 KiB of the package's own,
// and this memory stays there. The package finds an address in one of the two blocks.
//
// A full heap is an error, which libc passes on as ENOMEM, and SQLite as "out of memory (7)". But
// libc panics if a frame of C's stack doesn't fit. The frames are in the heap: a TLS, libc's state
// of a thread, has a block for each depth of calls. If a call needs more, the TLS exchanges the
// block for a larger one.
//
// So don't roll the heap back, though all of SQLite's memory is in it. A frame that the TLS got
// after the snapshot is free in the restored heap, but the TLS, a Go value, still uses the frame. A
// program that rolls SQLite back keeps SQLite's memory and libc's memory apart: see package sqlite
// of tests/others.
//
// libc holds a lock when it calls the package, so the package has no lock of its own. Only one
// goroutine at a time may use the Allocators, all together.
package memory

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

// place is a heap and the block that it's on.
type place struct {
	arena.Heap
	block []byte
}

func (p *place) base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p.block)) }

// before serves the requests before Use.
var (
	before = first()
	now    = before
)

func first() *place {
	block := arena.NewBlock(256<<10, 64)
	heap, err := arena.NewHeap(block, 0)
	if err != nil {
		panic(err)
	}
	return &place{heap, block}
}

// Use has all Allocators of the process take their memory from h, a heap on the block, from now on.
// Call Use once, before C code runs on other goroutines: the heap of an earlier Use is forgotten,
// and its addresses panic.
func Use(h arena.Heap, block []byte) { now = &place{h, block} }

// find returns the heap with the address, and the pointer. It panics for an address of neither.
func find(p uintptr) (*place, unsafe.Pointer) {
	for _, at := range []*place{now, before} {
		if offset := p - uintptr(at.base()); offset < uintptr(len(at.block)) {
			return at, unsafe.Add(at.base(), offset)
		}
	}
	panic(fmt.Sprintf("memory: BUG: %#x is in no heap of this process: call Use once, and pass addresses of an "+
		"Allocator", p))
}

var errFull = fmt.Errorf("memory: the heap is full: %w", syscall.ENOMEM)

// Allocator takes memory from the heap of the process, which all Allocators share. The counters
// stay 0, as those of modernc.org/memory do without its build tag: see arena.Heap.Stats.
type Allocator struct {
	Allocs int
	Bytes  int
	Mmaps  int
}

// UintptrMalloc returns the address of size bytes, aligned to 16, or 0 for size 0. It returns an
// error with syscall.ENOMEM if the heap is full, and panics if size is negative.
func (a *Allocator) UintptrMalloc(size int) (uintptr, error) {
	if size < 0 {
		panic("memory: BUG: a negative size")
	}
	if size == 0 {
		return 0, nil
	}
	p := now.Alloc(uint64(size), 16)
	if p == nil {
		return 0, errFull
	}
	return uintptr(p), nil
}

// UintptrCalloc is UintptrMalloc, and clears the bytes.
func (a *Allocator) UintptrCalloc(size int) (uintptr, error) {
	p, err := a.UintptrMalloc(size)
	if p != 0 {
		_, at := find(p)
		clear(unsafe.Slice((*byte)(at), size))
	}
	return p, err
}

// UintptrRealloc changes the size of the memory at p, and returns its address. It keeps the bytes,
// up to the smaller size. A p of 0 is UintptrMalloc, a size of 0 UintptrFree. If the heap is full,
// it returns an error, and p is as it was.
func (a *Allocator) UintptrRealloc(p uintptr, size int) (uintptr, error) {
	switch {
	case p == 0:
		return a.UintptrMalloc(size)
	case size == 0:
		return 0, a.UintptrFree(p)
	case size < 0:
		panic("memory: BUG: a negative size")
	}
	heap, at := find(p)
	q, err := heap.Realloc(at, uint64(size))
	if q == nil && err == nil {
		err = errFull
	}
	return uintptr(q), err
}

// UintptrFree frees the memory at p; 0 does nothing. An address of no live memory in the heap is an
// error.
func (a *Allocator) UintptrFree(p uintptr) error {
	if p == 0 {
		return nil
	}
	heap, at := find(p)
	return heap.Free(at)
}

// UintptrUsableSize returns the size of the memory at p, and 0 for 0 and for no live memory.
func UintptrUsableSize(p uintptr) int {
	if p == 0 {
		return 0
	}
	heap, at := find(p)
	size, err := heap.SizeOf(at)
	if err != nil {
		return 0
	}
	return int(size)
}

// UnsafeMalloc is UintptrMalloc with another type.
func (a *Allocator) UnsafeMalloc(size int) (unsafe.Pointer, error) {
	return pointer(a.UintptrMalloc(size))
}

// UnsafeCalloc is UintptrCalloc with another type.
func (a *Allocator) UnsafeCalloc(size int) (unsafe.Pointer, error) {
	return pointer(a.UintptrCalloc(size))
}

// UnsafeRealloc is UintptrRealloc with another type.
func (a *Allocator) UnsafeRealloc(p unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return pointer(a.UintptrRealloc(uintptr(p), size))
}

// UnsafeFree is UintptrFree with another type.
func (a *Allocator) UnsafeFree(p unsafe.Pointer) error { return a.UintptrFree(uintptr(p)) }

// UnsafeUsableSize is UintptrUsableSize with another type.
func UnsafeUsableSize(p unsafe.Pointer) int { return UintptrUsableSize(uintptr(p)) }

func pointer(p uintptr, err error) (unsafe.Pointer, error) {
	if p == 0 {
		return nil, err
	}
	_, at := find(p)
	return at, err
}

// Malloc is UintptrMalloc as a slice: of size bytes, and nil for none.
func (a *Allocator) Malloc(size int) ([]byte, error) { return slice(size)(a.UintptrMalloc(size)) }

// Calloc is UintptrCalloc as a slice.
func (a *Allocator) Calloc(size int) ([]byte, error) { return slice(size)(a.UintptrCalloc(size)) }

// Realloc is UintptrRealloc for a slice of Malloc, Calloc or Realloc. A slice of no capacity is
// Malloc.
func (a *Allocator) Realloc(b []byte, size int) ([]byte, error) {
	return slice(size)(a.UintptrRealloc(address(b), size))
}

// Free is UintptrFree for a slice of Malloc, Calloc or Realloc.
func (a *Allocator) Free(b []byte) error { return a.UintptrFree(address(b)) }

// UsableSize is UintptrUsableSize for the first byte of a slice.
func UsableSize(p *byte) int { return UintptrUsableSize(uintptr(unsafe.Pointer(p))) }

func address(b []byte) uintptr {
	if cap(b) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

func slice(size int) func(uintptr, error) ([]byte, error) {
	return func(p uintptr, err error) ([]byte, error) {
		if p == 0 {
			return nil, err
		}
		_, at := find(p)
		return unsafe.Slice((*byte)(at), size), err
	}
}

// Trim returns the heap's free pages to the system: see arena.Heap.Trim.
func (a *Allocator) Trim() error {
	_, err := now.Trim()
	return err
}

// Close returns an error: the heap is of all Allocators, and ends with its scope.
func (a *Allocator) Close() error {
	return errors.New("memory: an Allocator has no heap of its own to close: free its memory, or close " +
		"the scope with the heap of Use")
}
