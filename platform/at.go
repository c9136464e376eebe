package platform

import (
	"fmt"
	"unsafe"
)

// baseAlign is what a chosen base is a multiple of, in bytes: the largest page of any target.
const baseAlign = 64 << 10

// ReserveAt takes the size bytes of addresses that begin at base, or fails: nothing is moved, neither the range nor
// what is there. base is a multiple of 64 KiB; [SafeBase] gives one. For size, head, and what the bytes hold see [Reserve].
//
// Where somebody has a part of the addresses, the error wraps syscall.EEXIST and says who, by the line of
// /proc/self/maps. A range at this base that an earlier owner has released is taken over, if it is as large at least
// and its head fits as for Reserve. Ranges with a chosen base wait for that: Reserve does not give them to others.
//
// In race builds, and off Linux, the error wraps errors.ErrUnsupported.
func ReserveAt(base uintptr, size uint64, head Head) (*Reservation, error) {
	page := uint64(PageSize())
	switch {
	case base == 0 || base%baseAlign != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes at %#x: the base is not a multiple of %d bytes", size, base, baseAlign)
	case size == 0 || size%page != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes at %#x: not a multiple of the page, %d bytes", size, base, page)
	case head.Size > size || head.Size%page != 0:
		return nil, fmt.Errorf("platform: BUG: reserve %d bytes at %#x: head %d is not a multiple of the page, %d bytes, within the range",
			size, base, head.Size, page)
	case size > uint64(^uintptr(0)>>1) || uint64(base) > uint64(^uintptr(0))-size:
		return nil, fmt.Errorf("platform: reserve %d bytes at %#x: beyond this target's address space of %d bits",
			size, base, 8*unsafe.Sizeof(base))
	}
	b, found, err := spare.takeAt(base, size, head)
	if found && b.dirty {
		if err = b.empty(b.size); err != nil {
			spare.put(b)
		}
	}
	if !found && err == nil {
		b = block{size: size}
		b.base, err = mapAt(base, size)
	}
	if err != nil {
		return nil, fmt.Errorf("platform: reserve %d bytes at %#x: %w", size, base, err)
	}
	b.head, b.placed = head, true
	return &Reservation{block: b, size: size}, nil
}
