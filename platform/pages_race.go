//go:build race

package platform

import (
	"fmt"
	"unsafe"
)

const goBacked = true

// sizeMax bounds a range: beyond 128 GiB of Go heap the race detector ends the process.
const sizeMax = 64 << 30

// host leaves the pages to the Go runtime. Its discard clears, so that the next owner finds zeros.
// The race detector doesn't see that clear, which would cost 6 ms a MiB. The owner of the range
// reports stale users instead, at the bytes in use.
var host = pages{
	reserve: mapAnywhere,
	allow:   func(unsafe.Pointer, uint64) error { return nil },
	deny:    func(unsafe.Pointer, uint64) error { return nil },
	discard: func(p unsafe.Pointer, size uint64) error {
		clear(bytesAt(p, size))
		return nil
	},
}

// mapAnywhere allocates bytes without pointers, which the collector doesn't scan. It refuses sizes
// beyond the machine's memory, because the runtime ends the process when the system has no memory.
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
