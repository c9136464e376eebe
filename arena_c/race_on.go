//go:build race

package arena_c

import (
	"runtime"
	"unsafe"
)

// Race reports whether the race detector is on. It doesn't see clear and moves of dead bytes, so
// the bindings report both.
const Race = true

func raceRead(p unsafe.Pointer, size uintptr)  { runtime.RaceReadRange(p, int(size)) }
func raceWrite(p unsafe.Pointer, size uintptr) { runtime.RaceWriteRange(p, int(size)) }

// raceTaken marks a chunk as written for the detector, and clears the bytes after its value of size
// bytes: they are part of a state's hash, and zero in other builds.
func raceTaken(p unsafe.Pointer, size, stride uintptr) {
	runtime.RaceWriteRange(p, int(stride))
	clear(unsafe.Slice((*byte)(unsafe.Add(p, size)), stride-size))
}

// raceDead marks dead bytes as written for the detector, and overwrites them: a goroutine that
// still reads them is reported.
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

// A crossing hides races from the detector in two ways. The detector doesn't see reads and writes
// of C. And the runtime treats each cgo call as synchronization with all others, because C may have
// locks; the core has none. So a binding that programs call often names the word of its header that
// C writes, or only reads, and the detector ignores synchronization until the call returns:
//
//	return Code(crossed(writes(&l.Cursor), C.upfront_linear_rewind(l.c(), …)))
//
// Go evaluates calls from left to right. A nil header panics before the detector is called.
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
