package container

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// noCopy has go vet refuse copies: one would not see what the other takes away.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// closed is what a container panics with when something is put into it and its scope is closed.
// What there is to say it works out when it is asked: a call here, and Push would not be inlined.
type closed struct {
	life scope.Life
	what string
}

// Error is the text of the misuse.
func (c closed) Error() string { return c.Unwrap().Error() }

// Unwrap is a *scope.Misuse, so that errors.Is finds scope.ErrClosed.
func (c closed) Unwrap() error { return c.life.Misuse(c.what) }

// gone tells the race detector of values that were taken away: who still reads one is reported.
func gone[T any](values []T) {
	var zero T
	arena_c.Dead(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(zero))
}
