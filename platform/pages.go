package platform

import (
	"errors"
	"fmt"
	"unsafe"
)

// Pages is an allocator of whole pages from the system, for tests and tools that have no budget yet: an arena.Freer. The
// zero Pages is ready. One goroutine at a time uses it. What is not freed stays until Close.
type Pages struct{ taken map[unsafe.Pointer]*Reservation }

// Alloc gives size bytes, all zero, aligned to align, a power of two, and to a page at least; nil where the system has
// none. Cost: two system calls or more, a page fault for each page that is touched, and Go allocations.
func (p *Pages) Alloc(size, align uint64) unsafe.Pointer {
	if align == 0 || align&(align-1) != 0 {
		panic(fmt.Sprintf("platform: BUG: Pages.Alloc of %d bytes aligned to %d, which is no power of two", size, align))
	}
	page := uint64(PageSize())
	whole := max(size+page-1, page) &^ (page - 1)
	if whole < size {
		return nil // beyond the end of the numbers
	}
	r, err := Reserve(whole, max(align, page), Head{})
	if err != nil {
		return nil
	}
	if r.Commit() != nil {
		_ = r.Release() // there is no memory: that is the answer
		return nil
	}
	if p.taken == nil {
		p.taken = map[unsafe.Pointer]*Reservation{}
	}
	p.taken[r.Base()] = r
	return r.Base()
}

// Free gives the pages back that begin at an address of Alloc. Another address is refused, with an error.
func (p *Pages) Free(at unsafe.Pointer) error {
	r, ok := p.taken[at]
	if !ok {
		return fmt.Errorf("platform: BUG: Pages.Free of %p: not from here, or freed already", at)
	}
	delete(p.taken, at)
	return r.Release()
}

// Close gives back what is left.
func (p *Pages) Close() error {
	var errs []error
	for _, r := range p.taken {
		errs = append(errs, r.Release())
	}
	clear(p.taken)
	return errors.Join(errs...)
}
