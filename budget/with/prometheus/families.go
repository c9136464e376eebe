package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upfront-mem/upfront/budget"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// family is a metric: its name without "upfront_", what it says, its labels beside the budget's.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}

var (
	region = []string{"region"}
	label  = []string{"region", "label"}
	named  = []string{"region", "scope"}
	opened = []string{"region", "kind"}
)

// families are those of the budget, of each figure of a part, and of what its names hold.
var families = append(figures(), []family{
	{"size_bytes", "What the budget has, tables and guards included.", gauge, nil},
	{"committed_bytes", "What of the budget's size may be read and written.", gauge, nil},
	{"not_granted", "How many wishes of the plan the system refused.", gauge, nil},
	{"finalizer_errors_total", "Errors of finalizers whose contents a load replaced.", counter, nil},
	{"go_heap_limit_bytes", "What the plan gives the Go heap of the process; 0: it doesn't govern it.", gauge, nil},
	{"go_heap_used_bytes", "What the Go runtime has from the system, as its memory limit counts.", gauge, nil},

	{"region_allocated_bytes_total", "All that the region's scopes ever held, also what is gone; not of scratch.", counter, region},
	{"region_open_limit", "How many of these an arena may have open (limits in the plan).", gauge, opened},

	{"label_used_bytes", "What the label holds in all arenas of the region.", gauge, label},
	{"label_arena_peak_bytes", "The most that the label held in an arena of the region.", gauge, label},
	{"scope_used_bytes", "What scopes of the name hold in all arenas of the region.", gauge, named},
	{"scope_arena_peak_bytes", "The most that scopes of the name held in an arena of the region.", gauge, named},
}...)

// figures are the families of budget.Figures.
func figures() (list []family) {
	for _, f := range budget.Figures() {
		kind := gauge
		if grows(f) {
			kind = counter
		}
		list = append(list, family{metricOf(f), f.Help, kind, region})
	}
	return list
}

// metricOf is the metric of a figure: region_arena_peak_bytes, region_fulls_total.
func metricOf(f budget.Figure) string {
	name := "region_" + f.Name
	if f.Unit == budget.Bytes {
		name += "_bytes"
	}
	if grows(f) {
		name += "_total"
	}
	return name
}

func grows(f budget.Figure) bool { return f.Kind == budget.Total || f.Kind == budget.Fault }

// onlyCounted are the figures that a checked build counts; in others they would be zeros that say nothing.
func onlyCounted(f budget.Figure) bool { return f.Name == "objects" || f.Name == "padding" }
