//go:build (linux || darwin) && !race

package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const goBacked = false

// mapNone maps pages without access, anywhere if at is nil.
func mapNone(at unsafe.Pointer, size uint64, flags int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, at, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|flags)
}

func protect(to int) change {
	return func(p unsafe.Pointer, size uint64) error { return unix.Mprotect(bytesAt(p, size), to) }
}

// plentyOfAddresses returns false on 32-bit targets, and if the process has a limit: then only the
// requested sizes should count against it.
func plentyOfAddresses() bool {
	var r unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_AS, &r)
	return err == nil && uint64(r.Cur) >= 1<<62 && unsafe.Sizeof(uintptr(0)) == 8
}

func lockPages(p unsafe.Pointer, size uint64) error { return unix.Mlock(bytesAt(p, size)) }

func unlockPages(p unsafe.Pointer, size uint64) error { return unix.Munlock(bytesAt(p, size)) }
