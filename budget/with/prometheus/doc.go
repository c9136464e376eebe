// Package prometheus gives the figures of a budget to Prometheus. It is a module of its own, and
// imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/prometheus"
//
//	registry.MustRegister(with.NewCollector(b))
//
// Sizes are gauges in bytes, what only grows is a counter that ends in _total, and each metric has
// the label "budget". A region with slots, the frame ("frame") and the scratch arenas ("scratch")
// have one series each, however many arenas they have: upfront_region_size_bytes and
// upfront_region_used_bytes are sums, and those of an "arena" say what the fullest of them has. So a
// slot that comes close to its size is
//
//	upfront_region_arena_peak_bytes / upfront_region_arena_size_bytes > 0.9
//
// Labels ([scope.Label]) and names of scopes have a series each, in a region at most as many as
// limits.labels of the plan; those with the smallest peaks are "others" together.
//
// Peaks are since Open; Reconfigure forgets them. Figures are as they were last published
// ([budget.Budget.Published]): what a region holds is of its last Load or Rewind.
package prometheus
