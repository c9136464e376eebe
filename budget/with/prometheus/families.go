package prometheus

import "github.com/prometheus/client_golang/prometheus"

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

var families = []family{
	{"size_bytes", "What the budget has, tables and guards included.", gauge, nil},
	{"committed_bytes", "What of the budget's size may be read and written.", gauge, nil},
	{"not_granted", "How many wishes of the plan the system refused.", gauge, nil},
	{"finalizer_errors_total", "Errors of finalizers whose contents a load replaced.", counter, nil},
	{"go_heap_limit_bytes", "What the plan gives the Go heap of the process; 0: it doesn't govern it.", gauge, nil},
	{"go_heap_used_bytes", "What the Go runtime has from the system, as its memory limit counts.", gauge, nil},

	{"region_arenas", "How many slots, buffers or scratch arenas the region has; 1: it is one itself.", gauge, region},
	{"region_arenas_in_use", "How many of the region's arenas hold something.", gauge, region},
	{"region_size_bytes", "What all arenas of the region have.", gauge, region},
	{"region_used_bytes", "What all arenas of the region hold.", gauge, region},
	{"region_arena_size_bytes", "What each arena of the region has.", gauge, region},
	{"region_arena_used_bytes", "What the fullest arena of the region holds.", gauge, region},
	{"region_arena_peak_bytes", "The most that an arena of the region ever held.", gauge, region},
	{"region_arena_load_peak_bytes", "The most that an arena of the region held since it was last emptied.", gauge, region},
	{"region_objects", "Allocations that live in the region, in a checked build; others don't count them.", gauge, region},
	{"region_pool_chunks", "Chunks of the pools that are open in the region.", gauge, region},
	{"region_pool_chunks_peak", "The sum of the most that these pools gave at once.", gauge, region},
	{"region_finalizers_total", "Finalizers that ran in the region.", counter, region},
	{"region_allocated_bytes_total", "All that the region's scopes ever held, also what is gone; not of scratch.", counter, region},
	{"region_fulls_total", "How often the region was full, and told of it.", counter, region},
	{"region_open_peak", "The most scopes, pools, owned values or labels that an arena of the region had open.", gauge, opened},
	{"region_open_limit", "How many of these an arena may have open (limits in the plan).", gauge, opened},

	{"label_used_bytes", "What the label holds in all arenas of the region.", gauge, label},
	{"label_arena_peak_bytes", "The most that the label held in an arena of the region.", gauge, label},
	{"scope_used_bytes", "What scopes of the name hold in all arenas of the region.", gauge, named},
	{"scope_arena_peak_bytes", "The most that scopes of the name held in an arena of the region.", gauge, named},
}
