//go:build !race

package platform

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

const goBacked = false

var host = pages{
	reserve:    mapAnywhere,
	allow:      allowAccess,
	deny:       denyAccess,
	discard:    discardPages,
	drop:       dropPages,
	lock:       lockPages,
	lockAdvice: lockAdvice,
	unlock:     unlockPages,
	checkHuge: func(uint64, uint64) error {
		return fmt.Errorf("%w: a large page is committed and locked from the start, and needs the right to "+
			"lock pages", unsupported())
	},
	plenty: func() bool { return unsafe.Sizeof(uintptr(0)) == 8 },
}

func mapAnywhere(size uint64) (unsafe.Pointer, error) {
	start, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	return unsafe.Add(nil, start), err
}

// allowAccess commits the pages. They then count against the system's limit, and the system may
// refuse.
func allowAccess(p unsafe.Pointer, size uint64) error {
	_, err := windows.VirtualAlloc(uintptr(p), uintptr(size), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return err
	}
	return protect(uintptr(p), uintptr(size), windows.PAGE_READWRITE) // for pages committed before
}

// denyAccess keeps committed pages committed, with their contents, and skips all other pages.
func denyAccess(p unsafe.Pointer, size uint64) error {
	return eachCommitted(p, size, func(base, size uintptr) error {
		return protect(base, size, windows.PAGE_NOACCESS)
	})
}

func protect(base, size uintptr, protection uint32) error {
	var old uint32
	return windows.VirtualProtect(base, size, protection, &old)
}

// eachCommitted calls do for each run of committed pages with the same protection.
func eachCommitted(p unsafe.Pointer, size uint64, do func(base, size uintptr) error) (err error) {
	at, end := uintptr(p), uintptr(p)+uintptr(size)
	for at < end {
		var info windows.MemoryBasicInformation
		if err := windows.VirtualQuery(at, &info, unsafe.Sizeof(info)); err != nil {
			return err
		}
		part := min(info.BaseAddress+info.RegionSize, end) - at
		if info.State == windows.MEM_COMMIT {
			err = errors.Join(err, do(at, part))
		}
		at += part
	}
	return err
}

// discardPages decommits; pages that are committed again are zero.
func discardPages(p unsafe.Pointer, size uint64) error {
	return windows.VirtualFree(uintptr(p), uintptr(size), windows.MEM_DECOMMIT)
}

// dropPages decommits the pages and commits them again. If the
// system then refuses to commit, the pages have no access.
func dropPages(p unsafe.Pointer, size uint64) error {
	if err := discardPages(p, size); err != nil {
		return err
	}
	return allowAccess(p, size)
}

func lockPages(p unsafe.Pointer, size uint64) error {
	return windows.VirtualLock(uintptr(p), uintptr(size))
}

func lockAdvice(err error, size uint64) error {
	if errors.Is(err, windows.ERROR_WORKING_SET_QUOTA) {
		// The system keeps a few of these pages for itself and doesn't report how many.
		var limit, most uintptr
		var flags uint32
		windows.GetProcessWorkingSetSizeEx(windows.CurrentProcess(), &limit, &most, &flags)
		return fmt.Errorf("%w: the minimum working set of this process is %d bytes, and this lock needs %d more: "+
			"raise it (SetProcessWorkingSetSizeEx)", err, limit, size)
	}
	return err
}

// unlockPages unlocks part by part: a page that lost its access lost its lock, and VirtualUnlock of
// a range fails whole if one page isn't locked.
func unlockPages(p unsafe.Pointer, size uint64) error {
	return eachCommitted(p, size, func(base, size uintptr) error {
		if err := windows.VirtualUnlock(base, size); err != windows.ERROR_NOT_LOCKED {
			return err
		}
		return nil
	})
}
