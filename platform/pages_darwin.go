//go:build !race

package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

var host = pages{
	reserve:       mapAnywhere,
	reserveSparse: mapAnywhere, // the system promises no memory, and has no huge pages
	allow:         protect(unix.PROT_READ | unix.PROT_WRITE),
	deny:          protect(unix.PROT_NONE),
	discard:       discardPages,
	drop:          dropPages,
	lock:          lockPages,
	unlock:        unlockPages,
	plenty:        plentyOfAddresses,
}

func mapAnywhere(size uint64) (unsafe.Pointer, error) { return mapNone(nil, size, 0) }

// discardPages maps new pages in place of the old ones: MADV_FREE keeps the old bytes until the
// system needs the memory.
func discardPages(p unsafe.Pointer, size uint64) error {
	_, err := mapNone(p, size, unix.MAP_FIXED)
	return err
}

// dropPages maps new pages with access in place of the old ones. The system merges the mappings.
func dropPages(p unsafe.Pointer, size uint64) error {
	_, err := unix.MmapPtr(-1, 0, p, uintptr(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}
