package arena_c

// #include "pool.h"
// // An address to be judged is passed as a number: it may be anybody's, and cgo refuses a pointer to what holds Go pointers.
// static inline int64_t upfront_pool_judge(const upfront_pool *p, uint64_t tag, uintptr_t chunk) {
//     return upfront_pool_find(p, tag, (const void *)chunk);
// }
// #cgo noescape upfront_pool_size
// #cgo nocallback upfront_pool_size
// #cgo noescape upfront_pool_make
// #cgo nocallback upfront_pool_make
// #cgo noescape upfront_pool_close
// #cgo nocallback upfront_pool_close
// #cgo noescape upfront_pool_judge
// #cgo nocallback upfront_pool_judge
// #cgo noescape upfront_pool_next
// #cgo nocallback upfront_pool_next
// #cgo noescape upfront_pool_peak
// #cgo nocallback upfront_pool_peak
import "C"

import "unsafe"

// Pool is the header of a pool: pool.h.
type Pool struct {
	Free, Chunks, Stride, Inverse, Bound, Live, Kind, Open uint64
}

// States of a chunk: pool.h.
const (
	ChunkLive    = 1
	ChunkFree    = 2
	ChunkLeaving = 3
)

// Chunk is the address of a chunk.
func (p *Pool) Chunk(index uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(p), p.Chunks+index*p.Stride)
}

// State is the byte that says what a chunk is: pool.h.
func (p *Pool) State(index uint64) *uint8 {
	return (*uint8)(unsafe.Add(unsafe.Pointer(p), p.Chunks-p.Open-index))
}

// Count is the number of chunks.
func (p *Pool) Count() uint64 { return p.Bound & Offsets }

// Tag is the generation of the pool.
func (p *Pool) Tag() uint64 { return p.Free &^ Offsets }

func (p *Pool) c() *C.upfront_pool { return (*C.upfront_pool)(checked(p)) }

// PoolSize is upfront_pool_size.
func PoolSize(size, align, count uint64) uint64 {
	return uint64(crossed(alone(), C.upfront_pool_size(C.uint64_t(size), C.uint64_t(align), C.uint64_t(count))))
}

// PoolMake is upfront_pool_make.
func PoolMake(block unsafe.Pointer, blockSize, size, align uint64) *Pool {
	return (*Pool)(unsafe.Pointer(C.upfront_pool_make(block, C.uint64_t(blockSize), C.uint64_t(size), C.uint64_t(align))))
}

// Close is upfront_pool_close.
func (p *Pool) Close() {
	crossed(writes(&p.Free), C.upfront_pool_close(p.c()))
}

// Find is upfront_pool_find.
func (p *Pool) Find(tag uint64, chunk unsafe.Pointer) (index uint64, code Code) {
	found := int64(crossed(reads(&p.Free), C.upfront_pool_judge(p.c(), C.uint64_t(tag), C.uintptr_t(uintptr(chunk)))))
	if found < 0 {
		return 0, Code(found)
	}
	return uint64(found), OK
}

// Next is upfront_pool_next.
func (p *Pool) Next(index uint64) uint64 {
	return uint64(crossed(reads(&p.Free), C.upfront_pool_next(p.c(), C.uint64_t(index))))
}

// Peak is upfront_pool_peak.
func (p *Pool) Peak() uint64 { return uint64(crossed(reads(&p.Free), C.upfront_pool_peak(p.c()))) }
