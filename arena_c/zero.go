package arena_c

import "unsafe"

// Zero clears memory, visibly for the race detector.
func Zero(p unsafe.Pointer, size uintptr) {
	if Race {
		raceWrite(p, size)
	}
	clear(unsafe.Slice((*byte)(p), size))
}

// Clear is Zero for one T, of a size that the compiler knows. It returns x.
func Clear[T any](x *T) *T {
	if Race {
		raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	clear((*[1]T)(unsafe.Pointer(x))[:])
	return x
}

// Dead marks bytes as dead for the race detector and overwrites them, so that a goroutine that
// still reads them is reported. Other builds do nothing.
func Dead(p unsafe.Pointer, size uintptr) {
	if Race {
		raceDead(p, size)
	}
}
