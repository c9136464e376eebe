//go:build linux && cgo && !asan

package main

// #include "../../arena/with/malloc/process.h"
import "C"

// walk returns the code of a check of all blocks.
func walk() int { return int(C.upfront_malloc_walk()) }

// heap returns the address and the size of the heap.
func heap() (base uintptr, size uint64) {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.base), uint64(c.size)
}
