package budget

import (
	"errors"
	"slices"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// RegionReport are the figures of a region or slot, a buffer of the frame, or a scratch arena. Sizes are bytes.
type RegionReport struct {
	Name       string        `json:"name"`
	Size       uint64        `json:"size"`
	Used       uint64        `json:"used"`
	Peak       uint64        `json:"peak"`      // highest use since Open, temporaries included
	LoadPeak   uint64        `json:"load_peak"` // of a region, highest use since it was last emptied; of frame and scratch arenas the Peak
	Free       uint64        `json:"free"`
	Objects    uint64        `json:"objects,omitempty"` // allocations that are live; in checked builds
	Finalizers uint64        `json:"finalizers"`        // that ran since Open
	PoolCap    uint64        `json:"pool_cap"`          // chunks of the pools that are open
	PoolPeak   uint64        `json:"pool_peak"`         // sum of their peaks
	Padding    uint64        `json:"padding,omitempty"` // of Used, what alignment costs; in checked builds
	MostOpen   Limits        `json:"most_open"`         // the most that were open at once since Open
	Labels     []scope.Usage `json:"labels,omitempty"`  // what subsystems hold and held (scope.Label), by name
	Scopes     []scope.Usage `json:"scopes,omitempty"`  // what scopes hold and held, by name; of regions and frame, not scratch arenas
}

// Report are the figures of a budget.
type Report struct {
	Name       string         `json:"name"`
	Size       uint64         `json:"size"`                  // bytes reserved, tables included
	Prefaulted bool           `json:"prefaulted"`            // every page was present at Open
	NotGranted []string       `json:"not_granted,omitempty"` // what the plan wished and the system refused: key and reason
	Regions    []RegionReport `json:"regions"`
	Beside     []RegionReport `json:"beside,omitempty"` // frame and scratch arenas
	Leaks      Leaks          `json:"leaks"`
	Errors     []string       `json:"errors,omitempty"` // of finalizers whose contents a load replaced: the last 16
	ErrorCount int            `json:"error_count"`      // of them in all
	GoHeap     GoHeap         `json:"go_heap"`
	Plan       Plan           `json:"plan"` // as opened, with its defaults filled in

	// Proxies are what clients have of allocators. The program adds those that it has: append(r.Proxies, sound.Stats()).
	Proxies []arena.ProxyStats `json:"proxies,omitempty"`
}

const reportErrors = 16

// Report reads the figures as they are now; after Close, as they were then. It reads the arenas themselves: it belongs to
// the goroutine that drives the program, where no worker is at work on a region or on scratch arenas that were asked for by number.
// Any other goroutine, or moment, asks for a Snapshot. Scratch that are lent out are their borrowers': they show what they
// held when they were given back last. Cost: O(arenas).
func (b *Budget) Report() Report {
	defer forgive()()
	if b.closed.Load() {
		return b.last.clone()
	}
	return b.report(false)
}

// report reads the arenas, those that are lent out too if lent.
func (b *Budget) report(lent bool) Report {
	r := b.published.head.clone()
	r.Plan = b.Plan()
	for i, st := range b.stacks() {
		var f figures
		if scratch := i - len(b.regions) - len(b.frame); scratch < 0 || lent || b.leases.isFixed(scratch) {
			f.Name = b.published.name(i)
			f.read(st)
		} else {
			f = b.published.copyOf(i)
		}
		r.add(i < len(b.regions), f)
	}
	r.GoHeap = b.goHeap()
	b.told(&r)
	b.countKept(&r.Leaks)
	return r
}

// told adds what any goroutine may know.
func (b *Budget) told(r *Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, open := range b.leaks {
		r.Leaks.Scopes += open.count
	}
	r.Errors, r.ErrorCount = append(r.Errors, b.errors...), b.errorsN
}

// add adds an arena, a region or one beside them.
func (r *Report) add(region bool, f figures) {
	if region {
		r.Regions = append(r.Regions, f.RegionReport)
	} else {
		r.Beside = append(r.Beside, f.RegionReport)
	}
	r.Leaks.Finalizers += f.failed
	r.Leaks.Owned += f.lost
}

// clone is a copy that shares nothing: callers may keep it and write to it.
func (r Report) clone() Report {
	r.NotGranted, r.Errors = slices.Clone(r.NotGranted), slices.Clone(r.Errors)
	r.Regions, r.Beside = cloneAll(r.Regions), cloneAll(r.Beside)
	r.Plan.Regions = slices.Clone(r.Plan.Regions)
	return r
}

func cloneAll(list []RegionReport) []RegionReport {
	list = slices.Clone(list)
	for i := range list {
		list[i] = list[i].clone()
	}
	return list
}

// clone makes lists without lines nil, as they are when they are read from JSON.
func (r RegionReport) clone() RegionReport {
	r.Labels, r.Scopes = append([]scope.Usage(nil), r.Labels...), append([]scope.Usage(nil), r.Scopes...)
	return r
}

// Report are the figures of this region now; after Close, as they were then. See [Budget.Report].
func (r *OpenRegion) Report() RegionReport {
	defer forgive()()
	if r.released() {
		return RegionReport{Name: r.name} // the figures are another owner's
	}
	if r.b.closed.Load() {
		return r.b.last.Regions[r.row].clone()
	}
	f := figures{RegionReport: RegionReport{Name: r.name}}
	f.read(r.stack)
	return f.RegionReport
}

// figures are those of one arena.
type figures struct {
	RegionReport
	failed int // finalizers
	lost   int // owned values, while nothing is open that could hold them
}

// read reads the figures of the arena as they are now. It takes the room of the lists that are there.
func (f *figures) read(st *scope.Stack) {
	s := st.Stats()
	f.RegionReport = RegionReport{Name: f.Name, Size: s.Size, Used: s.Used, Peak: s.Peak, LoadPeak: s.PeakSince, Free: s.Free,
		Objects: s.Objects, Finalizers: s.Finalizers, PoolCap: s.PoolCap, PoolPeak: s.PoolPeak, Padding: s.Padding,
		MostOpen: Limits(s.MostOpen), Labels: f.Labels[:0], Scopes: f.Scopes[:0]}
	f.Scopes, f.Labels = st.AppendUsage(f.Scopes, f.Labels)
	f.failed, f.lost = s.Failed, 0
	if st.Depth() == 0 {
		f.lost = s.Owned
	}
}

// note keeps what nobody is returned for the report and gives it to the plan's hook, as one error.
func (b *Budget) note(errs ...error) {
	err := errors.Join(errs...)
	if err == nil {
		return
	}
	text := err.Error() // here: others may ask for it at any time
	b.mu.Lock()
	b.errorsN++
	if b.errors = append(b.errors, text); len(b.errors) > reportErrors {
		b.errors = b.errors[1:]
	}
	b.mu.Unlock()
	if b.plan.OnError != nil {
		b.plan.OnError(err)
	}
}
