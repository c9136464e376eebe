//go:build (linux || darwin) && !race

package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const sparseFlags = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

// mapSparse maps an alignment more, and leaves what stands out without access: cut off, it could become anything.
func mapSparse(size, align uint64) (unsafe.Pointer, error) {
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(size+align), unix.PROT_NONE, sparseFlags)
	if err != nil {
		return nil, err
	}
	base := unsafe.Add(start, -uint64(uintptr(start))&(align-1))
	return base, enterSparse(base, size)
}

// enterSparse gives access. A huge page would take memory for what is never touched.
func enterSparse(base unsafe.Pointer, size uint64) error {
	if err := unix.Mprotect(bytesAt(base, size), unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	noHuge(base, size)
	return nil
}

// emptySparse maps new pages in place of the old ones, which gives back their tables, too.
func emptySparse(base unsafe.Pointer, size uint64) error {
	_, err := unix.MmapPtr(-1, 0, base, uintptr(size), unix.PROT_NONE, sparseFlags|unix.MAP_FIXED)
	return err
}
