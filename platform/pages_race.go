//go:build race

package platform

import (
	"fmt"
	"unsafe"
)

const goBacked = true

// sizeMax is what a range may have: the race detector knows 128 GiB of Go heap, and beyond that it
// ends the process.
const sizeMax = 64 << 30

// host leaves the Go heap's pages to the runtime. Its discard clears, so that the next owner finds
// zeros. The race detector does not see it: whoever ends lifetimes inside the range reports stale
// users there, at the bytes that were in use; to do it here for every byte costs 6 ms a MiB.
var host = pages{
	reserve: mapAnywhere,
	allow:   func(unsafe.Pointer, uint64) error { return nil },
	deny:    func(unsafe.Pointer, uint64) error { return nil },
	discard: func(p unsafe.Pointer, size uint64) error {
		clear(bytesAt(p, size))
		return nil
	},
}

// mapAnywhere allocates bytes without pointers, which the collector does not look into. The runtime
// ends the process when the system has no memory for it, so what cannot be granted is refused
// before.
func mapAnywhere(size uint64) (unsafe.Pointer, error) {
	most := uint64(sizeMax)
	if machine, ok := memorySize(); ok {
		most = min(most, machine)
	}
	if size > most {
		return nil, fmt.Errorf("a race build grants at most %d bytes here, alignment included", most)
	}
	return unsafe.Pointer(unsafe.SliceData(make([]byte, size))), nil
}
