package platform

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// Sparse is a range of addresses of which each page costs memory from its first use on, and nothing is promised: where
// checked builds lay things out apart. After Release there is no access to it until another Sparse of the same size and
// alignment has it; like those of a Reservation its addresses never become anything else. It must not be copied.
type Sparse struct {
	base  unsafe.Pointer
	size  uint64
	align uint64
}

// sparse has what was released, by size and alignment.
var sparse struct {
	sync.Mutex
	free map[[2]uint64][]unsafe.Pointer
}

// ReserveSparse takes size bytes, all zero, at a multiple of align, both multiples of the page. It fails when the address
// space, or a limit of the process, leaves no room: RLIMIT_AS and RLIMIT_DATA count all of it.
// errors.ErrUnsupported: this system, or a race build, has none.
func ReserveSparse(size, align uint64) (*Sparse, error) {
	if align > math.MaxInt || size > math.MaxInt-align {
		return nil, fmt.Errorf("platform: %d sparse bytes: beyond this target's address space", size)
	}
	sparse.Lock()
	defer sparse.Unlock()
	s, key := &Sparse{size: size, align: align}, [2]uint64{size, align}
	if list := sparse.free[key]; len(list) > 0 {
		s.base = list[len(list)-1]
		if err := enterSparse(s.base, size); err != nil {
			return nil, fmt.Errorf("platform: %d sparse bytes: %w", size, err)
		}
		sparse.free[key] = list[:len(list)-1]
		return s, nil
	}
	base, err := mapSparse(size, align)
	if err != nil {
		return nil, fmt.Errorf("platform: %d sparse bytes: %w", size, err)
	}
	s.base = base
	return s, nil
}

// Base is the first address.
func (s *Sparse) Base() unsafe.Pointer { return s.base }

// Size is what ReserveSparse was asked for.
func (s *Sparse) Size() uint64 { return s.size }

// Release gives the memory back, and takes access away.
func (s *Sparse) Release() error {
	sparse.Lock()
	defer sparse.Unlock()
	if err := emptySparse(s.base, s.size); err != nil {
		return fmt.Errorf("platform: release %d sparse bytes: %w", s.size, err)
	}
	if sparse.free == nil {
		sparse.free = map[[2]uint64][]unsafe.Pointer{}
	}
	key := [2]uint64{s.size, s.align}
	sparse.free[key] = append(sparse.free[key], s.base)
	return nil
}
