package goheap

import (
	"hash/crc32"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// State is the data that a tick changes: slices and pools that makers made in a scope between Begin
// and NewRing, and the state in the budget.
type State struct {
	*save.State
	parts []part
}

// part is a slice or a pool of a state. It keeps a copy for each place of a ring, in reused memory.
type part interface {
	keep(places int)
	take(place int)
	restore(place int)
	hash(place int, sum uint32) uint32
	size() uint64
}

// states are the current states, by their scopes.
var states struct {
	begun atomic.Int32
	lock  sync.Mutex
	of    map[scope.Scope]*State
}

// recording returns the state that collects the values made in s, or nil.
func recording(s scope.Scope) *State {
	if states.begun.Load() == 0 {
		return nil
	}
	states.lock.Lock()
	defer states.lock.Unlock()
	return states.of[s]
}

var rootMaker = scope.Plain[uint64]()

func Begin[T any](r budget.Region, s scope.Scope, root Maker[T]) (*State, *T) {
	inBudget, _ := save.Begin(r, s, rootMaker)
	st := &State{State: inBudget}
	states.lock.Lock()
	if states.of == nil {
		states.of = map[scope.Scope]*State{}
	}
	states.of[s] = st
	states.begun.Store(int32(len(states.of)))
	states.lock.Unlock()
	return st, root.New(s)
}

func (st *State) end(s scope.Scope) {
	states.lock.Lock()
	defer states.lock.Unlock()
	delete(states.of, s)
	states.begun.Store(int32(len(states.of)))
}

func (st *State) add(p part) { st.parts = append(st.parts, p) }

// Size returns the bytes of the state, on the Go heap and in the budget.
func (st *State) Size() uint64 {
	size := st.State.Size()
	for _, p := range st.parts {
		size += p.size()
	}
	return size
}

type slicePart[T any] struct {
	live   []T
	copies [][]T
	hashed []span
}

// span is a range of bytes of a type without pointers, for the hash.
type span struct{ from, to uintptr }

func newSlicePart[T any](list []T) *slicePart[T] {
	return &slicePart[T]{live: list, hashed: spans(reflect.TypeFor[T]())}
}

// spans returns the fields of a struct except its pointers and slices, or all of another type.
func spans(t reflect.Type) (list []span) {
	if t.Kind() != reflect.Struct {
		return []span{{0, t.Size()}}
	}
	for f := range t.Fields() {
		if !strings.HasPrefix(f.Type.Name(), "Slice[") && !strings.HasPrefix(f.Type.Name(), "Ptr[") {
			list = append(list, span{f.Offset, f.Offset + f.Type.Size()})
		}
	}
	return list
}

func (p *slicePart[T]) keep(places int) {
	for range places {
		p.copies = append(p.copies, make([]T, len(p.live)))
	}
}

func (p *slicePart[T]) take(place int)    { copy(p.copies[place], p.live) }
func (p *slicePart[T]) restore(place int) { copy(p.live, p.copies[place]) }

func (p *slicePart[T]) hash(place int, sum uint32) uint32 {
	for i := range p.copies[place] {
		sum = addTo(sum, &p.copies[place][i], p.hashed)
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func addTo[T any](sum uint32, x *T, list []span) uint32 {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x))
	for _, part := range list {
		sum = crc32.Update(sum, castagnoli, bytes[part.from:part.to])
	}
	return sum
}

func (p *slicePart[T]) size() uint64 {
	return uint64(len(p.live)) * uint64(reflect.TypeFor[T]().Size())
}

type poolPart[T any] struct {
	*pool[T]
	copies []poolCopy[T]
}

type poolCopy[T any] struct {
	values []T
	live   []bool
	put    []int
	free   []int
}

func (p *poolPart[T]) keep(places int) {
	n := len(p.chunks)
	for range places {
		p.copies = append(p.copies, poolCopy[T]{values: make([]T, n), live: make([]bool, n),
			put: make([]int, n), free: make([]int, 0, n)})
	}
}

func (p *poolPart[T]) take(place int) {
	c := &p.copies[place]
	copy(c.values, p.values)
	copy(c.put, p.put)
	c.free = append(c.free[:0], p.free...)
	for i, x := range p.chunks {
		if c.live[i] = x != nil; !careful && x != nil {
			c.values[i] = *x
		}
	}
}

func (p *poolPart[T]) restore(place int) {
	c := &p.copies[place]
	copy(p.values, c.values)
	copy(p.put, c.put)
	p.free = append(p.free[:0], c.free...)
	for i, live := range c.live {
		if !live && p.chunks[i] != nil {
			p.leave(i)
		}
		if live && p.chunks[i] == nil {
			p.place(i)
		}
		if live && !careful {
			*p.chunks[i] = c.values[i]
		}
	}
}

func (p *poolPart[T]) hash(place int, sum uint32) uint32 {
	c, all := &p.copies[place], spans(reflect.TypeFor[T]())
	for _, numbers := range [][]int{c.put, c.free} {
		for i := range numbers {
			sum = addTo(sum, &numbers[i], []span{{0, unsafe.Sizeof(0)}})
		}
	}
	for i, live := range c.live {
		if live {
			sum = addTo(sum, &c.values[i], all)
		}
	}
	return sum
}

func (p *poolPart[T]) size() uint64 {
	return uint64(len(p.chunks)) * uint64(reflect.TypeFor[T]().Size())
}
