//go:build !race

package platform

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate: there is no such request, so the pages are touched.
func populate(unsafe.Pointer, uint64) error {
	if err := injected(doPopulate); err != nil {
		return err
	}
	return errors.ErrUnsupported
}

// discard maps new pages in place of the old ones: MADV_FREE leaves the old bytes there until somebody else wants the
// memory.
func discard(p unsafe.Pointer, size uint64, to access) error {
	if size == 0 {
		return nil
	}
	if err := injected(doDiscard); err != nil {
		return err
	}
	_, err := unix.MmapPtr(-1, 0, p, uintptr(size), protections[to], unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}
