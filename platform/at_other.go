//go:build !linux || race

package platform

import "unsafe"

// placeable tells whether ReserveAt can succeed.
const placeable = false

func mapAt(base uintptr, size uint64) (unsafe.Pointer, error) { return nil, errUnsupported }

func addressBits() int { return 0 }
