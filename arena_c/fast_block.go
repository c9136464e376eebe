//go:build cgo && !upfront_cgo && !asan && !checked

package arena_c

import "unsafe"

// The fast paths of both ends, stacks and rings, as in fast.go.

// BumpFar is upfront_ends_bump_far.
func (e *Ends) BumpFar(gen, size, mask uint64) unsafe.Pointer {
	h := &e.Header
	from := uint64(uintptr(unsafe.Pointer(h)))
	at := (from+h.Limit-size)&^mask - from
	if h.Gen != gen || at-h.Cursor > h.Limit-h.Cursor {
		h.refuse(gen, size)
		return nil
	}
	h.Limit = at
	return unsafe.Add(unsafe.Pointer(h), at)
}

// MarkNear is upfront_ends_mark.
func (e *Ends) MarkNear() uint64 {
	e.Mark = e.Cursor
	return e.Mark
}

// MarkFar is upfront_ends_mark_far.
func (e *Ends) MarkFar() uint64 {
	e.FarMark = e.Limit
	return e.FarMark
}

// Push is upfront_stack_push: mask is align - 1, at least 15.
func (s *Stack) Push(gen, size, mask uint64) (p unsafe.Pointer) {
	h := &s.Header
	from := uint64(uintptr(unsafe.Pointer(h)))
	at := (from+h.Cursor+StackMask+1+mask)&^mask - from
	if h.Gen != gen {
		h.Misused = gen
	} else if at+size > h.Limit {
		h.Asked = Asked | size
	} else {
		p = unsafe.Add(unsafe.Pointer(h), at)
		*(*below)(unsafe.Add(p, -StackMask-1)) = below{h.Cursor, s.Last}
		s.Last = at
		h.Cursor = at + size
	}
	return
}

// PushFar is upfront_stack_push_far: mask is align - 1, at least 15.
func (s *Stack) PushFar(gen, size, mask uint64) (p unsafe.Pointer) {
	h := &s.Header
	from := uint64(uintptr(unsafe.Pointer(h)))
	at := (from+h.Limit-size)&^mask - from
	if h.Gen != gen {
		h.Misused = gen
	} else if int64(at) < int64(h.Cursor+StackMask+1) { // it may be before the header
		h.Asked = Asked | size
	} else {
		p = unsafe.Add(unsafe.Pointer(h), at)
		*(*below)(unsafe.Add(p, -StackMask-1)) = below{h.Limit, s.FarLast}
		s.FarLast = at
		h.Limit = at - (StackMask + 1)
	}
	return
}

// Push is upfront_ring_push: mask is align - 1, at least 7.
func (r *Ring) Push(gen, size, mask uint64) unsafe.Pointer {
	h := &r.Header
	from := uint64(uintptr(unsafe.Pointer(h)))
	word := (h.Cursor + ringWord - 1) &^ (ringWord - 1)
	at := (from+word+ringWord+mask)&^mask - from
	if h.Gen != gen || at+size > h.Limit {
		return nil
	}
	*(*uint64)(unsafe.Add(unsafe.Pointer(h), word)) = (at-word-ringWord)*RingPadding | size
	h.Cursor = at + size
	r.Count++
	return unsafe.Add(unsafe.Pointer(h), at)
}

// Front is upfront_ring_front.
func (r *Ring) Front() (p unsafe.Pointer, size uint64) {
	stop := r.Seam
	if stop == 0 {
		stop = r.Cursor
	}
	if stop >= r.Oldest+ringWord {
		word := *(*uint64)(r.At(r.Oldest))
		at := r.Oldest + ringWord + word/RingPadding
		if size = word % RingPadding; at+size > stop {
			at, size = r.Oldest+ringWord, 0
		}
		p = r.At(at)
	}
	return
}

// Pop is upfront_ring_pop. If it returns false, Find returns the code.
func (r *Ring) Pop(gen uint64, p unsafe.Pointer) bool {
	stop := r.Seam
	if stop == 0 {
		stop = r.Cursor
	}
	if stop < r.Oldest+ringWord || r.Gen != gen {
		return false
	}
	word := *(*uint64)(r.At(r.Oldest))
	at := r.Oldest + ringWord + word/RingPadding
	after := at + word%RingPadding
	if r.At(at) != p || after > stop {
		return false
	}
	r.Least = r.Size() - r.Peak()
	if Race {
		raceDead(p, uintptr(after-at))
	}
	r.Oldest = (after + ringWord - 1) &^ (ringWord - 1)
	if r.Count--; r.Count == 0 {
		r.Cursor = r.Start
	}
	if r.Count == 0 || r.Seam == after {
		r.Oldest = r.Start
		r.Seam = 0
		r.Limit = r.End
	} else if r.Oldest < r.Seam {
		r.Limit = r.Oldest
	}
	return true
}
