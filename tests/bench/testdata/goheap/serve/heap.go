package serve

import (
	"runtime"
	"runtime/debug"
)

// heapWatch counts allocations on the Go heap, with the runtime's figures.
type heapWatch struct{ stats runtime.MemStats }

func (h *heapWatch) begin() { runtime.ReadMemStats(&h.stats) }

func (h *heapWatch) end(r *Result) {
	before := h.stats
	runtime.ReadMemStats(&h.stats)
	r.Collections += h.stats.NumGC - before.NumGC
	r.Pauses += (h.stats.PauseTotalNs - before.PauseTotalNs) / 1000
	r.GoAllocs += h.stats.Mallocs - before.Mallocs
}

// quiet collects the garbage of the start. The collector goes on as GOGC and GOMEMLIMIT say.
func quiet() { debug.FreeOSMemory() }
