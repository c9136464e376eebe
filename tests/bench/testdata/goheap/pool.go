package goheap

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Pool gives its places in the same order as upfront's pool, because the game's state depends on
// the order.
type Pool[T any] struct{ *pool[T] }

type pool[T any] struct {
	values []T        // by place, of careful Go
	chunks []*T       // by place; nil if free
	put    []int      // how often each place was freed
	free   []int      // places
	index  map[*T]int // of plain Go
	peak   int
}

func (Maker[T]) Pool(s scope.Scope, n int) Pool[T] {
	p := &pool[T]{chunks: make([]*T, n), put: make([]int, n), free: make([]int, n)}
	if careful {
		p.values = make([]T, n)
	} else {
		p.index = map[*T]int{}
	}
	for i := range n {
		p.free[i] = n - 1 - i
	}
	if st := recording(s); st != nil {
		st.add(&poolPart[T]{pool: p})
	}
	return Pool[T]{p}
}

func (p Pool[T]) Get() *T {
	if p.pool == nil || len(p.free) == 0 {
		return nil
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	x := p.place(i)
	*x = *new(T)
	p.peak = max(p.peak, p.Live())
	return x
}

// place fills a place.
func (p *pool[T]) place(i int) *T {
	if careful {
		p.chunks[i] = &p.values[i]
	} else {
		p.chunks[i] = new(T)
		p.index[p.chunks[i]] = i
	}
	return p.chunks[i]
}

// leave empties a place.
func (p *pool[T]) leave(i int) {
	if !careful {
		delete(p.index, p.chunks[i])
	}
	p.chunks[i] = nil
}

func (p Pool[T]) Put(x *T) {
	i := p.Index(x)
	p.leave(i)
	p.put[i]++
	p.free = append(p.free, i)
}

func (p Pool[T]) Index(x *T) int {
	if careful {
		first := uintptr(unsafe.Pointer(&p.values[0]))
		return int((uintptr(unsafe.Pointer(x)) - first) / unsafe.Sizeof(*x))
	}
	return p.index[x]
}

func (p Pool[T]) At(i int) *T { return p.chunks[i] }
func (p Pool[T]) Cap() int    { return len(p.chunks) }
func (p Pool[T]) Live() int   { return len(p.chunks) - len(p.free) }
func (p Pool[T]) Peak() int   { return p.peak }

// HandlePool has a handle for each value: its place, and the number of values that the place has
// had.
type HandlePool[T any] struct{ pool Pool[T] }

func (m Maker[T]) HandlePool(s scope.Scope, n int) HandlePool[T] {
	return HandlePool[T]{m.Pool(s, n)}
}

func (p HandlePool[T]) Get() (*T, arena.Handle[T]) {
	x := p.pool.Get()
	if x == nil {
		return nil, 0
	}
	i := p.pool.Index(x)
	return x, arena.Handle[T](uint64(p.pool.put[i]+1)<<32 | uint64(i))
}

func (p HandlePool[T]) At(h arena.Handle[T]) *T {
	if i := int(uint32(h)); h != 0 && i < p.Cap() && uint64(p.pool.put[i]+1) == uint64(h>>32) {
		return p.pool.At(i)
	}
	return nil
}

func (p HandlePool[T]) Index(h arena.Handle[T]) int {
	if p.At(h) == nil {
		return -1
	}
	return int(uint32(h))
}

func (p HandlePool[T]) Put(h arena.Handle[T]) { p.pool.Put(p.At(h)) }

func (p HandlePool[T]) Cap() int  { return p.pool.Cap() }
func (p HandlePool[T]) Live() int { return p.pool.Live() }
func (p HandlePool[T]) Peak() int { return p.pool.Peak() }
