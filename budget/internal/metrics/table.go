// Package metrics is the table of a budget's metrics. The clients below budget/with that export
// metrics share the table: each client only spells the names, and hands over the values.
package metrics

import (
	"slices"

	"github.com/upfront-mem/upfront/budget"
)

// Metric is a metric of a budget, or of the parts and names in it.
type Metric struct {
	Name string // words joined by "_", without the unit: "region_arena_peak"
	Help string // one sentence
	Unit string // in UCUM: "By" for bytes, or a count such as "{arena}"
	Kind Kind
	// Labels are "region", and for some metrics a second one: "label", "scope" or "kind".
	Labels []string
}

// Kind is the relation of a metric's values to each other.
type Kind int

const (
	Sum   Kind = iota // rises and falls; values of several regions may be added
	Most              // rises and falls; the highest or only value of an arena, never added
	Total             // only grows
)

// source is a metric, and its value for one x: a report, a part, or the use of a name. A value that
// isn't known has no series.
type source[T any] struct {
	Metric
	of func(x *T) (value uint64, known bool)
}

var (
	region = []string{"region"}
	label  = []string{"region", "label"}
	named  = []string{"region", "scope"}
	opened = []string{"region", "kind"}
)

const bytes = "By"

// ofBudget are the metrics of a budget and its process.
var ofBudget = []source[budget.Report]{
	{Metric{"size", "Size of the budget, with its tables and guards.", bytes, Sum, nil},
		func(r *budget.Report) (uint64, bool) { return r.Size, true }},
	{Metric{"committed", "Bytes of the budget that may be read and written.", bytes, Sum, nil},
		func(r *budget.Report) (uint64, bool) { return r.Committed, true }},
	{Metric{"not_granted", "Requests of the plan that the system refused.", "{request}", Sum, nil},
		func(r *budget.Report) (uint64, bool) { return uint64(len(r.NotGranted)), true }},
	{Metric{"finalizer_errors", "Errors of finalizers that no call could return.", "{error}", Total, nil},
		func(r *budget.Report) (uint64, bool) { return uint64(max(0, r.ErrorCount)), true }},
	{Metric{"go_heap_limit", "The collector's limit, if the plan sets one.", bytes, Sum, nil},
		func(r *budget.Report) (uint64, bool) { return r.GoHeap.Limit, r.GoHeap.Limit != 0 }},
	{Metric{"go_heap_used", "Bytes that the Go runtime has from the system, as its memory limit counts.", bytes, Sum,
		nil},
		func(r *budget.Report) (uint64, bool) { return r.GoHeap.Used, true }},
	{Metric{"outside", "Resident bytes of the process that no plan, heap or file has.", bytes, Sum, nil},
		func(r *budget.Report) (uint64, bool) { return r.Outside.Bytes, r.Outside.Process != 0 }},
	{Metric{"outside_error", "The part of the bytes outside that may be the Go runtime's.", bytes, Sum, nil},
		func(r *budget.Report) (uint64, bool) { return r.Outside.Error, r.Outside.Process != 0 }},
}

// ofPart are the metrics of a part: those of [budget.Figures], and one more.
var ofPart = append(figures(), source[budget.Part]{
	Metric{"region_allocated", "Bytes that the region's scopes ever held, released ones included; not of scratch.",
		bytes, Total, region},
	func(p *budget.Part) (sum uint64, known bool) {
		for i := range p.Scopes {
			sum += p.Scopes[i].Allocated
		}
		return sum, len(p.Scopes) != 0
	}})

// ofLimit has a value for each kind of openLimits.
var ofLimit = Metric{"region_open_limit", "The most that an arena may have open of each kind (limits in the plan).",
	"{open}", Most, opened}

var openLimits = []struct {
	kind string
	of   func(l budget.Limits) int
}{
	{"scopes", func(l budget.Limits) int { return l.Scopes }},
	{"pools", func(l budget.Limits) int { return l.Pools }},
	{"owned", func(l budget.Limits) int { return l.Owned }},
	{"labels", func(l budget.Limits) int { return l.Labels }},
}

func used(u *budget.PartUsage) (uint64, bool)      { return u.Bytes, true }
func arenaUsed(u *budget.PartUsage) (uint64, bool) { return u.ArenaBytes, true }
func arenaPeak(u *budget.PartUsage) (uint64, bool) { return u.Peak, true }

var ofLabel = []source[budget.PartUsage]{
	{Metric{"label_used", "Bytes of the label in all arenas of the region.", bytes, Sum, label}, used},
	{Metric{"label_arena_used", "The most that the label holds now in an arena of the region.", bytes, Most, label},
		arenaUsed},
	{Metric{"label_arena_peak", "The most that the label held in an arena of the region.", bytes, Most, label},
		arenaPeak},
}

var ofScope = []source[budget.PartUsage]{
	{Metric{"scope_used", "Bytes of scopes of the name in all arenas of the region.", bytes, Sum, named}, used},
	{Metric{"scope_arena_used", "The most that scopes of the name hold now in an arena of the region.", bytes, Most,
		named}, arenaUsed},
	{Metric{"scope_arena_peak", "The most that scopes of the name held in an arena of the region.", bytes, Most, named},
		arenaPeak},
}

// units are those of the figures that aren't in bytes.
var units = map[string]string{
	"arenas": "{arena}", "arenas_in_use": "{arena}", "objects": "{object}",
	"pool_chunks": "{chunk}", "pool_chunks_peak": "{chunk}", "finalizers": "{finalizer}",
	"cache_hits": "{hit}", "cache_misses": "{miss}", "cache_evictions": "{eviction}",
	"fulls": "{error}", "warnings": "{warning}", "waiting": "{wait}", "waited": "{wait}",
	"longest_wait": "{microsecond}",
	"open_scopes":  "{scope}", "open_pools": "{pool}", "open_owned": "{value}", "open_labels": "{label}",
}

func figures() (list []source[budget.Part]) {
	for _, f := range budget.Figures() {
		m := Metric{"region_" + f.Name, f.Help, units[f.Name], Sum, region}
		if f.Bytes {
			m.Unit = bytes
		}
		if f.Most {
			m.Kind = Most
		}
		if f.Kind == "total" || f.Kind == "fault" {
			m.Kind = Total
		}
		list = append(list, source[budget.Part]{m, func(p *budget.Part) (uint64, bool) {
			return p.Value(f.Name), (p.Arenas[0].Counted || !onlyCounted(f)) && (mayWait(p) || !ofWaits(f))
		}})
	}
	return list
}

// mayWait reports whether callers may wait for the part.
func mayWait(p *budget.Part) bool { return p.Kind == "quota" || p.Kind == "slot" }

func ofWaits(f budget.Figure) bool {
	return f.Name == "waiting" || f.Name == "waited" || f.Name == "longest_wait"
}

// onlyCounted reports whether only checked builds count a figure.
func onlyCounted(f budget.Figure) bool { return f.Name == "objects" || f.Name == "padding" }

// table has the metrics in the order in which Each counts them.
var table = slices.Concat(metricsOf(ofBudget), metricsOf(ofPart), []Metric{ofLimit}, metricsOf(ofLabel),
	metricsOf(ofScope))

func metricsOf[T any](sources []source[T]) (list []Metric) {
	for _, s := range sources {
		list = append(list, s.Metric)
	}
	return list
}

// Table returns all metrics. [Each] refers to a metric by its index in this list.
func Table() []Metric { return slices.Clone(table) }
