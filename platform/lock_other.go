//go:build (!linux && !darwin && !windows) || race

package platform

import "unsafe"

func lockPages(p unsafe.Pointer, size uint64) error { return errUnsupported }

// No range is ever locked, so nothing calls it.
func unlockPages(p unsafe.Pointer, size uint64) error { return errUnsupported }
