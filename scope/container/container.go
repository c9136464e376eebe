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

// life says whether a scope is alive: open, be it covered or frozen, or while its finalizers run. What a container
// keeps of a scope is another's afterwards.
type life struct {
	record *arena_c.Record
	gen    uint64
	scope  scope.Scope
}

// lifeOf is the life of s, which is open.
func lifeOf(s scope.Scope) life {
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	return life{h.Record(h.Find(gen)), gen, s}
}

func (l life) alive() bool { return l.record.Gen == l.gen }

// began is l of a container that was made; it is for all but what must be inlined.
func (l life) began() life {
	if l.record == nil {
		panic(zero)
	}
	return l
}

var zero = &scope.Misuse{Text: "a zero container: NewList, NewDeque, NewMap and NewStringMap make one in a scope"}

// closed is what a container panics with when something is put into it and its scope is closed.
// What there is to say it works out when it is asked: a call here, and Push would not be inlined.
type closed struct {
	life life
	what string
}

// Error is what was to be done, and what the scope says.
func (c closed) Error() string { return c.what + ": " + c.Unwrap().Error() }

// Unwrap is a *scope.Misuse, so that errors.Is finds scope.ErrClosed.
func (c closed) Unwrap() error { return c.life.scope.Err() }

// gone tells the race detector of values that were taken away: who still reads one is reported.
func gone[T any](values []T) {
	var zero T
	arena_c.Dead(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(zero))
}
