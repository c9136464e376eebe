//go:build !linux || !cgo

// Malloc runs programs in C over package arena/with/malloc. On this system the package defines no
// malloc.
package main

func main() {}
