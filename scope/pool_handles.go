package scope

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// HandlePool is a Pool whose values are named by handles, so that who kept the name of a value is told when it was put,
// also when its chunk was taken again. A handle is plain data of 8 bytes and may lie in any block. The pool dies with its
// scope: then Get and At give nil and Put panics. It is a small value; one goroutine at a time uses it. A handle of another
// pool of T that is open on the same arena names nothing here, as long as the two are among 64.
//
// Handles begin anew with each pool, so that the same play gives the same bytes everywhere: a handle that outlived its
// level may name something in the next one. Keep it in the level; what lives longer refers to what keeps it by a Ref.
type HandlePool[T any] struct {
	pool        Pool[T]
	generations []uint32 // of the chunks, in the scope; their count is never 0
	place       uint32   // of the pool among those of its arena, above the count
}

// HandlePool makes a pool of n chunks in s: what Pool takes, and 4 bytes for each chunk. A full scope unwinds; n below 0
// or from 2^32 up is a caller's bug. Cost: O(n), two calls into C.
func (m Maker[T]) HandlePool(s Scope, n int) HandlePool[T] {
	m.declared()
	if n >= 0 && uint64(n) > arena_c.HandleIndex {
		panic(&Misuse{fmt.Sprintf("a pool of %d chunks: handles name fewer than 2^32", n), false})
	}
	s.fitsHandles(uint64(unsafe.Sizeof(*new(T))), arena_c.AlignOf[T](), uint64(n))
	to := markOf(s.h)
	p := HandlePool[T]{pool: openPool[T](s, n, 0)}
	if p.generations = makeSlice[uint32](s, n, false); p.generations == nil { // on purpose: both or none
		asked := s.h.Asked
		_ = stackOf(s.h).undo(s.h, to)
		s.h.Asked = asked
		panic(refusal(s))
	}
	row := s.h.Row()
	p.place = uint32((uintptr(unsafe.Pointer(p.pool.header))-uintptr(unsafe.Pointer(row.Pool(0))))/arena_c.LineSize) << handleBits
	for i := range p.generations {
		p.generations[i] = p.place | 1
	}
	return p
}

// fitsHandles refuses a pool with handles that doesn't fit as a whole, before any of it is made: the error
// says what all of it needs.
func (s Scope) fitsHandles(size, align, n uint64) {
	h := s.h
	bytes := arena_c.PoolSize(size, align, n)
	if !s.open() || bytes == 0 && n != 0 {
		return // that of the pool tells
	}
	from := uint64(uintptr(unsafe.Pointer(h)))
	node := roundUp(h.Cursor+arena_c.NodeSize, arena_c.NodeSize) + 8
	need := roundUp(from+node, max(align, arena_c.NodeSize)) - from + bytes + 4*n - h.Cursor
	if need > h.Limit-h.Cursor {
		h.Asked = arena_c.Asked | need
		panic(refusal(s))
	}
}

// handleBits are those of a generation that count; the 6 above tell pools apart that are open at once.
const handleBits = 26

// Get gives a zeroed T and its handle, or nil and the zero Handle, which names nothing, when all chunks are live or the
// pool is closed. Cost: a few ns, no Go allocation, no call into C.
func (p HandlePool[T]) Get() (*T, arena.Handle[T]) {
	index := p.pool.header.Free - p.pool.tag - 1 // of the chunk to take next
	x := p.pool.Get()
	if x == nil {
		return nil, 0
	}
	return x, p.name(index)
}

func (p HandlePool[T]) name(index uint64) arena.Handle[T] {
	return arena.Handle[T](uint64(p.generations[index])<<32 | index)
}

// At is the value that h names, or nil: it was put, h is no handle of this pool, or the pool is closed. A handle is good
// again by accident only after its chunk was put 2^26-1 times more. Cost: a few ns.
func (p HandlePool[T]) At(h arena.Handle[T]) *T {
	index := uint64(h) & arena_c.HandleIndex
	x := p.pool.At(int(index))
	if x == nil || p.name(index) != h {
		return nil
	}
	return x
}

// Put gives the value back that h names. A value that was put already, a handle that is none of this pool, or a closed
// pool is a caller's bug and panics; nothing changes.
func (p HandlePool[T]) Put(h arena.Handle[T]) {
	x := p.At(h)
	if x == nil {
		panic(p.misuse(h))
	}
	p.pool.Put(x)
	generation := &p.generations[uint64(h)&arena_c.HandleIndex]
	count := (*generation + 1) & (1<<handleBits - 1)
	*generation = p.place | max(1, count)
}

func (p HandlePool[T]) misuse(h arena.Handle[T]) error {
	code := arena_c.Double
	if p.pool.header.Tag() != p.pool.tag {
		code = arena_c.Stale
	} else if index := uint64(h) & arena_c.HandleIndex; h == 0 || index >= uint64(p.Cap()) || uint32(h>>58) != p.place>>handleBits {
		code = arena_c.Foreign
	}
	return &Misuse{fmt.Sprintf("Put of a handle of a %T: %v", *new(T), code), code == arena_c.Stale}
}

// All ranges over the live values and their handles. Put of the current one is fine; whether one that Get gives meanwhile
// comes along is open.
func (p HandlePool[T]) All() iter.Seq2[arena.Handle[T], *T] {
	return func(yield func(arena.Handle[T], *T) bool) {
		for i, x := range p.pool.All() {
			if !yield(p.name(uint64(i)), x) {
				return
			}
		}
	}
}

// Cap, Live and Peak are those of Pool.
func (p HandlePool[T]) Cap() int  { return p.pool.Cap() }
func (p HandlePool[T]) Live() int { return p.pool.Live() }
func (p HandlePool[T]) Peak() int { return p.pool.Peak() }
