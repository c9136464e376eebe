// Package otel exports the metrics of a budget to OpenTelemetry. The package is a module of its
// own, imported as with:
//
//	import with "github.com/upfront-mem/upfront/budget/with/otel"
//
//	registration, err := with.Register(b, otel.GetMeterProvider())
//
// Names begin with "upfront.", such as upfront.region.arena_peak, except those that OpenTelemetry's
// semantic conventions have for the Go runtime: go.memory.used and go.memory.limit. A size has the
// unit By. A count has a unit such as {arena}. If an exporter translates the names for Prometheus,
// the results are the names of package budget/with/prometheus, except for go.memory.
//
// The instrument shows which values may be added up. A value of a counter only grows. Values of an
// up-down counter may be added over regions and budgets, except those of go.memory: each budget has
// the values of the whole process. Values of a gauge may not be added: the size, use or peak of a
// single arena, or a limit.
//
// Each metric has the attribute upfront.budget.name. A region's metrics have upfront.region.name.
// All slots of a region share a series, and so do the frame's buffers ("frame") and the scratch
// arenas ("scratch"). C's malloc is the region "c_heap".
//
// For each region, the labels ([scope.Label]) with the highest peaks have a series each, up to
// limits.labels of the region. So do the scope names, up to the same number. The rest of each kind
// is the series "others", with their highest peak.
//
// A value that isn't known has no series: no limit of the Go heap if the plan sets none, and no
// objects and padding in a build that doesn't count them.
//
// Peaks count from Open. Reconfigure resets the peaks of the regions that it moves. Values of
// arenas are as last published ([budget.Budget.Published]).
package otel
