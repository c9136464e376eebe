package arena

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Handle names a chunk of a HandlePool: an index, and the generation that the chunk had. It is plain data of 8 bytes: it
// may lie in a block, be saved, and be read on another machine. The zero Handle names nothing.
type Handle[T any] uint64

// HandlePool is a Pool whose chunks are named by handles, so that who kept the name of a chunk that was put and taken
// again is told so. It costs 4 bytes a chunk more than a Pool. It is a small value; copies are the same pool.
type HandlePool[T any] struct {
	header *arena_c.Handles
	tag    uint64
}

// NewHandlePool makes a pool of the block, with as many chunks as fit. What was in the block is lost, and with it what
// handles of an older pool there meant: generations begin anew. A T that holds Go pointers is refused. Cost: O(chunks).
func NewHandlePool[T any](block []byte) (HandlePool[T], error) {
	if err := CheckPlain(reflect.TypeFor[T]()); err != nil {
		return HandlePool[T]{}, fmt.Errorf("arena: %w", err)
	}
	if err := checkBlock("HandlePool", block); err != nil {
		return HandlePool[T]{}, err
	}
	var zero T
	header := arena_c.HandlesMake(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)), uint64(unsafe.Sizeof(zero)),
		arena_c.AlignOf[T]())
	if header == nil {
		return HandlePool[T]{}, fmt.Errorf("arena: a block of %d bytes has no room for a header and one chunk of %d", len(block),
			unsafe.Sizeof(zero))
	}
	return HandlePool[T]{header, header.Pool.Tag()}, nil
}

// Get gives a zeroed T and its handle, or nil and the zero Handle when all chunks are live.
func (p HandlePool[T]) Get() (*T, Handle[T]) {
	x, handle := arena_c.GetHandle[T](p.header, p.tag)
	return x, Handle[T](handle)
}

// At is the value that h names, or nil when it was put. A handle is good again by accident only after its chunk was put
// 2^32-1 times more.
func (p HandlePool[T]) At(h Handle[T]) *T { return (*T)(p.header.ChunkOf(p.tag, uint64(h))) }

// Put gives the value back that h names. A handle of what was put already, or of no chunk of this pool, is refused and
// changes nothing.
func (p HandlePool[T]) Put(h Handle[T]) error {
	if code := p.header.PutHandle(p.tag, uint64(h)); code != arena_c.OK {
		return fmt.Errorf("arena: BUG: HandlePool.Put of a %T: %v", *new(T), code)
	}
	return nil
}

// All ranges over the live values and their handles. Put of the current one is fine; whether one that Get gives meanwhile
// comes along is open.
func (p HandlePool[T]) All() iter.Seq2[Handle[T], *T] {
	return func(yield func(Handle[T], *T) bool) {
		for i := range p.header.Pool.Count() {
			if *p.header.Pool.State(i) == arena_c.ChunkLive && !yield(Handle[T](p.header.Name(i)), (*T)(p.header.Pool.Chunk(i))) {
				return
			}
		}
	}
}

// Cap is the number of chunks, Live how many are taken, Peak the largest number that was at once.
func (p HandlePool[T]) Cap() int  { return int(p.header.Pool.Count()) }
func (p HandlePool[T]) Live() int { return int(p.header.Pool.Live) }
func (p HandlePool[T]) Peak() int { return int(p.header.Pool.Peak()) }
