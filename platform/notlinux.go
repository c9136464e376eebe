//go:build !linux || race

package platform

import (
	"errors"
	"unsafe"
)

// placeable tells whether ReserveAt can succeed.
const placeable = false

func mapAt(base uintptr, size uint64) (unsafe.Pointer, error) { return nil, errUnsupported }

func addressBits() int { return 0 }

// populatePages: there is no such request, so the pages are touched.
func populatePages(unsafe.Pointer, uint64) error { return errors.ErrUnsupported }

func checkHuge(base, size uint64) (undo bool, err error) { return false, errUnsupported }

// No range is ever huge, so nothing calls it.
func adviseHuge(p unsafe.Pointer, size uint64, want bool) error { return errUnsupported }
