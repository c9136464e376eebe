//go:build amd64 || arm64

// Package getg returns the address of the calling goroutine's g. Package malloc needs it to find
// the g of any thread in C; a package that uses cgo can't have assembly of its own.
package getg

// G returns the address of the runtime's g of the calling goroutine.
func G() uintptr
