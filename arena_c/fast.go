//go:build cgo && !upfront_cgo && !asan && !checked

package arena_c

import "unsafe"

// The fast paths in Go: each repeats a C function, mostly a `static inline` of a header. They are
// written for the inliner, whose budget is 80. The fast paths of arenas on a block are in
// fast_block.go.

// Crossing reports whether the fast paths of this build call C.
const Crossing = false

// Two nested ifs cost the inliner less than one condition.

// New is upfront_scopes_bump for one zeroed T. It panics with a Refusal instead of returning nil.
func New[T any](h *Scopes, gen uint64) (x *T) {
	at := (h.Cursor + uint64(unsafe.Alignof(*x)-1)) & -uint64(unsafe.Alignof(*x))
	if narrow {
		at = (h.Cursor + AlignOf[T]() - 1) & -AlignOf[T]()
	}
	if h.Gen == gen {
		if at+uint64(unsafe.Sizeof(*x)) <= h.Limit {
			h.Cursor = at + uint64(unsafe.Sizeof(*x))
			x = (*T)(unsafe.Add(unsafe.Pointer(h), at))
			if Race {
				raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
			}
			// unsafe.Slice would check that it ends within the address space
			clear((*[1]T)(unsafe.Pointer(x))[:])
			return
		}
		h.Asked = Asked | uint64(unsafe.Sizeof(*x))
	} else {
		h.Misused = gen
	}
	panic(Refusal{h, gen})
}

// TryNew is New, but returns nil instead of panicking.
func TryNew[T any](h *Scopes, gen uint64) (x *T) {
	at := (h.Cursor + uint64(unsafe.Alignof(*x)-1)) & -uint64(unsafe.Alignof(*x))
	if narrow {
		at = (h.Cursor + AlignOf[T]() - 1) & -AlignOf[T]()
	}
	if h.Gen == gen {
		if at+uint64(unsafe.Sizeof(*x)) <= h.Limit {
			h.Cursor = at + uint64(unsafe.Sizeof(*x))
			x = (*T)(unsafe.Add(unsafe.Pointer(h), at))
			if Race {
				raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
			}
			clear((*[1]T)(unsafe.Pointer(x))[:])
			return
		}
		h.Asked = Asked | uint64(unsafe.Sizeof(*x))
	} else {
		h.Misused = gen
	}
	return
}

// Alloc is upfront_scopes_bump for any size and align. An align that isn't a power of two up to
// LineSize, to which headers are aligned, spoils the generation: see badAlign. It panics with a
// Refusal instead of returning nil.
func (h *Scopes) Alloc(gen, size, align uint64) unsafe.Pointer {
	size = min(size, OffsetMax)
	align-- // a mask from here on
	at := (h.Cursor + align) &^ align
	if gen += align & (align + 1 | aboveLine) * badAlign; h.Gen == gen {
		if at+size <= h.Limit {
			h.Cursor = at + size
			return unsafe.Add(unsafe.Pointer(h), at)
		}
		h.Asked = Asked | size | align<<AskedAt
	} else {
		h.Misused = gen
	}
	panic(Refusal{h, gen})
}

// AllocMask is Alloc without a check of the align: mask is align - 1, below 4 * LineSize.
func (h *Scopes) AllocMask(gen, size, mask uint64) unsafe.Pointer {
	at := (h.Cursor + mask) &^ mask
	if h.Gen == gen {
		if end := at + size; end <= h.Limit && end >= at {
			h.Cursor = end
			return unsafe.Add(unsafe.Pointer(h), at)
		}
		h.Asked = Asked | min(size, OffsetMax) | mask<<AskedAt
	} else {
		h.Misused = gen
	}
	panic(Refusal{h, gen})
}

// TryAlloc is Alloc, but returns nil instead of panicking.
func (h *Scopes) TryAlloc(gen, size, align uint64) unsafe.Pointer {
	size = min(size, OffsetMax)
	align-- // a mask from here on
	at := (h.Cursor + align) &^ align
	if gen += align & (align + 1 | aboveLine) * badAlign; h.Gen == gen {
		if at+size <= h.Limit {
			h.Cursor = at + size
			return unsafe.Add(unsafe.Pointer(h), at)
		}
		h.Asked = Asked | size | align<<AskedAt
	} else {
		h.Misused = gen
	}
	return nil
}

