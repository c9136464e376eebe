//go:build !cgo

package arena_c

// A build without cgo has no C core; the compiler's message is this line.
var _ int = "upfront needs cgo: set CGO_ENABLED=1, and CC too when cross-building"
