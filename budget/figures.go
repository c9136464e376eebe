package budget

import (
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/scope"
)

// A Figure is a number of the arenas of a part: a region, all slots of one, the buffers of the frame, or
// the scratch arenas. Figures lists them. Pages, pictures, metrics, profiles, `report diff` and `check`
// take figures from that list, so a figure has the same meaning and the same name in all of them.
type Figure struct {
	Name  string // "arena_peak"
	Unit  Unit
	Kind  FigureKind
	Most  bool   // over the arenas of a part, the most of one; else the sum
	Shown bool   // on pages and pictures too; the others are for programs: JSON, metrics, diff and check
	Help  string // one sentence

	of func(*ArenaReport) uint64
}

// Unit is what a Figure counts.
type Unit string

// The units.
const (
	Bytes Unit = "bytes"
	Count Unit = "count"
)

// FigureKind is how a Figure changes.
type FigureKind int

// The kinds of figures.
const (
	Planned FigureKind = iota // as the plan says
	Now                       // rises and falls
	Peak                      // the highest since Open
	Total                     // only grows
	Fault                     // only grows, and each one is trouble
)

// Figures returns all figures of a part, in the order in which people look for them.
//
// A peak over several arenas is that of the arena with the highest: arenas needn't have had theirs at one time, so no sum
// of peaks is a figure. The size to compare it with is arena_size.
func Figures() []Figure { return slices.Clone(figureTable) }

var figureTable = []Figure{
	{"arenas", Count, Planned, false, true, "Arenas of the part: slots, buffers or scratch arenas, or 1.",
		func(*ArenaReport) uint64 { return 1 }},
	{"arenas_in_use", Count, Now, false, true, "Arenas of the part that hold something.",
		func(a *ArenaReport) uint64 { return min(1, a.Used) }},
	{"size", Bytes, Planned, false, true, "The sizes of all arenas of the part.",
		func(a *ArenaReport) uint64 { return a.Size }},
	{"used", Bytes, Now, false, true, "What all arenas of the part hold.",
		func(a *ArenaReport) uint64 { return a.Used }},
	{"arena_size", Bytes, Planned, true, true, "The size of one arena of the part.",
		func(a *ArenaReport) uint64 { return a.Size }},
	{"arena_used", Bytes, Now, true, true, "What the fullest arena of the part holds.",
		func(a *ArenaReport) uint64 { return a.Used }},
	{"arena_peak", Bytes, Peak, true, true, "The most that one arena of the part held since Open.",
		func(a *ArenaReport) uint64 { return max(a.Used, a.Peak) }},
	{"arena_load_peak", Bytes, Now, true, false, "The most that one arena of the part held since it was last emptied.",
		func(a *ArenaReport) uint64 { return a.LoadPeak }},
	{"objects", Count, Now, false, false, "Allocations that live in the part; checked builds count them.",
		func(a *ArenaReport) uint64 { return a.Objects }},
	{"padding", Bytes, Now, false, false, "Bytes of used that alignment costs; checked builds count them.",
		func(a *ArenaReport) uint64 { return a.Padding }},
	{"pool_chunks", Count, Now, false, true, "Chunks of the pools that are open in the part.",
		func(a *ArenaReport) uint64 { return a.PoolCap }},
	{"pool_chunks_peak", Count, Now, false, true, "The sum of the most chunks that each of these pools gave at once.",
		func(a *ArenaReport) uint64 { return a.PoolPeak }},
	{"finalizers", Count, Total, false, false, "Finalizers that ran in the part since Open.",
		func(a *ArenaReport) uint64 { return a.Finalizers }},
	{"fulls", Count, Fault, false, true, "How often an arena of the part was full since Open.",
		func(a *ArenaReport) uint64 { return natural(a.Fulls) }},
	{"open_scopes", Count, Peak, true, false, "The most scopes that one arena of the part had open at once.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Scopes) }},
	{"open_pools", Count, Peak, true, false, "The most pools that one arena of the part had open at once.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Pools) }},
	{"open_owned", Count, Peak, true, false, "The most owned values that one arena of the part held at once.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Owned) }},
	{"open_labels", Count, Peak, true, false, "The most labels that one arena of the part had at once.",
		func(a *ArenaReport) uint64 { return natural(a.MostOpen.Labels) }},
}

// Of returns the figure of one arena.
func (f Figure) Of(a *ArenaReport) uint64 { return f.of(a) }

// natural is a count; a report that a stranger wrote may have a negative one.
func natural(n int) uint64 { return uint64(max(0, n)) }

// Part has the figures of arenas that have one size in the plan: a region, all slots of one, the buffers of the frame, or
// the scratch arenas.
type Part struct {
	Name   string // "room", "frame", "scratch"
	Kind   string // as of an ArenaReport
	Arenas []ArenaReport

	// Labels and Scopes have a line for each name. Bytes and Objects are the sums over the arenas; Peak is the most that
	// one arena held. The scope of a load, which has the name of its slot, has that of the part here.
	Labels, Scopes []scope.Usage

	values []uint64 // by figureTable
}

// Parts returns the parts of the report, in the order of its arenas.
func (r Report) Parts() []Part {
	var parts []Part
	at := map[string]int{}
	for i := range r.Arenas {
		a := &r.Arenas[i]
		k, known := at[a.Part]
		if !known {
			k = len(parts)
			at[a.Part] = k
			parts = append(parts, Part{Name: a.Part, Kind: a.Kind, values: make([]uint64, len(figureTable))})
		}
		parts[k].Arenas = append(parts[k].Arenas, *a)
	}
	for i := range parts {
		parts[i].fold()
	}
	return parts
}

// Value returns the value of a figure by its name. A name that Figures doesn't have is a caller's bug and panics.
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

func foldUsage(list []scope.Usage, at map[string]int, u scope.Usage) []scope.Usage {
	i, known := at[u.Name]
	if !known {
		at[u.Name] = len(list)
		return append(list, u)
	}
	v := &list[i]
	v.Bytes, v.Objects = plus(v.Bytes, u.Bytes), plus(v.Objects, u.Objects)
	v.Allocated, v.AllocatedObjects = plus(v.Allocated, u.Allocated), plus(v.AllocatedObjects, u.AllocatedObjects)
	v.Peak, v.PeakObjects = max(v.Peak, u.Peak), max(v.PeakObjects, u.PeakObjects)
	return list
}

// plus is a sum that stays at the largest number: a report may be a stranger's.
func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}
