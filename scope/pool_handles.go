package scope

import (
	"fmt"
	"iter"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// HandlePool is a Pool whose values are named by handles, so that who kept the name of a value is told when it was put,
// also when its chunk was taken again. A handle is plain data of 8 bytes and may lie in any block. The pool dies with its
// scope: then Get and At give nil and Put panics. It is a small value; one goroutine at a time uses it. A handle of another
// pool that is open on the same arena names nothing here.
//
// A chunk has 2^32 generations, divided by the planned pools (limits.pools), so that no handle ever means two values: with 64
// pools it retires when it was put 2^26-1 times, and the pool has one chunk less.
//
// Handles begin anew with each pool, so that the same play gives the same bytes everywhere: a handle that outlived its
// level may name something in the next one. Keep it in the level; what lives longer refers to what keeps it by a Ref.
type HandlePool[T any] struct{ pool[T] }

// HandlePool makes a pool of n chunks in s: what Pool takes, and 4 bytes for each chunk. A full scope unwinds; n below 0
// or from 2^32 up is a caller's bug. Cost: O(n), one call into C.
func (m Maker[T]) HandlePool(s Scope, n int) HandlePool[T] {
	m.declared()
	if n >= 0 && uint64(n) > arena_c.HandleIndex {
		panic(bug("a pool of %d chunks: handles name fewer than 2^32", n))
	}
	return HandlePool[T]{openPool[T](s, n, 0, true)}
}

// Get gives a zeroed T and its handle, or nil and the zero Handle, which names nothing, when all chunks are live or the
// pool is closed. Cost: a few ns, no Go allocation, no call into C.
func (p HandlePool[T]) Get() (*T, arena.Handle[T]) {
	x, h := arena_c.GetHandle[T](p.header, p.gen, p.first, p.numbers)
	return x, arena.Handle[T](h)
}

// At is the value that h names, or nil: it was put, h is no handle of this pool, or the pool is closed. Cost: a few ns.
func (p HandlePool[T]) At(h arena.Handle[T]) *T { return (*T)(p.header.At(p.gen, uint64(h))) }

// Index is the number of the chunk that h names, for arrays beside the pool; -1 where At gives nil.
func (p HandlePool[T]) Index(h arena.Handle[T]) int {
	if p.At(h) == nil {
		return -1
	}
	return int(uint64(h) & arena_c.HandleIndex)
}

// Put gives the value back that h names. A value that was put already, a handle that is none of this pool, or a closed
// pool is a caller's bug and panics; nothing changes.
func (p HandlePool[T]) Put(h arena.Handle[T]) {
	if err := p.put(h); err != nil {
		panic(err)
	}
}

func (p HandlePool[T]) put(h arena.Handle[T]) error {
	if code := p.header.PutHandle(p.gen, uint64(h)); code != arena_c.OK {
		return &Misuse{fmt.Sprintf("Put of a handle of a %T: %v", *new(T), code), code == arena_c.Stale}
	}
	return nil
}

// All ranges over the live values and their handles. Put of the current one is fine; whether one that Get gives meanwhile
// comes along is open.
func (p HandlePool[T]) All() iter.Seq2[arena.Handle[T], *T] {
	return func(yield func(arena.Handle[T], *T) bool) {
		for i, x := range p.pool.All() {
			if !yield(arena.Handle[T](p.header.Handle(uint64(i))), x) {
				return
			}
		}
	}
}
