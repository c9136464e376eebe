package arena_c

// #include "pool.h"
// // An address to be checked is passed as a number: it may point to any Go object, and cgo refuses
// // a pointer to an object that holds Go pointers.
// static inline int64_t upfront_pool_judge(const upfront_pool *p, uint64_t gen, uintptr_t chunk) {
//     return upfront_pool_find(p, gen, (const void *)chunk);
// }
// static inline upfront_pool *upfront_pool_make_at(void *block, uint64_t block_size, uint64_t size, uint64_t align,
//                                                   int handles) {
//     return upfront_pool_make(block, block_size, size, align, handles ? upfront_pool_handles(0, 1) : 0);
// }
// #cgo nocallback upfront_pool_make_at
// static inline void upfront_pool_close_at(upfront_pool *p, uint32_t site) UPFRONT_DO_AT_SITE(upfront_pool_close(p))
// #cgo noescape upfront_pool_close_at
// #cgo nocallback upfront_pool_close_at
// #cgo noescape upfront_pool_judge
// #cgo nocallback upfront_pool_judge
// #cgo noescape upfront_pool_next
// #cgo nocallback upfront_pool_next
// #cgo noescape upfront_pool_peak
// #cgo nocallback upfront_pool_peak
import "C"

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Pool is the header of a pool: pool.h.
type Pool struct {
	Gen, Free, Chunks, Numbers, Stride, Inverse uint64
	Count, Retired, Kind, Handles               uint32
}

var (
	_ [unsafe.Sizeof(Pool{})]byte = [unsafe.Sizeof(C.upfront_pool{})]byte{}
	_ [64]byte                    = [unsafe.Sizeof(Pool{})]byte{}
)

// States of a chunk: pool.h.
const (
	ChunkFresh   = C.UPFRONT_CHUNK_FRESH
	ChunkLive    = C.UPFRONT_CHUNK_LIVE
	ChunkFree    = C.UPFRONT_CHUNK_FREE
	ChunkLeaving = C.UPFRONT_CHUNK_LEAVING
	ChunkRetired = C.UPFRONT_CHUNK_RETIRED
)

// HandleIndex is the index in a handle; the generation is above it.
const HandleIndex = C.UPFRONT_HANDLE_INDEX

// Chunk returns the address of a chunk.
func (p *Pool) Chunk(index uint64) unsafe.Pointer {
	return Position(unsafe.Add(unsafe.Pointer(p), p.Chunks+index*p.Stride))
}

// State returns the byte with a chunk's state: pool.h.
func (p *Pool) State(index uint64) *uint8 {
	return (*uint8)(unsafe.Add(unsafe.Pointer(p), p.Chunks-1-index))
}

// Number returns an entry in the stack of numbers; the entries below Free are free chunks.
func (p *Pool) Number(place uint64) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(p), p.Numbers+4*place))
}

// generation is upfront_pool_generation.
func (p *Pool) generation(index uint64) *uint32 { return p.Number(uint64(p.Count) + index) }

// Handle is upfront_pool_handle.
func (p *Pool) Handle(index uint64) uint64 { return uint64(*p.generation(index))<<32 | index }

// Live returns the number of chunks in use, live or leaving.
func (p *Pool) Live() uint64 { return uint64(p.Count) - uint64(p.Retired) - p.Free }

func (p *Pool) c() *C.upfront_pool { return (*C.upfront_pool)(checked(p)) }

func one(is bool) (n int) {
	if is {
		n = 1
	}
	return n
}

// PoolMake is upfront_pool_make.
func PoolMake(r Room, size, align uint64, handles bool) *Pool {
	p := C.upfront_pool_make_at(r.of(RoomPool), C.uint64_t(r.Size), C.uint64_t(size), C.uint64_t(align),
		C.int(one(handles)))
	return made[Pool](r, unsafe.Pointer(p))
}

// Close is upfront_pool_close.
func (p *Pool) Close() {
	crossed(writes(&p.Free), C.upfront_pool_close_at(p.c(), C.uint32_t(Here(1))))
}

// Find is upfront_pool_find.
func (p *Pool) Find(gen uint64, chunk unsafe.Pointer) (index uint64, code Code) {
	return found(crossed(reads(&p.Free), C.upfront_pool_judge(p.c(), C.uint64_t(gen), C.uintptr_t(uintptr(chunk)))))
}

// Next is upfront_pool_next.
func (p *Pool) Next(index uint64) uint64 {
	return uint64(crossed(reads(&p.Free), C.upfront_pool_next(p.c(), C.uint64_t(index))))
}

// NextLive is upfront_pool_next in a pool of that generation. If no live chunk is left or the pool
// has another generation, it returns an index beyond all.
func (p *Pool) NextLive(gen, index uint64) uint64 {
	const beyond = ^uint64(0)
	if p.Gen != gen {
		return beyond
	}
	count := uint64(p.Count)
	// eight states in a word, the lowest index in the top byte
	last, mask := index|7, beyond>>(index%8*8)
	for at := unsafe.Pointer(p.State(last)); last < count; last, at = last+8, unsafe.Add(at, -8) {
		states := *(*uint64)(at) ^ ChunkLive*eachByte
		// the upper bit is set in each byte that isn't 0
		dead := (states&lowBits + lowBits) | states | lowBits
		if live := ^dead & mask; live != 0 {
			return last + 1 - uint64(bits.Len64(live))/8
		}
		if uint8(states) == ChunkFresh^ChunkLive { // so are all chunks after it
			return beyond
		}
		mask = beyond
	}
	for index = max(index, last&^7); index < count; index++ {
		if *p.State(index) == ChunkLive {
			return index
		}
	}
	return beyond
}

const (
	eachByte = ^uint64(0) / 255
	lowBits  = 127 * eachByte
)

// Peak is upfront_pool_peak.
func (p *Pool) Peak() uint64 { return uint64(crossed(reads(&p.Free), C.upfront_pool_peak(p.c()))) }

// Numbers is a stack of numbers of chunks, of the largest possible size.
type Numbers [1 << (28 + ^uint(0)>>63*4)]uint32

// Bases returns the addresses that a fast path needs: chunk 0 and the stack of numbers, which is
// shorter than its type.
//
//go:nocheckptr
func (p *Pool) Bases() (first unsafe.Pointer, numbers *Numbers) {
	return p.Chunk(0), (*Numbers)(unsafe.Pointer(p.Number(0)))
}

// Chunk is a T in a pool. Its size is the stride of a pool for T, unless T has no bytes.
type Chunk[T any] struct {
	_ [0]atomic.Uint64 // aligned to 8 on every target
	_ T
}
