//go:build cgo && !upfront_cgo && !asan && !checked

package arena_c

import (
	"math/bits"
	"unsafe"
)

// The fast paths of pools: fast.go has the others.

// Get is upfront_pool_get for one zeroed T; the pool's chunks are made for T.
func Get[T any](p *Pool, tag uint64) (x *T) {
	next := p.Free - tag
	if next-1 < OffsetMax {
		x = (*T)(unsafe.Add(unsafe.Pointer(p), p.Chunks+(next-1)*p.Stride))
		p.Free = tag + *(*uint64)(unsafe.Pointer(x))
		*(*uint8)(unsafe.Add(unsafe.Pointer(p), p.Chunks-next)) = ChunkLive
		p.Live++
		if Race {
			raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
		}
		clear((*[1]T)(unsafe.Pointer(x))[:])
	}
	return
}

// Put is upfront_pool_put; false is a caller's bug, and Find says which.
func (p *Pool) Put(tag uint64, chunk unsafe.Pointer) (ok bool) {
	offset := uint64(uintptr(chunk)) - uint64(uintptr(unsafe.Pointer(p))) - p.Chunks
	index, _ := bits.Mul64(offset, p.Inverse)
	if (p.Bound-tag-1-index)|index >= OffsetMax || index*p.Stride != offset {
		return
	}
	state := (*uint8)(unsafe.Add(unsafe.Pointer(p), p.Chunks-1-index))
	if *state != ChunkLive {
		return
	}
	if Race {
		raceDead(chunk, uintptr(p.Stride))
	}
	*state = ChunkFree
	*(*uint64)(chunk) = p.Free - tag
	p.Free = tag + index + 1
	p.Live--
	return true
}

// GetHandle is upfront_handles_get for one zeroed T.
func GetHandle[T any](h *Handles, tag uint64) (x *T, handle uint64) {
	index := h.Pool.Free - tag - 1
	if x = Get[T](&h.Pool, tag); x != nil {
		handle = h.Name(index)
	}
	return
}

// ChunkOf is upfront_handles_at.
func (h *Handles) ChunkOf(tag, handle uint64) unsafe.Pointer {
	index := handle & HandleIndex
	if h.Pool.Bound-tag-1-index >= OffsetMax || h.Name(index) != handle || *h.Pool.State(index) != ChunkLive {
		return nil
	}
	return h.Pool.Chunk(index)
}

// PutHandle is upfront_handles_put.
func (h *Handles) PutHandle(tag, handle uint64) Code {
	chunk := h.ChunkOf(tag, handle)
	if chunk == nil {
		if count := h.Pool.Bound - tag; count < OffsetMax && handle&HandleIndex >= count {
			return Foreign
		}
		return Stale
	}
	generation := h.Generation(handle & HandleIndex)
	if *generation++; *generation == 0 {
		*generation = 1
	}
	h.Pool.Put(tag, chunk)
	return OK
}
