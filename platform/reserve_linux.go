//go:build !race

package platform

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
func discard(p unsafe.Pointer, size uint64, _ access) error {
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
