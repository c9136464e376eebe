//go:build (linux || darwin) && !race

package platform

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapBlock maps size bytes without access. It maps an alignment more and cuts off what stands out at both ends; nobody
// has seen those addresses, so they may go. What cannot be cut off is kept for other owners: each cut makes one mapping
// into two, of which the system allows a process so many (vm.max_map_count).
//
// MAP_NORESERVE is left out on purpose: a range without access is charged nothing, and Commit shall be told when the
// system cannot promise the memory. (darwin always promises.)
func mapBlock(size, align uint64) (unsafe.Pointer, error) {
	extra := align - uint64(PageSize())
	whole := size + extra
	if err := injected(doMap); err != nil {
		return nil, err
	}
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(whole), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	before := -uint64(uintptr(start)) & (align - 1)
	base, after := unsafe.Add(start, before), extra-before
	if err := unmap(start, before); err != nil {
		spare.put(block{base: start, size: whole})
		return nil, fmt.Errorf("give back %d bytes below: %w", before, err)
	}
	if err := unmap(unsafe.Add(base, size), after); err != nil {
		spare.put(block{base: base, size: size + after})
		return nil, fmt.Errorf("give back %d bytes above: %w", after, err)
	}
	return base, nil
}

func unmap(p unsafe.Pointer, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := injected(doUnmap); err != nil {
		return err
	}
	return unix.MunmapPtr(p, uintptr(size))
}

func protectPages(p unsafe.Pointer, size uint64, to access) error {
	return unix.Mprotect(bytesAt(p, size), protections[to])
}

var protections = [...]int{
	accessNone:  unix.PROT_NONE,
	accessWrite: unix.PROT_READ | unix.PROT_WRITE,
}

func unlockPages(p unsafe.Pointer, size uint64) error {
	if err := injected(doUnlock); err != nil {
		return err
	}
	return unix.Munlock(bytesAt(p, size))
}

func bytesAt(p unsafe.Pointer, size uint64) []byte { return unsafe.Slice((*byte)(p), size) }
