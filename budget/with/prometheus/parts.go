package prometheus

import (
	"cmp"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// others is the name for the sum of names beyond the limit.
const others = "others"

func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func givePart(p budget.Part, limits budget.Limits, give give) {
	counted := p.Arenas[0].Counted
	for _, f := range budget.Figures() {
		if counted || !onlyCounted(f) {
			give(metricOf(f), float64(p.Value(f.Name)), p.Name)
		}
	}
	for i, n := range [...]int{limits.Scopes, limits.Pools, limits.Owned, limits.Labels} {
		give("region_open_limit", float64(n), p.Name, [...]string{"scopes", "pools", "owned", "labels"}[i])
	}
	allocated := uint64(0)
	for _, u := range p.Scopes {
		allocated += u.Allocated
	}
	if len(p.Scopes) != 0 {
		give("region_allocated_bytes_total", float64(allocated), p.Name)
	}
	for _, u := range bounded(p.Labels, limits.Labels) {
		give("label_used_bytes", float64(u.Bytes), p.Name, u.Name)
		give("label_arena_used_bytes", float64(u.ArenaBytes), p.Name, u.Name)
		give("label_arena_peak_bytes", float64(u.Peak), p.Name, u.Name)
	}
	for _, u := range bounded(p.Scopes, limits.Labels) {
		give("scope_used_bytes", float64(u.Bytes), p.Name, u.Name)
		give("scope_arena_used_bytes", float64(u.ArenaBytes), p.Name, u.Name)
		give("scope_arena_peak_bytes", float64(u.Peak), p.Name, u.Name)
	}
}

// limitsOf returns the limits of a part: those of a region, and the plan's in place of zeros.
func limitsOf(plan budget.Plan, p budget.Part) budget.Limits {
	l := plan.Limits
	for _, r := range plan.Regions {
		if r.Name == p.Name && (p.Kind == "region" || p.Kind == "slot") {
			return budget.Limits{Scopes: cmp.Or(r.Limits.Scopes, l.Scopes), Pools: cmp.Or(r.Limits.Pools, l.Pools),
				Owned: cmp.Or(r.Limits.Owned, l.Owned), Labels: cmp.Or(r.Limits.Labels, l.Labels)}
		}
	}
	return l
}

// bounded returns the names with the highest peaks, up to limits.labels, and one for the others:
// each slot may have names of its own. Peaks rarely shrink, so a name rarely leaves the list.
func bounded(names []budget.PartUsage, most int) (list []budget.PartUsage) {
	byName, rest := map[string]budget.PartUsage{}, budget.PartUsage{Usage: scope.Usage{Name: others}}
	for _, u := range names {
		name := valid(u.Name)
		byName[name] = together(byName[name], u, name)
	}
	for name, u := range byName {
		if name == others {
			rest = u
		} else {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b budget.PartUsage) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(a.Name, b.Name))
	})
	for len(list) > max(1, most) {
		rest = together(rest, list[len(list)-1], others)
		list = list[:len(list)-1]
	}
	if rest.Bytes|rest.Peak != 0 {
		list = append(list, rest)
	}
	return list
}

// together returns the sum of two names' bytes, and the larger values of one arena.
func together(a, b budget.PartUsage, name string) budget.PartUsage {
	sum := scope.Usage{Name: name, Bytes: a.Bytes + b.Bytes, Peak: max(a.Peak, b.Peak)}
	return budget.PartUsage{Usage: sum, ArenaBytes: max(a.ArenaBytes, b.ArenaBytes)}
}
