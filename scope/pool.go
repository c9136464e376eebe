package scope

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Pool is n chunks for values of T that come and go in any order while the scope is open. It dies with its scope: then
// Get gives nil and Put panics. A Pool is a small value; one goroutine at a time uses it.
type Pool[T any] struct {
	header *arena_c.Pool
	tag    uint64
}

// Pool makes a pool of n chunks in s: each of the size of T, up to the next multiple of 8 or of T's alignment, and a byte of
// state; and one of the planned pool headers (limits.pools, 64 an arena by default). A full scope unwinds. Cost: O(n), one
// call into C.
func (m Maker[T]) Pool(s Scope, n int) Pool[T] {
	m.declared()
	return openPool[T](s, n, 0)
}

func openPool[T any](s Scope, n int, class uint64) Pool[T] {
	var zero T
	size, align := uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T]()
	if n < 0 {
		panic(&Misuse{fmt.Sprintf("a pool of %d chunks", n), false})
	}
	if !s.open() {
		panic(s.misuse("Pool in"))
	}
	st := stackOf(s.h)
	if arena_c.Checked && arena_c.Refuse() {
		panic(st.refuseTable("pools", st.row.Pools, st.nameOf(s.h, s.h.Depth)))
	}
	header, code := s.h.PoolOpen(s.gen, size, align, uint64(n), class)
	switch code {
	case arena_c.OK:
	case arena_c.TableFull:
		panic(st.tableFull("pools", st.row.Pools, st.nameOf(s.h, s.h.Depth)))
	case arena_c.BadArgument:
		s.h.Asked = arena_c.Asked | arena_c.OffsetMax
		panic(refusal(s))
	default:
		panic(refusal(s))
	}
	return Pool[T]{header, header.Tag()}
}

// Get gives a zeroed T, or nil when all chunks are live or the pool is closed. Cost: a few ns, no Go allocation, no
// call into C.
func (p Pool[T]) Get() *T { return arena_c.Get[T](p.header, p.tag) }

// Put gives x back. A double put, an address that is no chunk of this pool, or a closed pool is a caller's bug and
// panics; nothing changes.
func (p Pool[T]) Put(x *T) {
	if !p.header.Put(p.tag, unsafe.Pointer(x)) {
		panic(p.misuse(x))
	}
}

func (p Pool[T]) misuse(x *T) error {
	if x == nil {
		return &Misuse{fmt.Sprintf("Put of nil, pool of %T", *new(T)), false}
	}
	_, code := p.header.Find(p.tag, unsafe.Pointer(x))
	return &Misuse{fmt.Sprintf("Put of a %T: %v", *new(T), code), code == arena_c.Stale}
}

// Index is the number of x's chunk, for tables beside the pool and for handles that other machines understand. It
// panics as Put does.
func (p Pool[T]) Index(x *T) int {
	index, code := p.header.Find(p.tag, unsafe.Pointer(x))
	if code != arena_c.OK {
		panic(&Misuse{fmt.Sprintf("Index of a %T: %v", *new(T), code), code == arena_c.Stale})
	}
	return int(index)
}

// At is the live value in chunk i, or nil: i is out of range, the chunk is free, or the pool is closed.
func (p Pool[T]) At(i int) *T {
	count := p.header.Bound - p.tag // huge when the pool is closed
	if count >= arena_c.OffsetMax || uint64(i) >= count || *p.header.State(uint64(i)) != arena_c.ChunkLive {
		return nil
	}
	return (*T)(p.header.Chunk(uint64(i)))
}

// Cap is the number of chunks, 0 when the pool is closed.
func (p Pool[T]) Cap() int {
	if p.header.Tag() != p.tag {
		return 0
	}
	return int(p.header.Count())
}

// Live is the number of chunks taken, 0 when the pool is closed.
func (p Pool[T]) Live() int {
	if p.header.Tag() != p.tag {
		return 0
	}
	return int(p.header.Live)
}

// Peak is the largest number of chunks that were live at once. Cost: O(log n).
func (p Pool[T]) Peak() int {
	if p.header.Tag() != p.tag {
		return 0
	}
	return int(p.header.Peak())
}

// All ranges over the live values and the numbers of their chunks. Put of the current one is fine; whether one that Get
// gives meanwhile comes along is open.
func (p Pool[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range p.Cap() {
			if x := p.At(i); x != nil && !yield(i, x) {
				return
			}
		}
	}
}

// ObjectPool is a Pool whose values have a finalizer: it runs at Put, and when the scope closes for each value that is
// still live. The methods that say nothing here are those of Pool.
type ObjectPool[T any] struct {
	pool  Pool[T]
	fin   func(*T) error
	stack *Stack
}

// Pool makes a pool of n objects in s. See [Maker.Pool]. The finalizer must bear a zero T, which is what Get gives.
func (m ObjectMaker[T]) Pool(s Scope, n int) ObjectPool[T] {
	m.plain.declared()
	return ObjectPool[T]{openPool[T](s, n, m.class), m.fin, stackOf(s.h)}
}

// Put finalizes x and gives it back, whatever the finalizer says; its error is returned. Misuse panics before the
// finalizer runs.
func (p ObjectPool[T]) Put(x *T) error {
	if x == nil {
		panic(p.pool.misuse(x))
	}
	index, code := p.pool.header.Find(p.pool.tag, unsafe.Pointer(x))
	if code != arena_c.OK {
		panic(p.pool.misuse(x))
	}
	state := p.pool.header.State(uint64(index))
	*state = arena_c.ChunkLeaving
	p.stack.finalizers++
	defer func() { // also when the finalizer panics, or ends the goroutine
		if p.pool.header.Tag() == p.pool.tag { // it may have closed the scope
			*state = arena_c.ChunkLive
			p.pool.Put(x)
		}
	}()
	return p.fin(x)
}

func (p ObjectPool[T]) Get() *T                 { return p.pool.Get() }
func (p ObjectPool[T]) At(i int) *T             { return p.pool.At(i) }
func (p ObjectPool[T]) Index(x *T) int          { return p.pool.Index(x) }
func (p ObjectPool[T]) All() iter.Seq2[int, *T] { return p.pool.All() }
func (p ObjectPool[T]) Cap() int                { return p.pool.Cap() }
func (p ObjectPool[T]) Live() int               { return p.pool.Live() }
func (p ObjectPool[T]) Peak() int               { return p.pool.Peak() }
