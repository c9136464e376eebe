package budget

import (
	"runtime/metrics"

	"github.com/upfront-mem/upfront/platform"
)

// GoHeap is the Go runtime's memory, which lies beside the budget. It is the whole process's. Sizes are bytes.
type GoHeap struct {
	Limit       uint64 `json:"limit"`       // what the plan gives it (go_heap); 0: the budget doesn't govern it
	Used        uint64 `json:"used"`        // what the runtime has from the system, as its memory limit counts
	Collections uint64 `json:"collections"` // since Open
}

const (
	metricTotal    = "/memory/classes/total:bytes"
	metricReleased = "/memory/classes/heap/released:bytes"
	metricCycles   = "/gc/cycles/total:gc-cycles"
)

// readMetrics reads figures of the runtime. It stops nothing.
func readMetrics(names ...string) []metrics.Sample {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	return samples
}

func collections() uint64 { return readMetrics(metricCycles)[0].Value.Uint64() }

// goHeap reads the figures as they are now. Any goroutine may.
func (b *Budget) goHeap() GoHeap {
	s := readMetrics(metricTotal, metricReleased, metricCycles)
	used := s[0].Value.Uint64() - s[1].Value.Uint64()
	if platform.GoBacked && !b.foreign() {
		used -= min(used, b.published.head.Size) // the budget is Go memory, and has figures of its own
	}
	return GoHeap{Limit: b.published.head.GoHeap.Limit, Used: used, Collections: s[2].Value.Uint64() - b.published.cycles}
}
