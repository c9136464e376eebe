// Package prometheus exports the figures of a budget to Prometheus. It is a module of its own,
// imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/prometheus"
//
//	registry.MustRegister(with.NewCollector(b))
//
// Sizes are gauges in bytes. A figure that only grows is a counter with the suffix _total. Each
// metric has the label "budget". A region with slots, the frame ("frame") and the scratch arenas
// ("scratch") have one series each for all their arenas. Metrics such as upfront_region_size_bytes
// and upfront_region_used_bytes are sums; those with "arena" in the name are of the fullest arena.
// So this finds a slot that is nearly full:
//
//	upfront_region_arena_peak_bytes / upfront_region_arena_size_bytes > 0.9
//
// Each label ([scope.Label]) and scope name of a region has a series: up to the plan's
// limits.labels of each, those with the highest peaks. The others are summed as "others".
//
// Peaks count from Open, and Reconfigure resets them. Figures are as last published
// ([budget.Budget.Published]): a region's are of its last Load or Rewind.
package prometheus
