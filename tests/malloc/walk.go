//go:build linux && cgo && !asan

package main

// #include "../../arena/with/malloc/process.h"
import "C"

// walk returns the code of a check of all blocks.
func walk() int { return int(C.upfront_malloc_walk()) }

// fullCaller returns how many bytes after the start of work_fill its last refused call returns to.
func fullCaller() uintptr {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.full_caller) - workFill()
}

// parked returns the number of freed blocks in fronts.
func parked() uint64 {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uint64(c.parked)
}

// look is one look of the thread that trims.
func look() { C.upfront_malloc_look() }

// heap returns the address and the size of the heap.
func heap() (base uintptr, size uint64) {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.base), uint64(c.size)
}
