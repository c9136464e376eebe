// Package goheap has the part of upfront's API that frogpond uses, on the Go heap. The memory is
// from new and make. A scope has no memory of its own.
package goheap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// careful is true if the game reuses slices and chunks, as careful Go does, and false if it makes
// new ones each time.
const careful = false

// Maker makes values of a type.
type Maker[T any] struct{ again *reused[T] }

// Plain declares a type.
func Plain[T any]() Maker[T] { return Maker[T]{new(reused[T])} }

func (m Maker[T]) New(s scope.Scope) *T { return &m.Slice(s, 1)[0] }

func (m Maker[T]) Slice(s scope.Scope, n int) []T { return m.SliceCap(s, n, n) }

func (m Maker[T]) SliceCap(s scope.Scope, n, room int) []T {
	list := make([]T, n, room)
	if st := recording(s); st != nil {
		st.add(newSlicePart(list[:room]))
	}
	return list
}

// TrySlice returns a slice for a tick. If careful, each worker reuses its slices of the type, and
// gets a new one only if all are in use.
func (m Maker[T]) TrySlice(s scope.Scope, n int) []T {
	if !careful {
		return make([]T, n)
	}
	header, gen := s.C()
	list := m.again.of(header).next((*arena_c.Scopes)(header), gen)
	if cap(*list) < n {
		*list = make([]T, n)
	}
	*list = (*list)[:n]
	clear(*list)
	return *list
}

// reused has the slices of a type, by worker.
type reused[T any] struct {
	lock    sync.Mutex
	workers atomic.Pointer[[]*stack[T]] // replaced, not changed, so that reads need no lock
}

// stack has the slices of one worker, by the scope that requested them. Slices of closed scopes are
// free. Only the goroutine that uses the arena uses the stack.
type stack[T any] struct {
	arena  unsafe.Pointer
	slices [][]T
	scopes []uint64 // the scopes of the slices in use
}

func (r *reused[T]) of(arena unsafe.Pointer) *stack[T] {
	if list := r.workers.Load(); list != nil {
		for _, k := range *list {
			if k.arena == arena {
				return k
			}
		}
	}
	return r.begin(arena)
}

func (r *reused[T]) begin(arena unsafe.Pointer) *stack[T] {
	r.lock.Lock()
	defer r.lock.Unlock()
	k := &stack[T]{arena: arena}
	list := []*stack[T]{k}
	if old := r.workers.Load(); old != nil {
		list = append(list, *old...)
	}
	r.workers.Store(&list)
	return k
}

// next returns a free slice.
func (k *stack[T]) next(open *arena_c.Scopes, scope uint64) *[]T {
	n := len(k.scopes)
	for n > 0 && k.scopes[n-1] != scope && open.Find(k.scopes[n-1]) == 0 {
		n--
	}
	k.scopes = append(k.scopes[:n], scope)
	if n == len(k.slices) {
		k.slices = append(k.slices, nil)
	}
	return &k.slices[n]
}

// Ptr and Slice are a pointer and a slice, which the collector follows.
type Ptr[T any] struct{ p *T }

func PtrTo[T any](_ arena.Base, p *T) Ptr[T] { return Ptr[T]{p} }

func (p Ptr[T]) Get(arena.Base) *T { return p.p }

func (p Ptr[T]) IsNil() bool { return p.p == nil }

type Slice[T any] struct{ s []T }

func SliceOf[T any](_ arena.Base, s []T) Slice[T] { return Slice[T]{s} }

func (s Slice[T]) Get(arena.Base) []T { return s.s }

// Addr is the address of an object in the budget. The owner of an Addr ends before the level, which
// keeps the object alive.
type Addr[T any] struct{ at uint64 }

func AddrOf[T any](_ scope.Scope, p *T) Addr[T] {
	return Addr[T]{uint64(uintptr(unsafe.Pointer(p)))}
}

//go:nocheckptr
func (a Addr[T]) Get() *T { return (*T)(unsafe.Add(unsafe.Pointer(nil), a.at)) }
