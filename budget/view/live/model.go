package live

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const (
	holders  = 12 // lines of a table of who holds a region
	fullest  = 8  // slots that have a line
	arenas   = 24 // lines of frame and scratch
	troubles = 8  // lines of what was full
)

// figures is what the page shows of a report: the same numbers, in the order in which people look for them.
type figures struct {
	Moment uint64
	Report budget.Report
	Used   uint64 // of all arenas
	Parts  []part
	Beside list[budget.ArenaReport] // frame and scratch arenas that were ever used
	Leaks  []leak
	Full   list[budget.ArenaReport] // arenas that were full, the one that was it most first
	Fulls  uint64                   // how often all were
	Links  []Link
	Timed  bool // there is a timeline
	Map    []stripe
}

// leak is how many of a kind there are.
type leak struct {
	Name  string
	Count int
}

// Calm says that there is no trouble to tell of.
func (f *figures) Calm() bool {
	return f.Fulls == 0 && len(f.Leaks) == 0 && f.Report.ErrorCount == 0 && len(f.Report.NotGranted) == 0
}

// LeakCount is how many leaks there are in all.
func (f *figures) LeakCount() (all int) {
	for _, l := range f.Leaks {
		all += l.Count
	}
	return all
}

// part is a part of the report, in the order in which people look for what is in it.
type part struct {
	budget.Part
	Labels  list[scope.Usage]
	Rest    uint64 // in use without a label
	Lines   list[line]
	Scopes  list[scope.Usage]
	Fence   []square // of slots
	Fullest []budget.ArenaReport
	Beyond  int // slots of a square, but for the first
}

// isRegion says that it has an article of its own: frame and scratch arenas have a table.
func (p part) isRegion() bool { return p.Kind == "region" || p.Kind == "slot" }

// list is the first of many, and what the others come to.
type list[T any] struct {
	First []T
	More  int
	Bytes uint64 // of those
}

// newFigures sorts a report for people. It takes any report: one that is faulty shows faulty numbers.
func newFigures(r budget.Report) *figures {
	f := &figures{Report: r, Leaks: leaks(r.Leaks), Map: stripes(r)}
	for _, p := range r.Parts() {
		f.Used += p.Value("used")
		f.Fulls += p.Value("fulls")
		f.Parts = append(f.Parts, newPart(p))
	}
	beside := slices.DeleteFunc(slices.Clone(r.Arenas), func(x budget.ArenaReport) bool {
		return x.Peak == 0 || x.Kind == "region" || x.Kind == "slot"
	})
	f.Beside = first(beside, arenas, byPeak, func(x budget.ArenaReport) uint64 { return x.Used })
	full := slices.DeleteFunc(slices.Clone(r.Arenas), func(x budget.ArenaReport) bool { return x.Fulls == 0 })
	f.Full = first(full, troubles, byFulls, nil)
	return f
}

// leaks are those that there are.
func leaks(l budget.Leaks) []leak {
	all := []leak{
		{"scopes left open", l.Scopes},
		{"owned values that outlived their scope", l.Owned},
		{"finalizers that failed", l.Finalizers},
		{"slots not released", l.Slots},
		{"scratch arenas not given back", l.Scratch},
		{"blocks that lived when their arena ended", l.Blocks},
	}
	return slices.DeleteFunc(all, func(l leak) bool { return l.Count == 0 })
}

func newPart(from budget.Part) part {
	p := part{Part: from, Labels: largest(from.Labels), Scopes: largest(from.Scopes), Lines: linesOf(from.Arenas)}
	p.Rest = p.Value("used")
	for _, u := range from.Labels {
		p.Rest = rest(u.Bytes, p.Rest)
	}
	if p.Kind == "slot" {
		p.Fence, p.Beyond = fence(p.Arenas)
		p.Fullest = first(p.Arenas, fullest, byUse, nil).First
	}
	return p
}

// largest are the names that hold most, or held most.
func largest(names []scope.Usage) list[scope.Usage] {
	names = slices.DeleteFunc(slices.Clone(names), func(u scope.Usage) bool { return u.Bytes|u.Peak == 0 })
	return first(names, holders, func(a, b scope.Usage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Peak, a.Peak), strings.Compare(a.Name, b.Name))
	}, func(u scope.Usage) uint64 { return u.Bytes })
}

// first are the first of all in an order, or as they are.
func first[T any](all []T, most int, order func(a, b T) int, size func(T) uint64) (l list[T]) {
	if order != nil {
		all = slices.SortedStableFunc(slices.Values(all), order)
	}
	l.First = all[:min(most, len(all))]
	for _, x := range all[len(l.First):] {
		l.More++
		if size != nil {
			l.Bytes += size(x)
		}
	}
	return l
}

func byUse(a, b budget.ArenaReport) int {
	return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Peak, a.Peak))
}

// byPeak doesn't change its mind at each tick.
func byPeak(a, b budget.ArenaReport) int { return cmp.Compare(b.Peak, a.Peak) }

func byFulls(a, b budget.ArenaReport) int { return cmp.Compare(b.Fulls, a.Fulls) }

// share is a part of a whole in per cent: what is there at all can be seen, and nothing is beyond the whole.
func share(part, whole uint64) markup {
	const hundredth, least = 10_000, 20
	if part == 0 || whole == 0 {
		return "0"
	}
	high, low := bits.Mul64(min(part, whole), hundredth)
	count, _ := bits.Div64(high, low, whole)
	count = max(count, least)
	return markup(fmt.Sprintf("%d.%02d", count/100, count%100))
}

// rest is what is beside a part.
func rest(part, whole uint64) uint64 { return whole - min(part, whole) }
