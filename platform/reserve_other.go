//go:build !linux && !darwin && !windows && !race

package platform

import "unsafe"

// GoBacked tells whether ranges are parts of the Go heap; here there are none at all.
const GoBacked = false

func mapBlock(size, align uint64) (unsafe.Pointer, error) { return nil, errUnsupported }

// No Reservation exists without mapBlock, so nothing calls what follows.

func setAccess(p unsafe.Pointer, size uint64, to access) error { return errUnsupported }

func populate(p unsafe.Pointer, size uint64) error { return errUnsupported }

func discard(p unsafe.Pointer, size uint64, to access) error { return errUnsupported }
