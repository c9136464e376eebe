//go:build race

package platform

import (
	"errors"
	"fmt"
	"unsafe"
)

// GoBacked tells whether ranges are parts of the Go heap, as they are in this build: they count towards the runtime's
// memory limit, and Protect does nothing.
const GoBacked = true

// sizeMax is what a range may have: the race detector knows 128 GiB of Go heap, and beyond that it ends the process.
const sizeMax = 64 << 30

// mapBlock allocates bytes without pointers, which the collector does not look into. The runtime ends the process when
// the system has no memory for it, so what cannot be granted is refused before.
func mapBlock(size, align uint64) (unsafe.Pointer, error) {
	most := uint64(sizeMax)
	if machine, ok := memorySize(); ok {
		most = min(most, machine)
	}
	if size > most || align > most-size {
		return nil, fmt.Errorf("a race build grants at most %d bytes here, alignment included", most)
	}
	if err := injected(doMap); err != nil {
		return nil, err
	}
	start := unsafe.Pointer(unsafe.SliceData(make([]byte, size+align)))
	return unsafe.Add(start, -uint64(uintptr(start))&(align-1)), nil
}

var errUnsupported = fmt.Errorf("%w: in a race build the memory is the Go heap's", errors.ErrUnsupported)

// protectPages does nothing: the Go heap's pages are the runtime's.
func protectPages(unsafe.Pointer, uint64, access) error { return nil }

// discardPages clears, so that the next owner finds zeros. The race detector does not see it: whoever ends lifetimes inside
// the range reports stale users there, at the bytes that were in use; to do it here for every byte costs 6 ms a MiB.
func discardPages(p unsafe.Pointer, size uint64) error {
	clear(unsafe.Slice((*byte)(p), size))
	return nil
}
