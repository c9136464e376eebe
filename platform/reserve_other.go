//go:build !linux && !darwin && !windows && !race

package platform

import "unsafe"

func mapBlock(size, align uint64) (unsafe.Pointer, error) { return nil, errUnsupported }

// No Reservation exists without mapBlock, so nothing calls what follows.

func protectPages(p unsafe.Pointer, size uint64, to access) error { return errUnsupported }

func discardPages(p unsafe.Pointer, size uint64) error { return errUnsupported }
