//go:build race

package arena_c

import (
	"runtime"
	"unsafe"
)

// Race says whether the race detector is on. It doesn't see clear and memory moves of dead ranges, so they are told to it.
const Race = true

func raceWrite(p unsafe.Pointer, size uintptr) { runtime.RaceWriteRange(p, int(size)) }

// raceDead overwrites a dead range in the detector's eyes and in memory: a worker that still reads it is reported.
//
//go:norace
func raceDead(p unsafe.Pointer, size uintptr) {
	if size == 0 {
		return
	}
	runtime.RaceWriteRange(p, int(size))
	dead := unsafe.Slice((*byte)(p), size)
	dead[0] = 0xDB
	for n := 1; n < len(dead); n *= 2 {
		copy(dead[n:], dead[:n])
	}
}
