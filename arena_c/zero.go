package arena_c

import "unsafe"

// Zero clears memory so that the race detector sees the write.
func Zero(p unsafe.Pointer, size uintptr) {
	if Race {
		raceWrite(p, size)
	}
	clear(unsafe.Slice((*byte)(p), size))
}
