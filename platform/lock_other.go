//go:build !linux || race

package platform

import "unsafe"

func lockPages(p unsafe.Pointer, size uint64) error { return errUnsupported }

// No range is ever locked or huge, so nothing calls what follows.

func unlockPages(p unsafe.Pointer, size uint64) error { return errUnsupported }

func adviseHuge(p unsafe.Pointer, size uint64, want bool) error { return errUnsupported }

func checkHuge(base, size uint64) (undo bool, err error) { return false, errUnsupported }