// refuse is upfront_arena_refuse.
func (h *Header) refuse(gen, size uint64) {
	if h.Gen == gen {
		h.Asked = Asked | size
	} else {
		h.Misused = gen
	}
}

// Bump is upfront_arena_bump. pre: size < OffsetMax.
func (h *Header) Bump(gen, size, mask uint64) (p unsafe.Pointer, ok bool) {
	from := uint64(uintptr(unsafe.Pointer(h)))
	at := (from+h.Cursor+mask)&^mask - from
	if h.Gen == gen {
		if at+size <= h.Limit {
			h.Cursor = at + size
			return unsafe.Add(unsafe.Pointer(h), at), true
		}
		h.Asked = Asked | size | mask<<AskedAt
	} else {
		h.Misused = gen
	}
	return
}

// Bump is upfront_scopes_bump.
func (h *Scopes) Bump(gen, size, mask uint64) (p unsafe.Pointer, ok bool) {
	return (*Header)(unsafe.Pointer(h)).Bump(gen, size, mask)
}

// Grow is upfront_scopes_grow.
func (h *Scopes) Grow(gen, from, size uint64) (p unsafe.Pointer, ok bool) {
	return (*Header)(unsafe.Pointer(h)).Bump(gen, size, 0)
}

// Node is upfront_scopes_node. mask is at least 7, and below LineSize.
func (h *Scopes) Node(gen, size, mask uint64) (object unsafe.Pointer) {
	at := (h.Cursor + NodeSize + mask) &^ mask
	if h.Gen != gen || at+size > h.Limit {
		h.header().refuse(gen, size+NodeSize)
		return nil
	}
	h.Cursor = at + size
	return unsafe.Add(unsafe.Pointer(h), at)
}

// NewNode is upfront_scopes_node for one zeroed T, then upfront_scopes_link. It panics with a
// Refusal instead of returning nil.
func NewNode[T any](h *Scopes, gen, class uint64) (x *T) {
	at := (h.Cursor + 2*NodeSize - 1) &^ (NodeSize - 1) // no type is aligned to more
	if h.Gen == gen {
		if at+uint64(unsafe.Sizeof(*x)) <= h.Limit {
			h.Cursor = at + uint64(unsafe.Sizeof(*x))
			x = (*T)(unsafe.Add(unsafe.Pointer(h), at))
			if Race {
				raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
			}
			clear((*[1]T)(unsafe.Pointer(x))[:])
			*(*uint64)(unsafe.Add(unsafe.Pointer(x), -NodeSize)) = class*NodeClass | h.Chain
			h.Chain = at
			return
		}
		h.Asked = Asked | uint64(unsafe.Sizeof(*x)) + NodeSize
	} else {
		h.Misused = gen
	}
	panic(Refusal{h, gen})
}

// Open is upfront_scopes_open.
func (h *Scopes) Open() (gen uint64) {
	r := h.Record(h.Depth)
	r.Asked = h.Asked
	gen = h.Next + 1
	r = (*Record)(unsafe.Add(unsafe.Pointer(r), unsafe.Sizeof(*r)))
	r.Mark, r.Chain, r.Gen, r.Edge = h.Cursor, h.Chain, gen, 0
	h.Next, h.Gen, h.Asked = gen, gen, 0
	h.Depth++
	return gen
}

// Close is upfront_scopes_close without the marks; r is the topmost scope's record.
func (h *Scopes) Close(r *Record) {
	h.Least = min(h.Least, h.Limit-h.Cursor)
	if Race {
		raceDead(h.At(r.Mark), uintptr(h.Cursor-r.Mark))
	}
	h.Cursor = r.Mark
	r.Gen = 0
	below := (*Record)(unsafe.Add(unsafe.Pointer(r), -int(unsafe.Sizeof(*r))))
	h.Gen, h.Asked = below.Gen, below.Asked
	h.Depth--
}

// Cut is upfront_arena_cut.
func (h *Scopes) Cut(to uint64) {
	h.Least = min(h.Least, h.Limit-h.Cursor)
	if Race {
		raceDead(h.At(to), uintptr(h.Cursor-to))
	}
	h.Cursor = to
}

