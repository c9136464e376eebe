//go:build !race

package platform

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// granularity is what the base of a reservation is a multiple of.
const granularity = 64 << 10

// mapBlock reserves size bytes. A reservation goes back as a whole or not at all, so what an alignment beyond the granularity
// needs more stays with it; it is addresses only.
func mapBlock(size, align uint64) (unsafe.Pointer, error) {
	whole := size
	if align > granularity {
		whole += align - granularity
	}
	if err := injected(doMap); err != nil {
		return nil, err
	}
	start, err := windows.VirtualAlloc(0, uintptr(whole), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, err
	}
	return unsafe.Add(nil, start+(-start&uintptr(align-1))), nil
}

// protectPages commits what is to be accessible: then it counts against the system's limit, which may refuse. A page without access
// that is committed keeps its contents; one that never was has none to keep.
func protectPages(p unsafe.Pointer, size uint64, to access) error {
	if to == accessNone {
		return eachCommitted(p, size, func(base, size uintptr) error { return protect(base, size, windows.PAGE_NOACCESS) })
	}
	if _, err := windows.VirtualAlloc(uintptr(p), uintptr(size), windows.MEM_COMMIT, windows.PAGE_READWRITE); err != nil {
		return err
	}
	return protect(uintptr(p), uintptr(size), windows.PAGE_READWRITE) // pages that were committed before, too
}

func protect(base, size uintptr, protection uint32) error {
	var old uint32
	return windows.VirtualProtect(base, size, protection, &old)
}

// eachCommitted calls do for the parts that are committed, each with one protection.
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

// discardPages decommits; what is committed anew is zero.
func discardPages(p unsafe.Pointer, size uint64) error {
	return windows.VirtualFree(uintptr(p), uintptr(size), windows.MEM_DECOMMIT)
}
