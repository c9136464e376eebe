package arena

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Pool is equal chunks for values of T over a block. HandlePool is one that also knows handles of what was put. It is a
// small value; copies are the same pool.
type Pool[T any] struct {
	header *arena_c.Pool
	tag    uint64
}

// NewPool makes a pool of the block, with as many chunks as fit. What was in the block is lost. A T that holds Go
// pointers is refused. Cost: O(chunks).
func NewPool[T any](block []byte) (Pool[T], error) {
	if err := CheckPlain(reflect.TypeFor[T]()); err != nil {
		return Pool[T]{}, fmt.Errorf("arena: %w", err)
	}
	if err := checkBlock("Pool", block); err != nil {
		return Pool[T]{}, err
	}
	var zero T
	header := arena_c.PoolMake(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)), uint64(unsafe.Sizeof(zero)),
		arena_c.AlignOf[T]())
	if header == nil {
		return Pool[T]{}, fmt.Errorf("arena: a block of %d bytes has no room for a header and one chunk of %d", len(block),
			unsafe.Sizeof(zero))
	}
	return Pool[T]{header, header.Tag()}, nil
}

// Get gives a zeroed T, or nil when all chunks are live.
func (p Pool[T]) Get() *T { return arena_c.Get[T](p.header, p.tag) }

// Put gives x back. A double put, or an address that is no chunk of this pool, is refused and changes nothing.
func (p Pool[T]) Put(x *T) error {
	if x != nil && p.header.Put(p.tag, unsafe.Pointer(x)) {
		return nil
	}
	_, code := p.header.Find(p.tag, unsafe.Pointer(x))
	return fmt.Errorf("arena: BUG: Pool.Put of a %T: %v", *new(T), code)
}

// Index is the number of x's chunk, for tables beside the pool. An address that is no live chunk of this pool is refused.
func (p Pool[T]) Index(x *T) (int, error) {
	index, code := p.header.Find(p.tag, unsafe.Pointer(x))
	if code != arena_c.OK {
		return 0, fmt.Errorf("arena: BUG: Pool.Index of a %T: %v", *new(T), code)
	}
	return int(index), nil
}

// At is the live value in chunk i; nil: i is out of range, or the chunk is free.
func (p Pool[T]) At(i int) *T {
	if uint64(i) >= p.header.Count() || *p.header.State(uint64(i)) != arena_c.ChunkLive {
		return nil
	}
	return (*T)(p.header.Chunk(uint64(i)))
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

// Cap is the number of chunks, Live how many are taken, Peak the largest number that was at once.
func (p Pool[T]) Cap() int  { return int(p.header.Count()) }
func (p Pool[T]) Live() int { return int(p.header.Live) }
func (p Pool[T]) Peak() int { return int(p.header.Peak()) }
