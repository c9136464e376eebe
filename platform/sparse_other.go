//go:build (!linux && !darwin) || race

package platform

import (
	"errors"
	"unsafe"
)

func mapSparse(uint64, uint64) (unsafe.Pointer, error) { return nil, errors.ErrUnsupported }

// No Sparse exists without mapSparse.

func enterSparse(unsafe.Pointer, uint64) error { return errors.ErrUnsupported }

func emptySparse(unsafe.Pointer, uint64) error { return errors.ErrUnsupported }
