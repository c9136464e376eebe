// Package prometheus exports the metrics of a budget to Prometheus. It is a module of its own,
// imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/prometheus"
//
//	registry.MustRegister(with.NewCollector(b))
//
// Sizes are gauges in bytes. A metric that only grows is a counter with the suffix _total. Each
// metric has the label "budget". All slots of a region share a series, and so do the frame's
// buffers ("frame") and the scratch arenas ("scratch"). Metrics such as upfront_region_size_bytes
// and upfront_region_used_bytes are sums over these arenas. Those that begin with
// upfront_region_arena_ are the highest of an arena. So this finds a slot that is nearly full:
//
//	upfront_region_arena_peak_bytes / upfront_region_arena_size_bytes > 0.9
//
// The labels ([scope.Label]) and scope names of a region with the highest peaks have a series each,
// up to its limits.labels of both kinds. The rest are summed as "others".
//
// Peaks count from Open, and Reconfigure resets those of the regions that it moves. Values are as
// last published ([budget.Budget.Published]).
package prometheus
