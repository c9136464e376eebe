package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upfront-mem/upfront/budget"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// family is a metric: its name without "upfront_", its help, and its labels besides the budget's.
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

// families are the metrics of the budget, of each of [budget.Figures], and of names.
var families = append(figures(), []family{
	{"size_bytes", "Size of the budget, with its tables and guards.", gauge, nil},
	{"committed_bytes", "Bytes of the budget that may be read and written.", gauge, nil},
	{"not_granted", "Requests of the plan that the system refused.", gauge, nil},
	{"finalizer_errors_total", "Errors of finalizers that no call could return.", counter, nil},
	{"go_heap_limit_bytes", "The collector's limit that the plan sets; 0 if it sets none.", gauge, nil},
	{"go_heap_used_bytes", "Bytes that the Go runtime has from the system, as its memory limit counts.", gauge, nil},

	{"region_allocated_bytes_total",
		"Bytes that the region's scopes ever held, released ones included; not of scratch.", counter, region},
	{"region_open_limit", "The most that an arena may have open of each kind (limits in the plan).", gauge, opened},

	{"label_used_bytes", "Bytes of the label in all arenas of the region.", gauge, label},
	{"label_arena_used_bytes", "The most that the label holds now in an arena of the region.", gauge, label},
	{"label_arena_peak_bytes", "The most that the label held in an arena of the region.", gauge, label},
	{"scope_used_bytes", "Bytes of scopes of the name in all arenas of the region.", gauge, named},
	{"scope_arena_used_bytes", "The most that scopes of the name hold now in an arena of the region.", gauge, named},
	{"scope_arena_peak_bytes", "The most that scopes of the name held in an arena of the region.", gauge, named},
}...)

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

// metricOf returns the metric's name for a budget.Figure: region_arena_peak_bytes,
// region_fulls_total.
func metricOf(f budget.Figure) string {
	name := "region_" + f.Name
	if f.Bytes {
		name += "_bytes"
	}
	if grows(f) {
		name += "_total"
	}
	return name
}

func grows(f budget.Figure) bool { return f.Kind == "total" || f.Kind == "fault" }

// onlyCounted reports whether only checked builds count a budget.Figure.
func onlyCounted(f budget.Figure) bool { return f.Name == "objects" || f.Name == "padding" }
