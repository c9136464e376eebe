//go:build !race

package platform

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func lockPages(p unsafe.Pointer, size uint64) error {
	if err := injected(doLock); err != nil {
		return err
	}
	return unix.Mlock(bytesAt(p, size))
}

func noHuge(unsafe.Pointer, uint64) {} // there are none
