//go:build !linux || race

package platform

import "unsafe"

func checkHuge(base, size uint64) (undo bool, err error) { return false, errUnsupported }

// No range is ever huge, so nothing calls it.
func adviseHuge(p unsafe.Pointer, size uint64, want bool) error { return errUnsupported }
