package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
)

// reportDiff is the output of report diff.
type reportDiff struct {
	A           string       `json:"a"`
	B           string       `json:"b"`
	Equal       bool         `json:"equal"`
	Differences []difference `json:"differences,omitempty"`
}

type difference struct {
	whose
	Figure string `json:"figure"`
	A      uint64 `json:"a"`
	B      uint64 `json:"b"`
}

// whose is the owner of a metric: the budget, a region with its slots, or a label or scope in a
// region.
type whose struct {
	Region string `json:"region,omitempty"`
	Kind   string `json:"kind,omitempty"` // label, scope
	Name   string `json:"name,omitempty"`
}

// figures are the metrics of a report, in its order: the budget's own, then each part's, followed
// by those of the part's labels and scopes.
type figures struct {
	order  []figure
	values map[figure]uint64
}

type figure struct {
	whose
	name string
}

// troubles are errors that the budget itself counts.
var troubles = [...]string{"errors", "leaks.scopes", "leaks.owned", "leaks.finalizers", "leaks.slots", "leaks.scratch",
	"leaks.blocks", "leaks.quotas"}

// ofParts are the metrics of a part. Labels and scopes in a part have some of them; the budget has
// a size too.
var ofParts = budget.Figures()

// known has the unit and kind of each metric by its name.
var known = func() map[string]budget.Figure {
	all := map[string]budget.Figure{"go_heap.limit": {Bytes: true, Kind: "planned"}}
	for _, name := range troubles {
		all[name] = budget.Figure{Kind: "fault"}
	}
	for _, f := range ofParts {
		all[f.Name] = f
	}
	return all
}()

func figuresOf(r budget.Report) figures {
	f, b := figures{values: map[figure]uint64{}}, whose{}
	f.add(b, "size", r.Size)
	f.add(b, "committed", r.Committed)
	if r.GoHeap.From == "" { // else it is a number of the machine, which no plan has
		f.add(b, "go_heap.limit", r.GoHeap.Limit)
	}
	f.add(b, "not_granted", uint64(len(r.NotGranted)))
	l := r.Leaks
	for i, n := range [len(troubles)]int{r.ErrorCount, l.Scopes, l.Owned, l.Finalizers, l.Slots, l.Scratch, l.Blocks,
		l.Quotas} {
		f.add(b, troubles[i], uint64(max(0, n))) // a report may be written by hand
	}
	for _, p := range r.Parts() {
		for _, x := range ofParts {
			f.add(whose{Region: p.Name}, x.Name, p.Value(x.Name))
		}
		for _, u := range p.Labels {
			f.usage(whose{p.Name, "label", u.Name}, u.Usage)
		}
		for _, u := range p.Scopes {
			f.usage(whose{p.Name, "scope", u.Name}, u.Usage)
		}
	}
	return f
}

func (f *figures) usage(w whose, u scope.Usage) {
	f.add(w, "used", u.Bytes)
	f.add(w, "arena_peak", u.Peak)
	f.add(w, "objects", u.Objects)
}

func (f *figures) add(w whose, name string, value uint64) {
	key := figure{w, name}
	f.order, f.values[key] = append(f.order, key), value
}

// alone reports whether a part has at most one arena, so that the part's sums equal the arena's own
// metrics.
func (f *figures) alone(region string) bool {
	return f.values[figure{whose{Region: region}, "arenas"}] <= 1
}

// differences returns the differences of two reports: the budget's own, then each region's,
// followed by those of its labels and scopes. The largest change in bytes comes first. A metric
// that one report didn't count is left out. For a region of one arena in both reports, size and use
// are listed once.
func differences(a, b budget.Report) (list []difference) {
	from, to := figuresOf(a), figuresOf(b)
	counted := counts(a) && counts(b)
	for _, key := range to.order {
		if _, both := from.values[key]; !both {
			from.add(key.whose, key.name, 0)
		}
	}
	for _, key := range from.order {
		switch key.name {
		case "objects", "padding":
			if !counted {
				continue
			}
		case "size", "arena_used":
			if key.Region != "" && from.alone(key.Region) && to.alone(key.Region) {
				continue
			}
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
	return !slices.ContainsFunc(r.Arenas, func(a budget.ArenaReport) bool { return !a.Counted })
}

// weight returns the bytes by which a metric changed. It returns 0 for a planned metric, and for
// one that isn't in bytes.
func (d difference) weight() uint64 {
	if f := known[d.Figure]; !f.Bytes || f.Kind == "planned" {
		return 0
	}
	return max(d.A, d.B) - min(d.A, d.B)
}

// before compares the owners of metrics for their order, as cmp.Compare does.
func before(a, b whose, weights map[whose]uint64) int {
	if a == b {
		return 0
	}
	if a.Region != b.Region {
		if a.Region == "" || b.Region == "" {
			return cmp.Compare(a.Region, b.Region)
		}
		return cmp.Or(cmp.Compare(weights[whose{Region: b.Region}], weights[whose{Region: a.Region}]),
			cmp.Compare(a.Region, b.Region))
	}
	if a.Kind == "" || b.Kind == "" {
		return cmp.Compare(a.Kind, b.Kind)
	}
	return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// differ writes the text of report diff.
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

// naming names the owner of each row of a table; adjacent rows of one owner have the name once.
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
