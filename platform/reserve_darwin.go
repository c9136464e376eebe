//go:build !race

package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// discardPages maps new pages in place of the old ones: MADV_FREE leaves the old bytes there until somebody else wants the
// memory.
func discardPages(p unsafe.Pointer, size uint64) error {
	_, err := unix.MmapPtr(-1, 0, p, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}
