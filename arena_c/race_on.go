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

// A crossing hides races twice. The detector doesn't see what C reads and writes; and the runtime takes each cgo call for
// synchronization with all others, since C may have locks. The core has none. So a binding that is called at play says which
// word of its header C writes, or only reads, and the detector hears of no synchronization until the call is back:
//
//	return Code(crossed(writes(&l.Cursor), C.upfront_linear_rewind(l.c(), …)))
//
// Go evaluates calls from left to right. A nil header panics before anything is told.
type crossing struct{}

func writes(word *uint64) crossing {
	runtime.RaceWrite(unsafe.Pointer(word))
	runtime.RaceDisable()
	return crossing{}
}

func reads(word *uint64) crossing {
	runtime.RaceRead(unsafe.Pointer(word))
	runtime.RaceDisable()
	return crossing{}
}

func crossed[T any](_ crossing, answer T) T {
	runtime.RaceEnable()
	return answer
}
