package arena_c

import "unsafe"

// Zero clears memory so that the race detector sees the write.
func Zero(p unsafe.Pointer, size uintptr) {
	if Race {
		raceWrite(p, size)
	}
	clear(unsafe.Slice((*byte)(p), size))
}

// Clear is Zero of one T, whose size the compiler knows.
func Clear[T any](x *T) *T {
	if Race {
		raceWrite(unsafe.Pointer(x), unsafe.Sizeof(*x))
	}
	clear((*[1]T)(unsafe.Pointer(x))[:])
	return x
}

// Dead tells the race detector that what lies there is gone, and overwrites it: a goroutine that still reads it is
// reported. Other builds leave it as it is.
func Dead(p unsafe.Pointer, size uintptr) {
	if Race {
		raceDead(p, size)
	}
}
