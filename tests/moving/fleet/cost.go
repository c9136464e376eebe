package fleet

import (
	"runtime"
	"runtime/metrics"
)

// Cost runs fn and returns its cost for the Go heap, by the names of figures. Memory that is still
// in use after fn counts as live; a part of it that the collector reads counts as scanned.
func Cost(fn func()) map[string]float64 {
	before := read()
	fn()
	after := read()
	return map[string]float64{
		"alloc-KB":     (after[0] - before[0]) / 1000,
		"collections":  after[1] - before[1] - 1, // without that of read
		"live-objects": after[2] - before[2],
		"scan-KB":      (after[3] - before[3]) / 1000,
	}
}

// read returns figures of the runtime after a collection, which also brings the figures up to date.
func read() (figures [4]float64) {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/objects:objects"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(samples)
	for i := range samples {
		figures[i] = float64(samples[i].Value.Uint64())
	}
	return figures
}
