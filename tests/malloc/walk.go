//go:build linux && cgo && !asan

package main

// int upfront_malloc_walk(void);
import "C"

// walk returns the code of a check of all blocks.
func walk() int { return int(C.upfront_malloc_walk()) }
