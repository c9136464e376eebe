//go:build memtrace

package arena_c

import (
	"runtime"
	"slices"
)

// inside stands in place of a number for calls of the library and of the Go runtime.
const inside = 1<<32 - 1

// callSite is the number of the first call on the way here that isn't the library's; 0: there is none, or the table is full. Its
// Text is one line. Most requests come from near: few calls are looked at first.
func callSite() uint32 {
	const skip = 5 // runtime.Callers, callSite, and three more of this package
	var few [6]uintptr
	id := outside(few[:runtime.Callers(skip, few[:])])
	if id == inside {
		var many [64]uintptr
		id = outside(many[:runtime.Callers(skip, many[:])])
	}
	if id == inside {
		return 0
	}
	return id
}

// outside is the number of the first of the calls that isn't inside, or inside.
func outside(calls []uintptr) uint32 {
	for _, pc := range calls {
		key := uint64(pc) * 0x9E3779B97F4A7C15 // its low bits say where to look
		id, ok := sites.find(key)
		if !ok {
			if sites.full.Load() {
				return told(0)
			}
			id = told(sites.addCall(key, pc))
		}
		if id != inside {
			return id
		}
	}
	return inside
}

func (t *siteTable) addCall(key uint64, pc uintptr) uint32 {
	frame, _ := runtime.CallersFrames(append(make([]uintptr, 0, 2), pc)).Next() // 16 bytes: smaller ones are in no heap profile
	t.Lock()
	defer t.Unlock()
	if of := packageOf(frame.Function); of == "runtime" || slices.Contains(library, of) {
		t.put(key, inside)
		return inside
	}
	return t.add(key, appendCall(t.text[:0], frame))
}
