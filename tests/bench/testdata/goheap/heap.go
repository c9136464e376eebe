package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// The plain Go heap, said in frogpond's words: new and make, and the collector. A scope is asked for nothing.

// careful is whether play uses slices and chunks again, as careful Go does, or makes new ones each time.
const careful = false

type heapMaker[T any] struct{ again *reused[T] }

func heapPlain[T any]() heapMaker[T] { return heapMaker[T]{new(reused[T])} }

func (heapMaker[T]) New(scope.Scope) *T { return new(T) }

func (heapMaker[T]) Slice(_ scope.Scope, n int) []T { return make([]T, n) }

// TrySlice is what play calls, by one worker. It holds at most two slices of a kind at a time: this tick's and the last one's.
func (m heapMaker[T]) TrySlice(_ scope.Scope, n int) []T {
	if !careful {
		return make([]T, n)
	}
	m.again.slices[0], m.again.slices[1] = m.again.slices[1], m.again.slices[0]
	if cap(m.again.slices[0]) < n {
		m.again.slices[0] = make([]T, n)
	}
	s := m.again.slices[0][:n]
	clear(s)
	return s
}

type reused[T any] struct{ slices [2][]T }

func (heapMaker[T]) Pool(_ scope.Scope, n int) heapPool[T] {
	p := &pool[T]{chunks: make([]*T, n), index: map[*T]int{}, room: make([]T, n)}
	for i := n - 1; i >= 0; i-- {
		p.free = append(p.free, i)
	}
	return heapPool[T]{p}
}

// heapPool gives its places in the order that frogpond's pool does: the game's state depends on it.
type heapPool[T any] struct{ *pool[T] }

type pool[T any] struct {
	chunks []*T
	free   []int
	index  map[*T]int
	room   []T
	peak   int
}

func (p heapPool[T]) Get() *T {
	if p.pool == nil || len(p.free) == 0 {
		return nil
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	x := &p.room[i]
	if careful {
		*x = *new(T)
	} else {
		x = new(T)
		p.index[x] = i
	}
	p.chunks[i] = x
	p.peak = max(p.peak, p.Live())
	return x
}

func (p heapPool[T]) Put(x *T) {
	i := p.Index(x)
	delete(p.index, x)
	p.chunks[i] = nil
	p.free = append(p.free, i)
}

func (p heapPool[T]) Index(x *T) int {
	if careful {
		return int((uintptr(unsafe.Pointer(x)) - uintptr(unsafe.Pointer(&p.room[0]))) / unsafe.Sizeof(*x))
	}
	return p.index[x]
}

func (p heapPool[T]) At(i int) *T { return p.chunks[i] }
func (p heapPool[T]) Cap() int    { return len(p.chunks) }
func (p heapPool[T]) Live() int   { return len(p.chunks) - len(p.free) }
func (p heapPool[T]) Peak() int   { return p.peak }

// heapHandlePool has a handle for each value: its place, and how many values were there before it and with it.
type heapHandlePool[T any] struct {
	pool heapPool[T]
	put  []uint32 // by place
}

func (m heapMaker[T]) HandlePool(s scope.Scope, n int) heapHandlePool[T] {
	return heapHandlePool[T]{m.Pool(s, n), make([]uint32, n)}
}

func (p heapHandlePool[T]) Get() (*T, arena.Handle[T]) {
	x := p.pool.Get()
	if x == nil {
		return nil, 0
	}
	i := p.pool.Index(x)
	return x, arena.Handle[T](uint64(p.put[i]+1)<<32 | uint64(i))
}

func (p heapHandlePool[T]) At(h arena.Handle[T]) *T {
	if i := uint32(h); h != 0 && int(i) < len(p.put) && p.put[i]+1 == uint32(h>>32) {
		return p.pool.At(int(i))
	}
	return nil
}

func (p heapHandlePool[T]) Index(h arena.Handle[T]) int {
	if p.At(h) == nil {
		return -1
	}
	return int(uint32(h))
}

func (p heapHandlePool[T]) Put(h arena.Handle[T]) {
	p.pool.Put(p.At(h))
	p.put[uint32(h)]++
}

func (p heapHandlePool[T]) Cap() int  { return p.pool.Cap() }
func (p heapHandlePool[T]) Live() int { return p.pool.Live() }
func (p heapHandlePool[T]) Peak() int { return p.pool.Peak() }

// heapPtr and heapSlice are a pointer and a slice, which the collector follows.
type heapPtr[T any] struct{ p *T }

func heapPtrTo[T any](_ arena.Base, p *T) heapPtr[T] { return heapPtr[T]{p} }

func (p heapPtr[T]) Get(arena.Base) *T { return p.p }

func (p heapPtr[T]) IsNil() bool { return p.p == nil }

type heapSlice[T any] struct{ s []T }

func heapSliceOf[T any](_ arena.Base, s []T) heapSlice[T] { return heapSlice[T]{s} }

func (s heapSlice[T]) Get(arena.Base) []T { return s.s }

// heapAddr is an address, for what lies in the budget everywhere: whoever has one goes before its
// level does, which has the pointer.
type heapAddr[T any] struct{ at uint64 }

func heapAddrOf[T any](_ scope.Scope, p *T) heapAddr[T] {
	return heapAddr[T]{uint64(uintptr(unsafe.Pointer(p)))}
}

//go:nocheckptr
func (a heapAddr[T]) Get() *T { return (*T)(unsafe.Add(unsafe.Pointer(nil), a.at)) }

// heapState is a state with what lies in the budget everywhere; the root is no part of it.
type heapState struct{ *save.State }

var heapRoot = scope.Plain[uint64]()

func heapBegin[T any](r *budget.Region, s scope.Scope, _ heapMaker[T]) (heapState, *T) {
	state, _ := save.Begin(r, s, heapRoot)
	return heapState{state}, new(T)
}

func heapNewRing(s scope.Scope, count int, state heapState) *save.Ring {
	return save.NewRing(s, count, state.State)
}