// Get is upfront_pool_get for one zeroed T. The pool is for T; first and numbers are its Bases.
func Get[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T) {
	if p.Gen == gen {
		if i := p.Free; i != 0 {
			i--
			p.Free = i
			i = uint64(numbers[i])
			*(*uint8)(unsafe.Add(first, ^i)) = ChunkLive // -1 - i
			x = (*T)(unsafe.Add(first, i*uint64(unsafe.Sizeof(Chunk[T]{}))))
			if Race {
				raceTaken(unsafe.Pointer(x), unsafe.Sizeof(*x), unsafe.Sizeof(Chunk[T]{}))
			}
			clear((*[1]T)(unsafe.Pointer(x))[:])
		}
	}
	return
}

// GetUnzeroed is upfront_pool_get.
func GetUnzeroed[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T) {
	if p.Gen == gen {
		if i := p.Free; i != 0 {
			i--
			p.Free = i
			i = uint64(numbers[i])
			*(*uint8)(unsafe.Add(first, ^i)) = ChunkLive
			x = (*T)(unsafe.Add(first, i*uint64(unsafe.Sizeof(Chunk[T]{}))))
			if Race {
				raceTaken(unsafe.Pointer(x), unsafe.Sizeof(*x), unsafe.Sizeof(Chunk[T]{}))
			}
		}
	}
	return
}

// Put is upfront_pool_put; it returns false in place of a code. The stride is a constant, so the
// division is a shift or a multiplication. scope.Pool.Put repeats it for the inliner.
func Put[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers, x *T) (ok bool) {
	offset := uintptr(unsafe.Pointer(x)) - uintptr(first)
	i := offset / unsafe.Sizeof(Chunk[T]{})
	if p.Gen == gen && i < uintptr(p.Count) && i*unsafe.Sizeof(Chunk[T]{}) == offset {
		if state := (*uint8)(unsafe.Add(first, ^i)); *state == ChunkLive {
			if Race {
				raceDead(unsafe.Pointer(x), unsafe.Sizeof(Chunk[T]{}))
			}
			*state = ChunkFree
			numbers[p.Free] = uint32(i)
			p.Free++
			ok = true
		}
	}
	return
}

// At is upfront_pool_at.
func (p *Pool) At(gen, handle uint64) unsafe.Pointer {
	index := handle & HandleIndex
	if p.Gen != gen || index >= uint64(p.Count) || p.Handle(index) != handle || *p.State(index) != ChunkLive {
		return nil
	}
	return p.Chunk(index)
}

// GetHandle is upfront_pool_get_handle for one zeroed T.
func GetHandle[T any](p *Pool, gen uint64, first unsafe.Pointer, numbers *Numbers) (x *T, handle uint64) {
	if x = Get[T](p, gen, first, numbers); x != nil {
		handle = p.Handle(uint64(numbers[p.Free]))
	}
	return x, handle
}

// TakeHandle is upfront_pool_get_handle for a pool of any chunk size.
func (p *Pool) TakeHandle(gen uint64) (chunk unsafe.Pointer, handle uint64) {
	if p.Gen != gen || p.Free == 0 {
		return nil, 0
	}
	p.Free--
	index := uint64(*p.Number(p.Free))
	*p.State(index) = ChunkLive
	chunk = p.Chunk(index)
	if Race {
		raceWrite(chunk, uintptr(p.Stride))
	}
	return chunk, p.Handle(index)
}

// PutHandle is upfront_pool_put_handle.
func (p *Pool) PutHandle(gen, handle uint64) Code {
	index, puts := handle&HandleIndex, uint32(handle>>32)&p.Handles
	chunk := p.At(gen, handle)
	switch {
	case p.Gen != gen:
		return Stale
	case chunk == nil && (index >= uint64(p.Count) || puts == 0 ||
		(uint32(handle>>32)^*p.generation(index))&^p.Handles != 0):
		return Foreign
	case chunk == nil:
		return Double
	}
	if Race {
		raceDead(chunk, uintptr(p.Stride))
	}
	*p.Number(p.Free) = uint32(index) // also for a chunk that retires, above the top, as C does
	if puts == p.Handles {
		*p.State(index) = ChunkRetired
		p.Retired++
		return OK
	}
	*p.generation(index)++
	*p.State(index) = ChunkFree
	p.Free++
	return OK
}
