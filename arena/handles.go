package arena

import (
	"fmt"
	"iter"

	"github.com/upfront-mem/upfront/arena_c"
)

// Handle names a chunk of a BlockHandlePool: an index, and the generation that the chunk had. It is plain data of 8 bytes: it
// may lie in a block, be saved, and be read on another machine. The zero Handle names nothing.
type Handle[T any] uint64

// BlockHandlePool is a BlockPool whose chunks are named by handles, so that who kept the name of a chunk that was put and taken
// again is told so. It costs 4 bytes a chunk more than a BlockPool. It is a small value; copies are the same pool.
//
// A chunk retires when it was put 2^32-1 times, so that no handle ever means two values; the pool has one chunk less then.
type BlockHandlePool[T any] struct{ pool[T] }

// NewBlockHandlePool makes a pool of the block, with as many chunks as fit. What was in the block is lost, and with it what
// handles of an older pool there meant: generations begin anew. A T that holds Go pointers is refused. Cost: O(chunks).
func NewBlockHandlePool[T any](block []byte) (BlockHandlePool[T], error) {
	p, err := makePool[T]("BlockHandlePool", block, true)
	return BlockHandlePool[T]{p}, err
}

// Get gives a zeroed T and its handle, or nil and the zero Handle when all chunks are live.
func (p BlockHandlePool[T]) Get() (*T, Handle[T]) {
	x, handle := arena_c.GetHandle[T](p.its(), p.gen, p.first, p.numbers)
	return x, Handle[T](handle)
}

// At is the value that h names, or nil: it was put, or h is no handle of this pool.
func (p BlockHandlePool[T]) At(h Handle[T]) *T { return (*T)(p.its().At(p.gen, uint64(h))) }

// Index is the number of the chunk that h names, for arrays beside the pool; -1 where At gives nil.
func (p BlockHandlePool[T]) Index(h Handle[T]) int {
	if p.At(h) == nil {
		return -1
	}
	return int(uint64(h) & arena_c.HandleIndex)
}

// Put gives the value back that h names. A handle of what was put already, or of no chunk of this pool, is refused and
// changes nothing.
func (p BlockHandlePool[T]) Put(h Handle[T]) error {
	if code := p.its().PutHandle(p.gen, uint64(h)); code != arena_c.OK {
		return fmt.Errorf("arena: BUG: BlockHandlePool.Put of a %T: %v", *new(T), code)
	}
	return nil
}

// All ranges over the live values and their handles. Put of the current one is fine; whether one that Get gives meanwhile
// comes along is open.
func (p BlockHandlePool[T]) All() iter.Seq2[Handle[T], *T] {
	return func(yield func(Handle[T], *T) bool) {
		for i := range p.Cap() {
			if x := p.at(i); x != nil && !yield(Handle[T](p.header.Handle(uint64(i))), x) {
				return
			}
		}
	}
}
