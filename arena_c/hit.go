//go:build cgo && !upfront_cgo && !asan && !checked

package arena_c

import "unsafe"

// The hits, in Go. Each says its `static inline` of the C headers again, line by line; where a line looks odd, the header says
// why. They are written for the inliner, whose budget is 80: tests/conformance/inline_test.go holds their cost.

// Crossing says whether the hits of this build cross into C.
const Crossing = false

// NewOn is upfront_linear_bump for one zeroed T. need is the tag plus the size of T.
func NewOn[T any](l *Linear, need uint64) (x *T, ok bool) {
	at := (l.Cursor + uint64(unsafe.Alignof(*x)-1)) & -uint64(unsafe.Alignof(*x))
	if narrow {
		at = (l.Cursor + AlignOf[T]() - 1) & -AlignOf[T]()
	}
	if l.Limit-need-at >= OffsetMax {
		l.Refused = need
		return
	}
	l.Cursor = at + uint64(unsafe.Sizeof(*x))
	l.Count += Object + uint64(unsafe.Sizeof(*x))
	x = (*T)(unsafe.Add(unsafe.Pointer(l), l.Origin+at))
	if Race {
		raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	clear((*[1]T)(unsafe.Pointer(x))[:]) // unsafe.Slice would check that it ends within the address space
	return x, true
}

// Bump is upfront_linear_bump: need is tag + size, mask is align - 1.
func (l *Linear) Bump(need, size, mask uint64) (p unsafe.Pointer, ok bool) {
	at := (l.Cursor + mask) &^ mask
	if l.Limit-need-at >= OffsetMax {
		l.Refused = need
		return nil, false
	}
	l.Cursor = at + size
	l.Count += Object + size
	return unsafe.Add(unsafe.Pointer(l), l.Origin+at), true
}

// Grow is upfront_linear_grow: size bytes more for what was handed out last.
func (l *Linear) Grow(need, size uint64) (p unsafe.Pointer, ok bool) {
	at := l.Cursor
	if l.Limit-need-at >= OffsetMax {
		l.Refused = need
		return nil, false
	}
	l.Cursor = at + size
	l.Count += size
	return unsafe.Add(unsafe.Pointer(l), l.Origin+at), true
}

// BumpFar is upfront_ends_bump_far.
func (e *Ends) BumpFar(tag, size, mask uint64) unsafe.Pointer {
	l := &e.Linear
	at := (l.Limit - tag - size) &^ mask
	if at-l.Cursor >= OffsetMax {
		l.Refused = tag + size
		return nil
	}
	l.Limit = tag | at
	e.FarEnd.Count += Object + size
	return l.At(at)
}

// Mark is upfront_ends_mark.
func (e *Ends) Mark() uint64 {
	e.FarEnd.Mark = e.Linear.Cursor
	return e.FarEnd.Mark
}

// MarkFar is upfront_ends_mark_far.
func (e *Ends) MarkFar() uint64 {
	e.FarEnd.FarMark = e.Linear.FarAt()
	return e.FarEnd.FarMark
}

// Push is upfront_stack_push: mask is align - 1, at least 15.
func (s *Stack) Push(tag, size, mask uint64) (p unsafe.Pointer) {
	l := &s.Linear
	cursor := l.Cursor
	at := (cursor + uint64(unsafe.Sizeof(below{})) + mask) &^ mask
	if l.Limit-tag-size-at >= OffsetMax {
		l.Refused = tag + size
		return
	}
	p = unsafe.Add(unsafe.Pointer(l), l.Origin+at)
	*(*below)(unsafe.Add(p, -int(unsafe.Sizeof(below{})))) = below{cursor, l.Chain}
	l.Chain = at
	l.Cursor = at + size
	l.Count += Object + size
	return p
}

// PushFar is upfront_stack_push_far: mask is align - 1, at least 15.
func (s *Stack) PushFar(tag, size, mask uint64) (p unsafe.Pointer) {
	l := &s.Linear
	was := l.Limit - tag
	at := (was-size)&^mask - uint64(unsafe.Sizeof(below{}))
	if at-l.Cursor >= OffsetMax {
		l.Refused = tag + size
		return
	}
	l.Limit = tag | at
	p = unsafe.Add(unsafe.Pointer(l), l.Origin+at)
	*(*below)(p) = below{was, s.FarEnd.Chain}
	s.FarEnd.Chain = at + uint64(unsafe.Sizeof(below{}))
	s.FarEnd.Count += Object + size
	return unsafe.Add(p, unsafe.Sizeof(below{}))
}

// Push, of a ring, is upfront_ring_push: mask is align - 1, at least 7.
func (r *Ring) Push(tag, size, mask uint64) unsafe.Pointer {
	word := (r.Cursor + ringWord - 1) &^ (ringWord - 1)
	at := (word + ringWord + mask) &^ mask
	if r.Limit-tag-size-at >= OffsetMax {
		return nil
	}
	*(*uint64)(r.At(word)) = (at-word-ringWord)*Generation | size
	r.Cursor = at + size
	r.Count++
	return r.At(at)
}

// Front is upfront_ring_front.
func (r *Ring) Front() (p unsafe.Pointer, size uint64) {
	if r.Count != 0 {
		word := *(*uint64)(r.At(r.Oldest))
		p, size = r.At(r.Oldest+ringWord+word/Generation), word&Offsets
	}
	return
}

// Pop is upfront_ring_pop; false is a caller's bug, and Find says which.
func (r *Ring) Pop(tag uint64, p unsafe.Pointer) bool {
	if r.Count == 0 || r.Tag() != tag {
		return false
	}
	stop := r.Seam
	if stop == 0 {
		stop = r.Cursor
	}
	word := *(*uint64)(r.At(r.Oldest))
	at := r.Oldest + ringWord + word/Generation
	after := at + word&Offsets
	if r.At(at) != p || after > stop {
		return false
	}
	r.TopUsed = r.Peak()
	if Race {
		raceDead(p, uintptr(word&Offsets))
	}
	r.Oldest = (after + ringWord - 1) &^ (ringWord - 1)
	if r.Count--; r.Count == 0 {
		r.Cursor = r.Start()
	}
	if r.Count == 0 || r.Seam == after {
		r.Oldest = r.Start()
		r.Seam = 0
		r.Limit = tag | r.End
	} else if r.Seam != 0 {
		r.Limit = tag | r.Oldest
	}
	return true
}
