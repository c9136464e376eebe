package platform

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// block is a range as the system gave it. Owners may use less than its size. It is never split and
// never merged: its head stays where it is for ever, so no larger range could begin before it or reach
// over it. Sizes go in classes instead, so that there are few blocks and each serves many sizes.
type block struct {
	base unsafe.Pointer // also what keeps the memory alive where it is Go memory
	size uint64
	head Head // at the base, kept with its contents

	// An owner who said where wants to find the addresses again: only another one who says so gets
	// them.
	placed bool
	sparse bool // for ReserveSparse alone
	locked bool // Release has to unlock it
	huge   bool // Release has to take back the wish for huge pages
	dirty  bool // Release could not do all that it has to
}

// want is what an owner asks for; base 0 is anywhere.
type want struct {
	base   uintptr
	size   uint64
	head   Head
	sparse bool
}

// spares are the blocks that nobody owns. They only ever leave the list for a new owner.
type spares struct {
	mutex  sync.Mutex
	blocks []block
}

// spare is the process's list: addresses are the process's, too.
var spare spares

// Keeps tells whether Reserve, asked for the same, would take a range that an earlier owner
// released: it adds no addresses to those that count against RLIMIT_AS. Another goroutine may be
// faster.
func Keeps(base uintptr, size uint64, head Head) bool {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	return spare.find(want{base: base, size: size, head: head}) >= 0
}

// find is the index of the block that w gets, or -1: the smallest that fits, the longest released
// one among equals. pre: the mutex is held.
func (s *spares) find(w want) int {
	best := -1
	for i, b := range s.blocks {
		if b.fits(w) && (best < 0 || b.size < s.blocks[best].size) {
			best = i
		}
	}
	return best
}

// fits tells whether an owner may have b. Another owner's head must stay such a head: a
// stale handle that looks into it would take the new owner's objects for its tables.
func (b block) fits(w want) bool {
	if w.base == 0 && b.placed || w.base != 0 && w.base != uintptr(b.base) {
		return false
	}
	if w.base == 0 && b.size > max(classOf(w.size), w.size) {
		return false // it is for larger ones, which would need another meanwhile
	}
	return b.sparse == w.sparse && b.size >= w.size && (b.head.Size == 0 || b.head == w.head)
}

// classOf is the size of the blocks that owners of so many bytes get: the next power of two; 0 beyond
// the address space.
func classOf(size uint64) uint64 {
	if class := uint64(1) << bits.Len64(size-1); class <= math.MaxInt-Align {
		return class
	}
	return 0
}

// take removes and returns a block that Release could empty or that can be emptied now. At a base,
// an error says why the block that has some of the bytes is not given.
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

// lengthen gives a block of which Return left the head alone, when the addresses behind it are free still.
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
			s.blocks = slices.Delete(s.blocks, i, i+1)
			return b, true
		}
	}
	return block{}, false
}

// collision is the error that names the block that has some of the bytes; nil when none has. pre:
// the mutex is held.
func (s *spares) collision(w want) error {
	for _, b := range s.blocks {
		first := uint64(uintptr(b.base))
		if first < uint64(w.base)+w.size && uint64(w.base) < first+b.size {
			return fmt.Errorf("%w: this process keeps %d bytes with a head of %d at %#x, released by an "+
				"earlier owner, and gives them only to one who begins there, needs no more and has the same head",
				syscall.EEXIST, b.size, b.head.Size, first)
		}
	}
	return nil
}

func (s *spares) put(b block) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.blocks = append(s.blocks, b)
}

// empty makes b what the list holds: of its first used bytes, all accessible to nobody beyond the
// head, without memory and without a lock. It does all that can be done and tells what failed; b
// then is dirty.
func (b *block) empty(used uint64) (err error) {
	try := func(step, request string, do change, p unsafe.Pointer, size uint64) (failed bool) {
		refused := ask(request, do, p, size)
		if refused != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", step, refused))
		}
		return refused != nil
	}
	body, bodySize := unsafe.Add(b.base, b.head.Size), used-b.head.Size
	// Access goes first: what a stray goroutine wrote after the memory went would greet the next owner.
	try("take access away", doProtect, host.deny, body, bodySize)
	if b.locked {
		b.locked = try("unlock", doUnlock, host.unlock, b.base, used) // the head, too
	}
	if b.huge {
		b.huge = try("wish for no huge pages", doAdvise, host.wantNone, b.base, used)
	}
	discard := host.discard
	if b.sparse && host.discardSparse != nil {
		discard = host.discardSparse
	}
	try("give memory back", doDiscard, discard, body, bodySize)
	b.dirty = err != nil
	return err
}
