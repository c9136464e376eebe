//go:build !race

package platform

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// GoBacked tells whether ranges are parts of the Go heap, as they are in race builds: they then count towards the
// runtime's memory limit, and Protect does nothing.
const GoBacked = false

// mapBlock maps size bytes without access. It maps an alignment more and cuts off what stands out at both ends; nobody
// has seen those addresses, so they may go. What cannot be cut off is kept for other owners: each cut makes one mapping
// into two, of which the system allows a process so many (vm.max_map_count).
//
// MAP_NORESERVE is left out on purpose: a range without access is charged nothing, and Commit shall be told when the
// system cannot promise the memory.
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

func setAccess(p unsafe.Pointer, size uint64, to access) error {
	if size == 0 {
		return nil
	}
	if err := injected(doProtect); err != nil {
		return err
	}
	protection := [...]int{
		accessNone:  unix.PROT_NONE,
		accessWrite: unix.PROT_READ | unix.PROT_WRITE,
	}[to]
	return unix.Mprotect(bytesAt(p, size), protection)
}

// populate asks for all pages at once. ErrUnsupported means that they have to be touched: Linux before 5.14 answers
// EINVAL, and a sandbox may refuse the request by one of the others.
func populate(p unsafe.Pointer, size uint64) error {
	if err := injected(doPopulate); err != nil {
		return err
	}
	for {
		err := unix.Madvise(bytesAt(p, size), unix.MADV_POPULATE_WRITE)
		switch err {
		case unix.EINTR:
			continue
		case unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.EAGAIN:
			return errors.ErrUnsupported
		}
		return err
	}
}

// discard gives the pages back; they read as zero when they are accessible again. Pages that the program locked
// (mlockall) have to be unlocked first, and the next owner's are not locked.
func discard(p unsafe.Pointer, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := injected(doDiscard); err != nil {
		return err
	}
	b := bytesAt(p, size)
	err := unix.Madvise(b, unix.MADV_DONTNEED)
	if err != unix.EINVAL {
		return err
	}
	if err := unix.Munlock(b); err != nil {
		return err
	}
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

func bytesAt(p unsafe.Pointer, size uint64) []byte { return unsafe.Slice((*byte)(p), size) }
