package serve

import (
	"runtime"
	"runtime/debug"
)

// heapWatch counts what is allocated on the Go heap, as the runtime does.
type heapWatch struct{ stats runtime.MemStats }

func (h *heapWatch) begin() { runtime.ReadMemStats(&h.stats) }

func (h *heapWatch) end(r *Result) {
	before := h.stats
	runtime.ReadMemStats(&h.stats)
	r.Collections += h.stats.NumGC - before.NumGC
	r.Pauses += (h.stats.PauseTotalNs - before.PauseTotalNs) / 1000
	r.GoAllocs += h.stats.Mallocs - before.Mallocs
}

// quiet ends what was before play. The collector goes on as GOGC and GOMEMLIMIT say.
func quiet() { debug.FreeOSMemory() }
