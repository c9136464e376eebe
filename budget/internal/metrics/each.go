package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// See receives a value of the metric at an index of [Table]. The values of the metric's labels are
// region and, for a second label, name; a label that the metric doesn't have is "".
type See func(metric int, value uint64, region, name string)

// Each calls see with each value of a report that is known. For each region it has at most
// limits.labels labels, and as many scopes; the sum of the rest has the name "others". Cost:
// O(arenas and names), with Go allocations only for [budget.Report.Parts].
func Each(r *budget.Report, see See) {
	at := each(0, ofBudget, r, "", "", see)
	parts := r.Parts()
	for i := range parts {
		eachOfPart(at, &parts[i], limitsOf(&r.Plan, &parts[i]), see)
	}
}

// each passes the values of x for metrics that begin at an index of the table. It returns the index
// after these.
func each[T any](at int, sources []source[T], x *T, region, name string, see See) int {
	for i := range sources {
		if value, known := sources[i].of(x); known {
			see(at+i, value, region, name)
		}
	}
	return at + len(sources)
}

func eachOfPart(at int, p *budget.Part, limits budget.Limits, see See) {
	at = each(at, ofPart, p, p.Name, "", see)
	for _, l := range openLimits {
		see(at, uint64(max(0, l.of(limits))), p.Name, l.kind)
	}
	at++
	labels, scopes := bounded(p.Labels, limits.Labels), bounded(p.Scopes, limits.Labels)
	for i := range labels {
		each(at, ofLabel, &labels[i], p.Name, labels[i].Name, see)
	}
	at += len(ofLabel)
	for i := range scopes {
		each(at, ofScope, &scopes[i], p.Name, scopes[i].Name, see)
	}
}

// limitsOf returns the limits of a part: those of a region, and the plan's in place of zeros.
func limitsOf(plan *budget.Plan, p *budget.Part) budget.Limits {
	l := plan.Limits
	for i := range plan.Regions {
		if r := &plan.Regions[i]; r.Name == p.Name && (p.Kind == "region" || p.Kind == "slot") {
			return budget.Limits{Scopes: cmp.Or(r.Limits.Scopes, l.Scopes), Pools: cmp.Or(r.Limits.Pools, l.Pools),
				Owned: cmp.Or(r.Limits.Owned, l.Owned), Labels: cmp.Or(r.Limits.Labels, l.Labels)}
		}
	}
	return l
}

// others is the name for the sum of names beyond the limit.
const others = "others"

// bounded returns the names with the highest peaks, up to most, and one for the others: each slot
// may have names of its own. Peaks rarely shrink, so a name rarely leaves the list. The result uses
// the memory of names.
func bounded(names []budget.PartUsage, most int) []budget.PartUsage {
	for i := range names {
		names[i].Name = strings.ToValidUTF8(names[i].Name, "\uFFFD")
	}
	slices.SortFunc(names, func(a, b budget.PartUsage) int { return cmp.Compare(a.Name, b.Name) })
	list, rest := names[:0], budget.PartUsage{Usage: scope.Usage{Name: others}}
	for _, u := range names {
		if last := len(list) - 1; u.Name == others {
			rest = together(rest, u, others)
		} else if last >= 0 && list[last].Name == u.Name {
			list[last] = together(list[last], u, u.Name)
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
