package platform

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// block is a range as the system gave it. Owners may use less than its size; it is never split, because a part without
// the head could not be told from a new range, and a list of few whole blocks is searched in no time.
type block struct {
	base unsafe.Pointer // also what keeps the memory alive where it is Go memory
	size uint64
	head Head // at the base, kept with its contents

	// An owner who said where (ReserveAt) wants to find the addresses again: only another one who says so gets them.
	placed bool
	locked bool // Release has to unlock it
	huge   bool // Release has to take back the wish for huge pages
	dirty  bool // Release could not do all that it has to
}

// spares are the blocks that nobody owns. They only ever leave the list for a new owner.
type spares struct {
	mutex  sync.Mutex
	blocks []block
}

// spare is the process's list: addresses are the process's, too.
var spare spares

// take removes and returns the smallest block that fits, the longest released one among equals. Placed ones wait for
// takeAt.
func (s *spares) take(size, align uint64, head Head) (block, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	best := s.best(size, align, head)
	if best < 0 {
		return block{}, false
	}
	b := s.blocks[best]
	s.blocks = append(s.blocks[:best], s.blocks[best+1:]...)
	return b, true
}

// best is the index of the block that take gives, or -1. pre: the mutex is held.
func (s *spares) best(size, align uint64, head Head) int {
	best := -1
	for i, b := range s.blocks {
		if b.placed || !b.fits(size, align, head) {
			continue
		}
		if best < 0 || b.size < s.blocks[best].size {
			best = i
		}
	}
	return best
}

// Keeps tells whether Reserve, asked for the same, would take a range that an earlier owner released: it adds no addresses
// to those that count against RLIMIT_AS. Another goroutine may be faster.
func Keeps(size, align uint64, head Head) bool {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	return spare.best(size, align, head) >= 0
}

// KeepsAt is Keeps for ReserveAt.
func KeepsAt(base uintptr, size uint64, head Head) bool {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	return slices.ContainsFunc(spare.blocks, func(b block) bool { return uintptr(b.base) == base && b.fits(size, 1, head) })
}

// takeClean is take, of a block that Release could empty or that can be emptied now.
func (s *spares) takeClean(size, align uint64, head Head) (b block, found bool) {
	var refused []block
	for {
		b, found = s.take(size, align, head)
		if !found || !b.dirty || b.empty(b.size) == nil {
			break
		}
		refused = append(refused, b)
	}
	for _, b := range refused {
		s.put(b)
	}
	return b, found
}

// takeAt removes and returns the block that begins at base. An error names the block that has some of the bytes but
// does not fit.
func (s *spares) takeAt(base uintptr, size uint64, head Head) (b block, found bool, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, b := range s.blocks {
		first := uintptr(b.base)
		if first == base && b.fits(size, 1, head) {
			s.blocks = append(s.blocks[:i], s.blocks[i+1:]...)
			return b, true, nil
		}
		if uint64(first) < uint64(base)+size && uint64(base) < uint64(first)+b.size {
			return block{}, false, fmt.Errorf("%w: this process keeps %d bytes with a head of %d at %#x, released by an earlier owner, "+
				"and gives them only to one who begins there, needs no more and has the same head",
				syscall.EEXIST, b.size, b.head.Size, first)
		}
	}
	return block{}, false, nil
}

func (s *spares) put(b block) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.blocks = append(s.blocks, b)
}

// fits tells whether an owner may have b. Another owner's head must stay a head of the same size: a stale handle that
// looks into it would take the new owner's objects for its tables.
func (b block) fits(size, align uint64, head Head) bool {
	return b.size >= size && uint64(uintptr(b.base))&(align-1) == 0 && (b.head.Size == 0 || b.head == head)
}

// empty makes b what the list holds: of its first used bytes, all accessible to nobody beyond the head, without memory
// and without a lock. It does all that can be done and tells what failed; b then is dirty.
func (b *block) empty(used uint64) error {
	body, bodySize := unsafe.Add(b.base, b.head.Size), used-b.head.Size
	// Access goes first: what a stray goroutine wrote after the memory went would greet the next owner.
	err := step("take access away", setAccess(body, bodySize, accessNone))
	if b.locked {
		refused := step("unlock", unlockPages(b.base, used)) // the head, too
		b.locked, err = refused != nil, errors.Join(err, refused)
	}
	if b.huge {
		refused := step("wish for no huge pages", adviseHuge(b.base, used, false))
		b.huge, err = refused != nil, errors.Join(err, refused)
	}
	err = errors.Join(err, step("give memory back", discard(body, bodySize)))
	b.dirty = err != nil
	return err
}

// step says what failed, where several things may.
func step(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
