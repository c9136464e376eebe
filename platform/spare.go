package platform

import (
	"sync"
	"unsafe"
)

// block is a range as the system gave it. Owners may use less than its size; it is never split, because a part without
// the head could not be told from a new range, and a list of few whole blocks is searched in no time.
type block struct {
	base unsafe.Pointer // also what keeps the memory alive where it is Go memory
	size uint64
	head uint64 // bytes at the base that are kept with their contents
}

// spares are the blocks that nobody owns. They only ever leave the list for a new owner.
type spares struct {
	mutex  sync.Mutex
	blocks []block
}

// spare is the process's list: addresses are the process's, too.
var spare spares

// take removes and returns the smallest block that fits, the longest released one among equals.
func (s *spares) take(size, align, head uint64) (block, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	best := -1
	for i, b := range s.blocks {
		if !b.fits(size, align, head) {
			continue
		}
		if best < 0 || b.size < s.blocks[best].size {
			best = i
		}
	}
	if best < 0 {
		return block{}, false
	}
	b := s.blocks[best]
	s.blocks = append(s.blocks[:best], s.blocks[best+1:]...)
	return b, true
}

func (s *spares) put(b block) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.blocks = append(s.blocks, b)
}

// fits tells whether an owner may have b. Another owner's head must stay a head of the same size: a stale handle that
// looks into it would take the new owner's objects for its tables.
func (b block) fits(size, align, head uint64) bool {
	return b.size >= size && uint64(uintptr(b.base))&(align-1) == 0 && (b.head == 0 || b.head == head)
}
