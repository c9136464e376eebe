package arena

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// BlockPool divides a block into equal chunks for values of T. A chunk is identified by its
// address. A scope.HandlePool has handles instead.
type BlockPool[T any] struct {
	header  *arena_c.Pool
	gen     uint64
	first   unsafe.Pointer
	numbers *arena_c.Numbers
}

// NewBlockPool makes a pool on the block, with as many chunks as fit. The block's contents are
// lost. NewBlockPool returns an error if T holds Go pointers. Cost: O(chunks).
func NewBlockPool[T any](block []byte) (p BlockPool[T], err error) {
	if err := CheckPlain(reflect.TypeFor[T]()); err != nil {
		return p, fmt.Errorf("arena: %w", err)
	}
	var zero T
	if unsafe.Sizeof(zero) == 0 {
		return p, fmt.Errorf("arena: a pool of %T, whose values have no bytes and so no addresses of their own", zero)
	}
	room, err := roomIn(block, "BlockPool", arena_c.RoomPool, arena_c.LineSize)
	if err != nil {
		return p, err
	}
	header := arena_c.PoolMake(room.Chunks(reflect.TypeFor[T](), nil), uint64(unsafe.Sizeof(zero)),
		arena_c.AlignOf[T](), false)
	if header == nil {
		return p, fmt.Errorf("arena: a block of %d bytes has no room for a header and one chunk of %d", len(block),
			unsafe.Sizeof(zero))
	}
	first, numbers := header.Bases()
	return BlockPool[T]{header, header.Gen, first, numbers}, nil
}

// Get returns a zeroed T, or nil when no chunk is free.
func (p BlockPool[T]) Get() *T { return arena_c.Get[T](p.header, p.gen, p.first, p.numbers) }

// GetUnzeroed is Get for a caller that writes all of T. The bytes of the T are arbitrary; usually
// they are the chunk's last value.
func (p BlockPool[T]) GetUnzeroed() *T {
	return arena_c.GetUnzeroed[T](p.header, p.gen, p.first, p.numbers)
}

// Put frees x. If x isn't a live chunk of this pool, Put returns an error and changes nothing.
func (p BlockPool[T]) Put(x *T) error {
	if arena_c.Put(p.header, p.gen, p.first, p.numbers, x) {
		return nil
	}
	_, code := p.header.Find(p.gen, unsafe.Pointer(x))
	return fmt.Errorf("arena: BUG: BlockPool.Put of a %T: %s", *new(T), code.OfPool())
}

// Index returns the number of x's chunk, for tables parallel to the pool. It returns an error if x
// isn't a live chunk of this pool.
func (p BlockPool[T]) Index(x *T) (int, error) {
	index, code := p.its().Find(p.gen, unsafe.Pointer(x))
	if code != arena_c.OK {
		return 0, fmt.Errorf("arena: BUG: BlockPool.Index of a %T: %s", *new(T), code.OfPool())
	}
	return int(index), nil
}

// At returns the live value in chunk i, or nil if the chunk is free or i is out of range.
func (p BlockPool[T]) At(i int) *T {
	if uint64(i) >= uint64(p.its().Count) || *p.header.State(uint64(i)) != arena_c.ChunkLive {
		return nil
	}
	return (*T)(p.header.Chunk(uint64(i)))
}

// All ranges over the live values and the numbers of their chunks. The loop may Put the current
// value. It may or may not visit a value that Get returns during the loop.
func (p BlockPool[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range p.Cap() {
			if x := p.At(i); x != nil && !yield(i, x) {
				return
			}
		}
	}
}

// Cap returns the number of chunks, Live the number of live chunks, and Peak the highest Live.
func (p BlockPool[T]) Cap() int  { return int(p.its().Count) }
func (p BlockPool[T]) Live() int { return int(p.its().Live()) }
func (p BlockPool[T]) Peak() int { return int(p.its().Peak()) }

// MustEmpty makes the pool report leaks as a Heap does: each chunk that is still live when the
// pool's memory is freed is a leak. Call it if all chunks must be put. Without it a pool may end
// with live chunks. On memory outside a budget it does nothing, like [Heap.MayLive].
func (p BlockPool[T]) MustEmpty() {
	arena_c.RoomMayLive(arena_c.RoomPool, p.Block(), false)
}

// Block returns the first byte of the pool's block.
func (p BlockPool[T]) Block() unsafe.Pointer { return unsafe.Pointer(p.its()) }

func (p BlockPool[T]) its() *arena_c.Pool { return made(p.header, "BlockPool") }
