package main

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
)

// reportDiff is what report diff prints.
type reportDiff struct {
	A           string       `json:"a"`
	B           string       `json:"b"`
	Equal       bool         `json:"equal"`
	Differences []difference `json:"differences,omitempty"`
}

// difference is a figure that two reports have otherwise.
type difference struct {
	whose
	Figure string `json:"figure"`
	A      uint64 `json:"a"`
	B      uint64 `json:"b"`
}

// whose is what a figure is of: the budget, a region with its slots, or a name in it.
type whose struct {
	Region string `json:"region,omitempty"`
	Kind   string `json:"kind,omitempty"` // label, scope
	Name   string `json:"name,omitempty"`
}

// figures are those of a report, in its order.
type figures struct {
	order  []figure
	values map[figure]uint64
}

type figure struct {
	whose
	name string
}

func figuresOf(r budget.Report) figures {
	f := figures{values: map[figure]uint64{}}
	b := whose{}
	f.sum(b, "size", r.Size)
	f.sum(b, "committed", r.Committed)
	f.sum(b, "go_heap.limit", r.GoHeap.Limit)
	f.sum(b, "not_granted", uint64(len(r.NotGranted)))
	f.count(b, "errors", r.ErrorCount)
	f.count(b, "leaks.scopes", r.Leaks.Scopes)
	f.count(b, "leaks.owned", r.Leaks.Owned)
	f.count(b, "leaks.finalizers", r.Leaks.Finalizers)
	f.count(b, "leaks.slots", r.Leaks.Slots)
	f.count(b, "leaks.scratch", r.Leaks.Scratch)
	f.count(b, "leaks.blocks", r.Leaks.Blocks)
	for _, a := range slices.Concat(r.Regions, r.Beside) {
		f.arena(a)
	}
	return f
}

// arena adds the figures of a region, or of one of its slots.
func (f *figures) arena(a budget.RegionReport) {
	region := budget.RegionOf(a.Name)
	w := whose{Region: region}
	f.sum(w, "arenas", 1)
	f.most(w, "size", a.Size)
	f.sum(w, "used", a.Used)
	f.most(w, "peak", a.Peak)
	f.most(w, "load_peak", a.LoadPeak)
	f.sum(w, "objects", a.Objects)
	f.sum(w, "padding", a.Padding)
	f.sum(w, "finalizers", a.Finalizers)
	f.sum(w, "pool_cap", a.PoolCap)
	f.sum(w, "pool_peak", a.PoolPeak)
	f.count(w, "fulls", a.Fulls)
	f.most(w, "most_open.scopes", atLeastZero(a.MostOpen.Scopes))
	f.most(w, "most_open.pools", atLeastZero(a.MostOpen.Pools))
	f.most(w, "most_open.owned", atLeastZero(a.MostOpen.Owned))
	f.most(w, "most_open.labels", atLeastZero(a.MostOpen.Labels))
	for _, u := range a.Labels {
		f.usage(whose{region, "label", u.Name}, u)
	}
	for _, u := range a.Scopes {
		f.usage(whose{region, "scope", a.ScopeName(u.Name)}, u)
	}
}

func (f *figures) usage(w whose, u scope.Usage) {
	f.sum(w, "used", u.Bytes)
	f.most(w, "peak", u.Peak)
	f.sum(w, "objects", u.Objects)
}

func (f *figures) at(w whose, name string) figure {
	key := figure{w, name}
	if _, known := f.values[key]; !known {
		f.order = append(f.order, key)
	}
	return key
}

// sum adds; what is more than a number can be, which only a report by hand has, is the largest.
func (f *figures) sum(w whose, name string, value uint64) {
	key := f.at(w, name)
	total, carry := bits.Add64(f.values[key], value, 0)
	f.values[key] = total | -carry
}

func (f *figures) most(w whose, name string, value uint64) {
	key := f.at(w, name)
	f.values[key] = max(f.values[key], value)
}
func (f *figures) count(w whose, name string, n int) { f.sum(w, name, atLeastZero(n)) }

// atLeastZero is a count of a report that somebody may have written by hand.
func atLeastZero(n int) uint64 { return uint64(max(0, n)) }

// differences are those of two reports: the budget's own first, then by region, each with its names below, what changed
// by most bytes first. What one of them didn't count is no difference.
func differences(a, b budget.Report) (list []difference) {
	from, to := figuresOf(a), figuresOf(b)
	counted := counts(a) && counts(b)
	for _, key := range to.order {
		from.sum(key.whose, key.name, 0)
	}
	for _, key := range from.order {
		if !counted && (key.name == "objects" || key.name == "padding") {
			continue
		}
		if d := (difference{key.whose, key.name, from.values[key], to.values[key]}); d.A != d.B {
			list = append(list, d)
		}
	}
	weights := map[whose]uint64{}
	for _, d := range list {
		region := whose{Region: d.Region}
		weights[region], weights[d.whose] = max(weights[region], d.weight()), max(weights[d.whose], d.weight())
	}
	slices.SortStableFunc(list, func(a, b difference) int { return before(a.whose, b.whose, weights) })
	return list
}

func counts(r budget.Report) bool {
	return !slices.ContainsFunc(r.Regions, func(a budget.RegionReport) bool { return !a.Counted })
}

// weight is by how many bytes a figure changed; of other figures it is 0.
func (d difference) weight() uint64 {
	if d.Figure != "used" && d.Figure != "peak" {
		return 0
	}
	return max(d.A, d.B) - min(d.A, d.B)
}

// before orders whose figures come first.
func before(a, b whose, weights map[whose]uint64) int {
	if a == b {
		return 0
	}
	if a.Region != b.Region {
		if a.Region == "" || b.Region == "" {
			return cmp.Compare(a.Region, b.Region)
		}
		return cmp.Or(cmp.Compare(weights[whose{Region: b.Region}], weights[whose{Region: a.Region}]), cmp.Compare(a.Region, b.Region))
	}
	if a.Kind == "" || b.Kind == "" {
		return cmp.Compare(a.Kind, b.Kind)
	}
	return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// differ is the text of report diff.
func (t *tool) differ(w io.Writer, d reportDiff) error {
	if d.Equal {
		_, err := fmt.Fprintln(w, "equal")
		return err
	}
	rows := [][]cell{{left(""), left(""), right("A"), right("B"), right("change"), right("")}}
	var names naming
	for _, x := range d.Differences {
		rows = append(rows, x.row(names.of(x.whose)))
	}
	return t.table(w, rows)
}

// naming says in a table whose a row is, where that changes.
type naming struct {
	last  whose
	begun bool
}

func (n *naming) of(w whose) string {
	if n.begun && w == n.last {
		return ""
	}
	n.last, n.begun = w, true
	return w.String()
}

// String is its name in a table.
func (w whose) String() string {
	switch {
	case w.Region == "":
		return "budget"
	case w.Kind == "":
		return jsonfile.Echo(w.Region)
	}
	return "  " + w.Kind + " " + jsonfile.Echo(w.Name)
}

func (d difference) row(name string) []cell {
	change, share, c := "+"+strconv.FormatUint(d.B-d.A, 10), "new", red
	if d.B < d.A {
		change, share, c = "-"+strconv.FormatUint(d.A-d.B, 10), "gone", green
	}
	if d.A != 0 && d.B != 0 {
		share = fmt.Sprintf("%+.1f %%", (float64(d.B)-float64(d.A))/float64(d.A)*100)
	}
	number := func(n uint64) cell { return right(strconv.FormatUint(n, 10)) }
	return []cell{left(name), left(d.Figure), number(d.A), number(d.B), {change, true, c}, {share, true, c}}
}
