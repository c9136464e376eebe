package arena

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// BlockPool is equal chunks for values of T over a block. It is a small value; copies are the same
// pool. A chunk is put by its address: a pool of a scope, [HandleChunks], has handles.
type BlockPool[T any] struct {
	header  *arena_c.Pool
	gen     uint64
	first   unsafe.Pointer
	numbers *arena_c.Numbers
}

// NewBlockPool makes a pool of the block, with as many chunks as fit. What was in the block is lost. A T that holds Go
// pointers is refused. Cost: O(chunks).
func NewBlockPool[T any](block []byte) (p BlockPool[T], err error) {
	if err := CheckPlain(reflect.TypeFor[T]()); err != nil {
		return p, fmt.Errorf("arena: %w", err)
	}
	var zero T
	if unsafe.Sizeof(zero) == 0 {
		return p, fmt.Errorf("arena: a pool of %T, which has no bytes: no address tells one from another", zero)
	}
	room, err := roomIn(block, "BlockPool", arena_c.RoomPool, arena_c.LineSize)
	if err != nil {
		return p, err
	}
	header := arena_c.PoolMake(room.Chunks(reflect.TypeFor[T](), nil), uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T](), false)
	if header == nil {
		return p, fmt.Errorf("arena: a block of %d bytes has no room for a header and one chunk of %d", len(block),
			unsafe.Sizeof(zero))
	}
	first, numbers := header.Bases()
	return BlockPool[T]{header, header.Gen, first, numbers}, nil
}

// Get gives a zeroed T, or nil when all chunks are live.
func (p BlockPool[T]) Get() *T { return arena_c.Get[T](p.header, p.gen, p.first, p.numbers) }

// GetUnzeroed is Get of a T that holds anything, most often what was put last: for who writes all of it.
func (p BlockPool[T]) GetUnzeroed() *T {
	return arena_c.GetUnzeroed[T](p.header, p.gen, p.first, p.numbers)
}

// Put gives x back. A double put, or an address that is no chunk of this pool, is refused and changes nothing.
func (p BlockPool[T]) Put(x *T) error {
	if arena_c.Put(p.header, p.gen, p.first, p.numbers, x) {
		return nil
	}
	_, code := p.header.Find(p.gen, unsafe.Pointer(x))
	return fmt.Errorf("arena: BUG: BlockPool.Put of a %T: %v", *new(T), code)
}

// Index is the number of x's chunk, for tables beside the pool. An address that is no live chunk of this pool is refused.
func (p BlockPool[T]) Index(x *T) (int, error) {
	index, code := p.its().Find(p.gen, unsafe.Pointer(x))
	if code != arena_c.OK {
		return 0, fmt.Errorf("arena: BUG: BlockPool.Index of a %T: %v", *new(T), code)
	}
	return int(index), nil
}

// At is the live value in chunk i; nil: i is out of range, or the chunk is free.
func (p BlockPool[T]) At(i int) *T {
	if uint64(i) >= uint64(p.its().Count) || *p.header.State(uint64(i)) != arena_c.ChunkLive {
		return nil
	}
	return (*T)(p.header.Chunk(uint64(i)))
}

// All ranges over the live values and the numbers of their chunks. Put of the current one is fine; whether one that Get
// gives meanwhile comes along is open.
func (p BlockPool[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range p.Cap() {
			if x := p.At(i); x != nil && !yield(i, x) {
				return
			}
		}
	}
}

// Cap is the number of chunks, Live how many are taken, Peak the largest number that was at once.
func (p BlockPool[T]) Cap() int  { return int(p.its().Count) }
func (p BlockPool[T]) Live() int { return int(p.its().Live()) }
func (p BlockPool[T]) Peak() int { return int(p.its().Peak()) }

// MustEmpty says that no chunk may be live when the memory of the pool ends, as where each is a place at a table that must be
// given back: those that are, are a leak then, as a block of a Heap is. Else a pool ends with what is in it. On memory of no
// budget it does nothing, as Heap.MayLive.
func (p BlockPool[T]) MustEmpty() {
	arena_c.SayOfRoom(arena_c.RoomPool, unsafe.Pointer(p.its()), arena_c.RoomMustEmpty)
}

func (p BlockPool[T]) its() *arena_c.Pool { return made(p.header, "BlockPool") }
