// Package prometheus exports the metrics of a budget to Prometheus. The package is a module of its
// own, imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/prometheus"
//
//	registry.MustRegister(with.NewCollector(b))
//
// Sizes are gauges in bytes. A total is a counter with the suffix _total. Each metric has the label
// "budget". All slots of a region share a series, and so do the frame's buffers ("frame") and the
// scratch arenas ("scratch"). Metrics such as upfront_region_size_bytes and
// upfront_region_used_bytes are sums over these arenas. Metrics that begin with
// upfront_region_arena_ are the highest of a single arena. So this expression finds a region in
// which a slot was nearly full:
//
//	upfront_region_arena_peak_bytes / upfront_region_arena_size_bytes > 0.9
//
// For each region, the labels ([scope.Label]) with the highest peaks have a series each, up to
// limits.labels of the region. So do the scope names, up to the same number. The rest of each kind
// is the series "others", with their highest peak.
//
// Peaks count from Open. Reconfigure resets the peaks of the regions that it moves. Values of
// arenas are as last published ([budget.Budget.Published]).
package prometheus
