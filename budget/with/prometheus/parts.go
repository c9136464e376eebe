package prometheus

import (
	"cmp"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// others is the name of those beyond the bound.
const others = "others"

// part is a region with all its slots, or all buffers of the frame, or all scratch arenas: a series each
// would be thousands.
type part struct {
	name           string
	values         map[string]uint64 // by metric
	open           [4]int            // by kind
	limits         budget.Limits
	labels, scopes map[string]scope.Usage
}

// parts are those of a report, in its order.
func parts(r budget.Report) (list []*part) {
	byName := map[string]*part{}
	for _, a := range slices.Concat(r.Regions, r.Beside) {
		name := valid(budget.RegionOf(a.Name))
		p := byName[name]
		if p == nil {
			p = &part{name: name, values: map[string]uint64{}, limits: r.Plan.Limits,
				labels: map[string]scope.Usage{}, scopes: map[string]scope.Usage{}}
			byName[name], list = p, append(list, p)
		}
		p.add(a)
	}
	return list
}

func (p *part) add(a budget.RegionReport) {
	sum := func(name string, value uint64) { p.values[name] += value }
	most := func(name string, value uint64) { p.values[name] = max(p.values[name], value) }
	sum("region_arenas", 1)
	sum("region_arenas_in_use", min(1, a.Used))
	sum("region_size_bytes", a.Size)
	sum("region_used_bytes", a.Used)
	most("region_arena_size_bytes", a.Size)
	most("region_arena_used_bytes", a.Used)
	most("region_arena_peak_bytes", a.Peak)
	most("region_arena_load_peak_bytes", a.LoadPeak)
	if a.Counted {
		sum("region_objects", a.Objects)
	}
	sum("region_pool_chunks", a.PoolCap)
	sum("region_pool_chunks_peak", a.PoolPeak)
	sum("region_finalizers_total", a.Finalizers)
	sum("region_fulls_total", uint64(a.Fulls))
	for i, n := range byKind(a.MostOpen) {
		p.open[i] = max(p.open[i], n)
	}
	for _, u := range a.Labels {
		add(p.labels, valid(u.Name), u)
	}
	for _, u := range a.Scopes {
		sum("region_allocated_bytes_total", u.Allocated)
		add(p.scopes, valid(a.ScopeName(u.Name)), u)
	}
}

// add adds what a name holds, and keeps the most that it held in one arena.
func add(names map[string]scope.Usage, name string, u scope.Usage) {
	sum := names[name]
	names[name] = scope.Usage{Name: name, Bytes: sum.Bytes + u.Bytes, Peak: max(sum.Peak, u.Peak)}
}

// valid is a name as a label's value may be.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func (p *part) give(give give) {
	for name, value := range p.values {
		give(name, float64(value), p.name)
	}
	limits := byKind(p.limits)
	for i, n := range p.open {
		give("region_open_peak", float64(n), p.name, kinds[i])
		give("region_open_limit", float64(limits[i]), p.name, kinds[i])
	}
	for _, u := range p.bounded(p.labels) {
		give("label_used_bytes", float64(u.Bytes), p.name, u.Name)
		give("label_arena_peak_bytes", float64(u.Peak), p.name, u.Name)
	}
	for _, u := range p.bounded(p.scopes) {
		give("scope_used_bytes", float64(u.Bytes), p.name, u.Name)
		give("scope_arena_peak_bytes", float64(u.Peak), p.name, u.Name)
	}
}

var kinds = [...]string{"scopes", "pools", "owned", "labels"}

func byKind(l budget.Limits) [4]int { return [...]int{l.Scopes, l.Pools, l.Owned, l.Labels} }

// bounded are the names with the highest peaks, as many as limits.labels, and one for the others: slots may
// have each its own. A peak only grows, so that a name that is among them mostly stays.
func (p *part) bounded(names map[string]scope.Usage) (list []scope.Usage) {
	rest := names[others]
	rest.Name = others
	for name, u := range names {
		if name != others {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b scope.Usage) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(a.Name, b.Name))
	})
	for len(list) > max(1, p.limits.Labels) {
		last := list[len(list)-1]
		rest.Bytes, rest.Peak = rest.Bytes+last.Bytes, max(rest.Peak, last.Peak)
		list = list[:len(list)-1]
	}
	if rest.Bytes|rest.Peak != 0 {
		list = append(list, rest)
	}
	return list
}
