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
	Moment  uint64
	Report  budget.Report
	Used    uint64 // of all arenas
	Regions []part
	Beside  list[budget.RegionReport] // frame and scratch arenas that were ever used
	Pools   []pools
	Leaks   []leak
	Full    list[budget.RegionReport] // arenas that were full, the one that was it most first
	Fulls   int                       // how often all were
	Links   []Link
	Timed   bool // there is a timeline
	Map     []stripe
	Parts   []stripe // of the map, by name
}

// pools are those that are open in a region, or in all its slots together.
type pools struct {
	Name      string
	Cap, Peak uint64 // chunks, and the sum of the most that each pool gave at once
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

// part is a region, or all its slots.
type part struct {
	Name    string
	Slots   []budget.RegionReport // two or more lines; none of a region without slots
	Size    uint64                // of the region, or of each slot
	Used    uint64                // now; of slots their sum
	Peak    uint64                // most at once; of slots the most in one
	Free    uint64
	Labels  list[holder]
	Rest    uint64 // in use without a label
	Lines   list[line]
	Scopes  list[holder]
	Fence   []square // of slots
	Fullest []budget.RegionReport
	Loaded  int // slots that hold something
	Beyond  int // slots of a square, but for the first
}

// Whole is what the part has in all.
func (p part) Whole() uint64 { return p.Size * uint64(max(1, len(p.Slots))) }

// holder is a label or a kind of scope; of slots it is the sum over those that have it.
type holder struct {
	scope.Usage
	Slots int // that hold some now
}

// list is the first of many, and what the others come to.
type list[T any] struct {
	First []T
	More  int
	Bytes uint64 // of those
}

// newFigures sorts a report for people. It takes any report: one that is faulty shows faulty numbers.
func newFigures(r budget.Report) *figures {
	f := &figures{Report: r}
	for _, x := range arenasOf(r) {
		f.Used += x.Used
		f.Fulls += x.Fulls
		f.Pools = addPools(f.Pools, x)
	}
	for from := 0; from < len(r.Regions); {
		to := from + 1
		for to < len(r.Regions) && siblings(r.Regions[from].Name, r.Regions[to].Name) {
			to++
		}
		f.Regions = append(f.Regions, newPart(r.Regions[from:to]))
		from = to
	}
	f.Beside = first(used(r.Beside), arenas, byPeak, func(x budget.RegionReport) uint64 { return x.Used })
	f.Full = first(full(r), troubles, byFulls, nil)
	f.Leaks = leaks(r.Leaks)
	f.Map, f.Parts = stripes(arenasOf(r)), stripes(folded(arenasOf(r)))
	return f
}

func arenasOf(r budget.Report) []budget.RegionReport { return slices.Concat(r.Regions, r.Beside) }

// addPools adds those of an arena.
func addPools(all []pools, x budget.RegionReport) []pools {
	if x.PoolCap|x.PoolPeak == 0 {
		return all
	}
	name := budget.RegionOf(x.Name)
	i := slices.IndexFunc(all, func(p pools) bool { return p.Name == name })
	if i < 0 {
		i, all = len(all), append(all, pools{Name: name})
	}
	all[i].Cap += x.PoolCap
	all[i].Peak += x.PoolPeak
	return all
}

func used(list []budget.RegionReport) []budget.RegionReport {
	return slices.DeleteFunc(slices.Clone(list), func(x budget.RegionReport) bool { return x.Peak == 0 })
}

// full are the arenas that were.
func full(r budget.Report) []budget.RegionReport {
	return slices.DeleteFunc(arenasOf(r), func(x budget.RegionReport) bool { return x.Fulls == 0 })
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

// siblings are slots of one region: "level 0", "level 1".
func siblings(a, b string) bool {
	return a != budget.RegionOf(a) && b != budget.RegionOf(b) && budget.RegionOf(a) == budget.RegionOf(b)
}

func newPart(slots []budget.RegionReport) part {
	p := part{Name: budget.RegionOf(slots[0].Name), Size: slots[0].Size}
	if strings.Contains(slots[0].Name, " ") {
		p.Slots = slots
		p.Fence, p.Beyond = fence(slots)
		p.Fullest = first(slots, fullest, byUse, nil).First
	}
	labels, scopes := sums{}, sums{}
	for _, x := range slots {
		p.Used += x.Used
		p.Free += x.Free
		p.Peak = max(p.Peak, x.Peak)
		if x.Used != 0 {
			p.Loaded++
		}
		labels.add(x, x.Labels)
		scopes.add(x, x.Scopes)
	}
	p.Labels, p.Scopes = labels.largest(), scopes.largest()
	p.Rest = rest(labels.bytes(), p.Used)
	p.Lines = linesOf(slots)
	return p
}

// sums are what a name has in all slots, and the most that it had in one. The scope of a load has the slot's name, and is
// counted under the region's.
type sums map[string]*holder

func (s sums) add(slot budget.RegionReport, lines []scope.Usage) {
	for _, u := range lines {
		u.Name = slot.ScopeName(u.Name)
		h := s[u.Name]
		if h == nil {
			h = &holder{Usage: scope.Usage{Name: u.Name}}
			s[u.Name] = h
		}
		h.Bytes += u.Bytes
		h.Objects += u.Objects
		h.Peak = max(h.Peak, u.Peak)
		if u.Bytes != 0 {
			h.Slots++
		}
	}
}

func (s sums) bytes() (all uint64) {
	for _, h := range s {
		all += h.Bytes
	}
	return all
}

func (s sums) largest() list[holder] {
	var all []holder
	for _, h := range s {
		if h.Bytes|h.Peak != 0 {
			all = append(all, *h)
		}
	}
	return first(all, holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Peak, a.Peak), strings.Compare(a.Name, b.Name))
	}, func(h holder) uint64 { return h.Bytes })
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

func byUse(a, b budget.RegionReport) int {
	return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Peak, a.Peak))
}

// byPeak doesn't change its mind at each tick.
func byPeak(a, b budget.RegionReport) int { return cmp.Compare(b.Peak, a.Peak) }

func byFulls(a, b budget.RegionReport) int { return cmp.Compare(b.Fulls, a.Fulls) }

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
