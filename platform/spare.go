package platform

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// block is a range as the system returned it. Its owner may use less than its size. A block is
// never split and never merged: its head stays at its address for ever, so no larger range could
// begin before it or reach over it. Sizes are rounded up to classes instead, so that few blocks
// serve many sizes.
type block struct {
	base unsafe.Pointer // in a race build it also keeps the Go memory alive
	size uint64
	head Head // at the base, kept with its contents

	placed bool // at a chosen base, and kept for that base
	sparse bool // only for ReserveSparse
	locked bool // Release must unlock it
	huge   bool // Release must withdraw the advice for huge pages
	dirty  bool // Release failed in part
}

// want is a request for a block; base 0 is anywhere.
type want struct {
	base   uintptr
	size   uint64
	head   Head
	sparse bool
}

// spares are the blocks without an owner. A block leaves the list only for a new owner.
type spares struct {
	mutex  sync.Mutex
	blocks []block
	held   []span // all ranges of the package, with an owner or without, in the order of addresses
}

type span struct{ first, end uint64 }

func (s span) compare(other span) int { return cmp.Compare(s.first, other.first) }

func (b block) span() span {
	first := uint64(uintptr(b.base))
	return span{first, first + b.size}
}

// hold adds the block's range to held, or changes its size there. pre: the mutex is held.
func (s *spares) hold(b block) {
	now := b.span()
	i, known := slices.BinarySearchFunc(s.held, now, span.compare)
	if !known {
		s.held = slices.Insert(s.held, i, now)
	}
	s.held[i] = now
}

// appendHeld appends all ranges of the package to list.
func (s *spares) appendHeld(list []span) []span {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append(list, s.held...)
}

var spare spares

// Keeps reports whether Reserve with the same arguments would reuse a released range. Then Reserve
// takes no further addresses from RLIMIT_AS. Another goroutine may take that range first.
func Keeps(base uintptr, size uint64, head Head) bool {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	return spare.find(want{base: base, size: size, head: head}) >= 0
}

// find returns the index of the smallest block that fits w, of equal ones the first released, or
// -1. pre: the mutex is held.
func (s *spares) find(w want) int {
	best := -1
	for i, b := range s.blocks {
		if b.fits(w) && (best < 0 || b.size < s.blocks[best].size) {
			best = i
		}
	}
	return best
}

// fits reports whether the block may serve w. A block keeps its kind of head: a stale handle that
// reads the head would otherwise take the new owner's objects for its tables.
func (b block) fits(w want) bool {
	if w.base == 0 && b.placed || w.base != 0 && w.base != uintptr(b.base) {
		return false
	}
	if w.base == 0 && b.size > max(classOf(w.size), w.size) {
		return false // kept for larger ranges, which would need a new block
	}
	return b.sparse == w.sparse && b.size >= w.size && (b.head.Size == 0 || b.head == w.head)
}

// classOf returns the size of the blocks that serve size bytes: the next power of two, or 0 beyond
// the address space.
func classOf(size uint64) uint64 {
	if class := uint64(1) << bits.Len64(size-1); class <= math.MaxInt-Align {
		return class
	}
	return 0
}

// take removes a fitting block from the list and returns it. A dirty block is emptied first. At a
// base, the error names the block that occupies some of the bytes.
func (s *spares) take(w want) (b block, found bool, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var refused []block
	defer func() { s.blocks = append(s.blocks, refused...) }()
	for i := s.find(w); i >= 0; i = s.find(w) {
		b := s.blocks[i]
		s.blocks = slices.Delete(s.blocks, i, i+1)
		if b.dirty {
			err = b.empty(b.size)
		}
		if !b.dirty {
			return b, true, nil
		}
		refused = append(refused, b)
	}
	if w.base == 0 || err != nil {
		return block{}, false, err
	}
	return block{}, false, s.collision(w)
}

// lengthen finds a block with only its head (Return), takes the addresses after the head again if
// they are still free, and returns the block.
func (s *spares) lengthen(w want) (b block, found bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, b := range s.blocks {
		if w.sparse || b.placed || b.dirty || b.head != w.head || b.size != b.head.Size || host.reserveAt == nil {
			continue
		}
		size := newSize(w.size)
		if _, err := host.reserveAt(uintptr(b.base)+uintptr(b.size), size-b.size); err == nil {
			b.size = size
			s.hold(b)
			s.blocks = slices.Delete(s.blocks, i, i+1)
			return b, true
		}
	}
	return block{}, false
}

// collision returns an error that names the block with some of the bytes, nil if there is none.
// pre: the mutex is held.
func (s *spares) collision(w want) error {
	for _, b := range s.blocks {
		first := uint64(uintptr(b.base))
		if first < uint64(w.base)+w.size && uint64(w.base) < first+b.size {
			return fmt.Errorf("%w: base %#x is kept for reuse by a range of at most %d bytes with the same head of "+
				"%d; choose another base", syscall.EEXIST, first, b.size, b.head.Size)
		}
	}
	return nil
}

func (s *spares) put(b block) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hold(b)
	s.blocks = append(s.blocks, b)
}

// empty prepares b for the list: of its first `used` bytes, those after the head lose their access
// and their memory, and all lose their lock. If a step fails, empty still takes the other steps,
// reports the failures, and marks b dirty.
func (b *block) empty(used uint64) (err error) {
	try := func(step, request string, do change, p unsafe.Pointer, size uint64) (failed bool) {
		refused := ask(request, do, p, size)
		if refused != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", step, refused))
		}
		return refused != nil
	}
	body, bodySize := unsafe.Add(b.base, b.head.Size), used-b.head.Size
	// Access goes first: otherwise a stray goroutine could write after the memory was freed, and
	// the next owner would find those bytes.
	try("take access away", doProtect, host.deny, body, bodySize)
	if b.locked {
		b.locked = try("unlock", doUnlock, host.unlock, b.base, used) // the head included
	}
	if b.huge {
		b.huge = try("withdraw huge pages", doAdvise, host.wantNone, b.base, used)
	}
	discard := host.discard
	if b.sparse && host.discardSparse != nil {
		discard = host.discardSparse
	}
	try("give memory back", doDiscard, discard, body, bodySize)
	b.dirty = err != nil
	return err
}
