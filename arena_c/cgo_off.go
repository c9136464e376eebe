//go:build !cgo

package arena_c

// Without cgo there is no C core, and the compiler prints this line.
var _ int = "upfront needs cgo: set CGO_ENABLED=1, and CC too when cross-building"
