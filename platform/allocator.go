package platform

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// Pages allocates whole pages from the system, for tests and tools without a budget. It is an
// arena.Freer. The zero Pages is ready. One goroutine at a time uses it. Pages that aren't freed
// stay allocated until Close.
type Pages struct {
	taken map[unsafe.Pointer]*Reservation
}

// Alloc returns size bytes, all zero, aligned to align (a power of two) and at least to a page. It
// returns nil if the system refuses the memory or the addresses. It costs two system calls or more,
// Go allocations, and a page fault for each page touched.
func (p *Pages) Alloc(size, align uint64) unsafe.Pointer {
	if align == 0 || align&(align-1) != 0 {
		panic(fmt.Sprintf("platform: BUG: Pages.Alloc of %d bytes aligned to %d, which is no power of two",
			size, align))
	}
	page := uint64(os.Getpagesize())
	whole := max(size+page-1, page) &^ (page - 1)
	if whole < size || align > 1<<40 {
		return nil // beyond the address space
	}
	if align > Align {
		whole += align
	}
	r, err := Reserve(0, whole, Head{})
	if err != nil {
		return nil
	}
	if r.Commit() != nil {
		_ = r.Release() // the caller gets nil in either case
		return nil
	}
	if p.taken == nil {
		p.taken = map[unsafe.Pointer]*Reservation{}
	}
	at := unsafe.Add(r.Base(), -uint64(uintptr(r.Base()))&(align-1))
	p.taken[at] = r
	return at
}

// Free frees the block at an address that Alloc returned. It returns an error for any other
// address.
func (p *Pages) Free(at unsafe.Pointer) error {
	r, ok := p.taken[at]
	if !ok {
		return fmt.Errorf("platform: BUG: Pages.Free of %p: no block of this allocator, or freed already", at)
	}
	delete(p.taken, at)
	return r.Release()
}

// Close frees all blocks that are still allocated.
func (p *Pages) Close() error {
	var errs []error
	for _, r := range p.taken {
		errs = append(errs, r.Release())
	}
	clear(p.taken)
	return errors.Join(errs...)
}
