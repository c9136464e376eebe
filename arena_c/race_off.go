//go:build !race

package arena_c

import "unsafe"

// Race says whether the race detector is on.
const Race = false

func raceWrite(unsafe.Pointer, uintptr) {}
func raceDead(unsafe.Pointer, uintptr)  {}
