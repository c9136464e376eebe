//go:build !race

package platform

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

func lockPages(p unsafe.Pointer, size uint64) error {
	err := injected(doLock)
	if err == nil {
		err = windows.VirtualLock(uintptr(p), uintptr(size))
	}
	if errors.Is(err, windows.ERROR_WORKING_SET_QUOTA) {
		limit, _ := lockLimit()
		return fmt.Errorf("%w: the least working set of this process, %d bytes, bounds what it may lock, and %d more are needed: "+
			"raise it (SetProcessWorkingSetSizeEx)", err, limit, size)
	}
	return err
}

// unlockPages goes part by part: a page that lost its access lost its lock, and one that isn't locked would stop all others.
func unlockPages(p unsafe.Pointer, size uint64) error {
	if err := injected(doUnlock); err != nil {
		return err
	}
	return eachCommitted(p, size, func(base, size uintptr) error {
		if err := windows.VirtualUnlock(base, size); err != windows.ERROR_NOT_LOCKED {
			return err
		}
		return nil
	})
}
