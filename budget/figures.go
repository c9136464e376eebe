package budget

import (
	"math"
	"slices"

	"github.com/upfront-mem/upfront/scope"
)

// A Figure is a metric of a part of a budget, computed from the reports of the part's arenas. A
// part is a region, all slots of a region, the buffers of the frame, the scratch arenas, C's heap,
// or a quota. [Figures] lists all figures. Pages, pictures, metrics, profiles, `report diff` and
// `check` use this list, so a figure means the same everywhere; metrics and profiles give it a
// longer or another name.
type Figure struct {
	Name  string // "arena_peak"
	Bytes bool   // in bytes; else a count
	// Kind is one of:
	//
	//   - "planned": set by the plan
	//   - "now": rises and falls
	//   - "peak": the highest since Open; of bytes, since Open or Reconfigure
	//   - "total": only grows
	//   - "fault": only grows, and may be a problem
	Kind string
	Most bool // a part's value is the largest of its arenas; else their sum
	// Shown reports whether pages and pictures show the figure. The other figures are only for
	// programs: JSON, metrics, profiles, diff and check.
	Shown bool
	Help  string // one sentence

	of func(*ArenaReport) uint64
}

const inBytes, inUnits = true, false

// Figures returns all figures of a part, the most useful first.
//
// The peak of a part is the highest peak of its arenas; compare this peak with arena_size. Peaks in
// bytes of several arenas are never added up, because they may be of different moments.
func Figures() []Figure { return slices.Clone(figureTable) }

