package serve

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// heapWatch counts the allocations on the Go heap by call stack. The profile has every object,
// because the program sets its rate to 1 at the start. Only a collection updates the profile, so
// begin and end each run the collector, outside of the count.
type heapWatch struct {
	before map[[32]uintptr]int64
	stats  runtime.MemStats
}

// quiet runs the collector once, and then turns it off. It runs again when the Go heap reaches the
// plan's share.
func quiet() {
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
}

func (h *heapWatch) begin() {
	h.before = h.read()
	runtime.GC() // frees read's own garbage
	runtime.ReadMemStats(&h.stats)
}

// end adds the allocations since begin to the result.
func (h *heapWatch) end(r *Result) {
	before := h.stats
	runtime.ReadMemStats(&h.stats)
	r.Collections += h.stats.NumGC - before.NumGC
	r.Pauses += (h.stats.PauseTotalNs - before.PauseTotalNs) / 1000
	all := h.stats.Mallocs - before.Mallocs
	var program, page uint64
	for stack, count := range h.read() {
		if count -= h.before[stack]; count > 0 {
			switch frames := programFrames(stack[:]); {
			case frames == nil:
			case ofPage(stack, frames):
				page += uint64(count)
			default:
				program += uint64(count)
				r.AllocatedBy = append(r.AllocatedBy, fmt.Sprintf("%d: %s", count, strings.Join(frames, " < ")))
			}
		}
	}
	slices.Sort(r.AllocatedBy)
	r.GoAllocs += program
	r.GoAllocsPage += page
	r.GoAllocsRuntime += all - min(all, program+page)
}

// read returns the number of objects that each stack has allocated since the process began.
func (h *heapWatch) read() map[[32]uintptr]int64 {
	runtime.GC()
	runtime.GC()
	var records []runtime.MemProfileRecord
	n, ok := runtime.MemProfile(nil, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, n+n/8+64)
		n, ok = runtime.MemProfile(records, true)
	}
	made := make(map[[32]uintptr]int64, n)
	for i := range records[:n] {
		made[records[i].Stack0] += records[i].AllocObjects
	}
	return made
}

// programFrames returns the frames of a stack, innermost first. It returns nil if all are the
// runtime's, or if the stack is the count's own, or if the runtime makes the cache of a type switch
// or a type assertion. It makes such a cache at one of a thousand misses, by chance.
func programFrames(stack []uintptr) (list []string) {
	if end := slices.Index(stack, 0); end >= 0 {
		stack = stack[:end]
	}
	outside := false
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/")
		if strings.Contains(f.Function, ".(*heapWatch).") || f.Function == "runtime.buildTypeAssertCache" ||
			f.Function == "runtime.buildInterfaceSwitchCache" {
			return nil
		}
		if outside = outside || f.Function != "" && !own; f.Function != "" {
			list = append(list, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
	}
	if !outside {
		return nil
	}
	return list
}

// ofPage reports whether a stack serves a page or a probe, calls Agones' sidecar, speaks with the
// other process of a hand-over, or looks up a name in a goroutine of package net. A stack that
// fills its record does, because no stack of a tick is so deep. The players' packets go through
// package net too, but their stacks have frames of this module.
func ofPage(stack [32]uintptr, frames []string) bool {
	has := func(prefix string) bool {
		return slices.ContainsFunc(frames, func(f string) bool { return strings.HasPrefix(f, prefix) })
	}
	return stack[len(stack)-1] != 0 || has("net/http.") || has(modulePath+"budget/with/agones.") ||
		has(modulePath+"tests/frogpond/internal/serve.acceptHeirs:") ||
		has(modulePath+"tests/frogpond/internal/serve.(*heir).answer:") || has("net.") && !has(modulePath)
}

const modulePath = "github.com/upfront-mem/upfront/"
