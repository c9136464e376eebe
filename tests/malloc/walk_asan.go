//go:build linux && cgo && asan

package main

// walk returns 0: the process has AddressSanitizer's malloc.
func walk() int { return 0 }
