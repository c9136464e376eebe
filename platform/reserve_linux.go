//go:build !race

package platform

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populatePages asks for all pages at once: Linux before 5.14 answers EINVAL, and a sandbox may refuse the request by one of the
// others.
func populatePages(p unsafe.Pointer, size uint64) error {
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

// discardPages gives the pages back; they read as zero when they are accessible again. Pages that the program locked
// (mlockall) have to be unlocked first, and the next owner's are not locked.
func discardPages(p unsafe.Pointer, size uint64) error {
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