var figureTable = []Figure{
	{"arenas", inUnits, "planned", false, true, "Number of arenas in the part: slots, buffers or scratch arenas, or 1.",
		func(*ArenaReport) uint64 { return 1 }},
	{"arenas_in_use", inUnits, "now", false, true, "Number of arenas in the part that hold any bytes.",
		func(a *ArenaReport) uint64 { return min(1, a.Used) }},
	{"size", inBytes, "planned", false, true, "Size of all arenas of the part together.",
		func(a *ArenaReport) uint64 { return a.Size }},
	{"used", inBytes, "now", false, true, "Bytes in use in all arenas of the part together.",
		func(a *ArenaReport) uint64 { return a.Used }},
	{"arena_size", inBytes, "planned", true, true, "Size of one arena of the part.",
		func(a *ArenaReport) uint64 { return a.Size }},
	{"arena_used", inBytes, "now", true, true, "Bytes in use in the fullest arena of the part.",
		func(a *ArenaReport) uint64 { return a.Used }},
	{"arena_peak", inBytes, "peak", true, true,
		"Most bytes that one arena of the part has used since Open, or since Reconfigure moved it.",
		func(a *ArenaReport) uint64 { return max(a.Used, a.Peak) }},
	{"arena_load_peak", inBytes, "now", true, false,
		"Most bytes that one arena of a region has used since it was last emptied; elsewhere as arena_peak.",
		func(a *ArenaReport) uint64 { return a.LoadPeak }},
	{"objects", inUnits, "now", false, false, "Live allocations in the part, counted in checked builds.",
		func(a *ArenaReport) uint64 { return a.Objects }},
	{"padding", inBytes, "now", false, false, "Bytes in use that are padding for alignment, counted in checked builds.",
		func(a *ArenaReport) uint64 { return a.Padding }},
	{"pool_chunks", inUnits, "now", false, true, "Chunks of the open pools in the part.",
		func(a *ArenaReport) uint64 { return a.PoolCap }},
	{"pool_chunks_peak", inUnits, "now", false, true, "Sum of the peaks of the part's open pools, in chunks.",
		func(a *ArenaReport) uint64 { return a.PoolPeak }},
	{"finalizers", inUnits, "total", false, false, "Finalizers that have run in the part since Open.",
		func(a *ArenaReport) uint64 { return a.Finalizers }},
	{"cache_hits", inUnits, "total", false, true, "Number of times that a cache in the part had the key since Open.",
		func(a *ArenaReport) uint64 { return a.Caches.Hits }},
	{"cache_misses", inUnits, "total", false, true,
		"Number of times that a cache in the part didn't have the key since Open.",
		func(a *ArenaReport) uint64 { return a.Caches.Misses }},
	{"cache_evictions", inUnits, "total", false, true, "Values that the part's caches have evicted since Open.",
		func(a *ArenaReport) uint64 { return a.Caches.Evictions }},
	{"fulls", inUnits, "fault", false, true, "Number of times that an arena of the part was full since Open.",
		func(a *ArenaReport) uint64 { return natural(a.Fulls) }},
	{"warnings", inUnits, "total", false, true,
		"Number of times that an arena of the part reached its warn share since Open.",
		func(a *ArenaReport) uint64 { return natural(a.Warnings) }},
	{"waiting", inUnits, "now", false, true,
		"Reservations of a quota, or acquisitions of a slot, that wait now.",
		func(a *ArenaReport) uint64 { return natural(a.waits().Waiting) }},
	{"waited", inUnits, "total", false, true,
		"Reservations of a quota, or acquisitions of a slot, that have waited since Open.",
		func(a *ArenaReport) uint64 { return a.waits().Waited }},
	{"longest_wait", inUnits, "peak", true, true, "Longest of these waits since Open, in microseconds.",
		func(a *ArenaReport) uint64 { return uint64(max(0, a.waits().Longest.Microseconds())) }},
	{"open_scopes", inUnits, "peak", true, false, "Most scopes open at once in one arena of the part since Open.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Scopes) }},
	{"open_pools", inUnits, "peak", true, false, "Most pools open at once in one arena of the part since Open.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Pools) }},
	{"open_owned", inUnits, "peak", true, false, "Most owned values held at once by one arena of the part since Open.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Owned) }},
	{"open_labels", inUnits, "peak", true, false, "Most labels in use at once in one arena of the part since Open.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Labels) }},
}

// Of returns the figure of one arena.
func (f Figure) Of(a *ArenaReport) uint64 { return f.of(a) }

// natural returns n, or 0 for a negative n, which a forged report may have.
func natural(n int) uint64 { return uint64(max(0, n)) }

// Part has the figures of arenas that share one size in the plan: a region, all slots of one, the
// buffers of the frame, the scratch arenas, C's heap, or a quota.
type Part struct {
	Name   string // "room", "frame", "scratch"
	Kind   string // as in ArenaReport
	Arenas []ArenaReport

	// Labels and Scopes have an entry for each name. The scopes of slots' loads, which have the
	// slots' names, are one entry with the part's name here.
	Labels, Scopes []PartUsage

	values []uint64 // in the order of figureTable
}

// PartUsage is the use of a label or scope in all arenas of a part. Bytes and Objects are sums over
// the arenas. Peak is the highest of one arena; compare it with ArenaBytes.
type PartUsage struct {
	scope.Usage
	ArenaBytes uint64 // the Bytes of the arena that has the most
}

// Parts returns the parts of the report, in the order of its arenas. The heap of C's malloc, if the
// report has it, and the quotas come last.
func (r Report) Parts() []Part {
	var parts []Part
	at := map[string]int{}
	for _, a := range r.rows() {
		k, known := at[a.Part]
		if !known {
			k = len(parts)
			at[a.Part] = k
			parts = append(parts, Part{Name: a.Part, Kind: a.Kind, values: make([]uint64, len(figureTable))})
		}
		parts[k].Arenas = append(parts[k].Arenas, a)
	}
	for i := range parts {
		parts[i].fold()
	}
	return parts
}

// rows returns the arenas, the heap of C's malloc if the report has it, and the quotas.
func (r Report) rows() []ArenaReport {
	list := slices.Clip(r.Arenas)
	if r.CHeap.Name != "" {
		list = append(list, r.CHeap.ArenaReport)
	}
	return append(list, r.Quotas...)
}

// Value returns the value of the figure of that name. A name that [Figures] doesn't have is a
// caller's bug and panics.
func (p *Part) Value(name string) uint64 {
	for i := range figureTable {
		if figureTable[i].Name == name {
			return p.values[i]
		}
	}
	panic("budget: BUG: no figure is called " + name)
}

func (p *Part) fold() {
	labels, scopes := map[string]int{}, map[string]int{}
	for i := range p.Arenas {
		a := &p.Arenas[i]
		for k, f := range figureTable {
			if v := f.of(a); f.Most {
				p.values[k] = max(p.values[k], v)
			} else {
				p.values[k] = plus(p.values[k], v)
			}
		}
		for _, u := range a.Labels {
			p.Labels = foldUsage(p.Labels, labels, u)
		}
		for _, u := range a.Scopes {
			if u.Name == a.Name {
				u.Name = a.Part
			}
			p.Scopes = foldUsage(p.Scopes, scopes, u)
		}
	}
}

func foldUsage(list []PartUsage, at map[string]int, u scope.Usage) []PartUsage {
	i, known := at[u.Name]
	if !known {
		at[u.Name] = len(list)
		return append(list, PartUsage{u, u.Bytes})
	}
	v := &list[i]
	v.ArenaBytes = max(v.ArenaBytes, u.Bytes)
	v.Bytes, v.Objects = plus(v.Bytes, u.Bytes), plus(v.Objects, u.Objects)
	v.Allocated, v.AllocatedObjects = plus(v.Allocated, u.Allocated), plus(v.AllocatedObjects, u.AllocatedObjects)
	v.Peak, v.PeakObjects = max(v.Peak, u.Peak), max(v.PeakObjects, u.PeakObjects)
	return list
}

// plus returns a + b, or the largest number if that overflows, as it may in a forged report.
func plus(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}
