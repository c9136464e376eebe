package budget

import (
	"slices"
	"sync"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/platform"
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

// Report reads the figures as they are now; after Close, as they were then. It reads the arenas
// themselves: it belongs to the goroutine that drives the program, where no worker is at work on a region
// or on scratch arenas that were asked for by number. Any other goroutine, or moment, asks for a Snapshot.
// Scratch arenas on loan are their borrowers': they show what they held when they were given back last.
// Cost: O(arenas).
func (b *Budget) Report() Report {
	defer forgive()()
	return b.report(func(arena int) bool {
		scratch := arena - len(b.regions) - len(b.frame)
		return scratch < 0 || b.leases.isFixed(scratch)
	})
}

// Snapshot are the figures as they were last published; after Close, as they were then. It is for any
// goroutine, at any time: a console, a metrics page, a log. Each arena's figures are those of one moment:
// of Open, of the last Load, Rewind, Release or Reconfigure that touched the region, of the last NextFrame
// for the frame and for scratch arenas that were asked for by number, of the last Release for others. What
// the Go heap has, and what went wrong, is as of now. Cost: O(arenas) and a copy.
func (b *Budget) Snapshot() Report {
	defer forgive()()
	return b.report(func(int) bool { return false })
}

// report has the figures of each arena: as they are now, or as they were published.
func (b *Budget) report(now func(arena int) bool) Report {
	if b.closed.Load() {
		return b.last.clone()
	}
	p := &b.published
	r := p.head.clone()
	for i, st := range b.stacks() {
		var f figures
		if now(i) {
			f.Name = p.name(i)
			f.read(st)
		} else {
			f = p.copyOf(i)
		}
		r.add(i < len(b.regions), f)
	}
	p.regions.Lock()
	r.Plan = p.plan
	p.regions.Unlock()
	r.Plan.Regions = slices.Clone(r.Plan.Regions)
	r.GoHeap = b.goHeap()
	b.addErrors(&r)
	return r
}

// addErrors adds what any goroutine may know.
func (b *Budget) addErrors(r *Report) {
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

// published are the figures that any goroutine may read: copies in memory of their own, made at Open. Publishing a frame or a
// scratch makes no Go allocation; nor does that of a region, once it has been loaded.
type published struct {
	head    Report // what never changes
	plan    Plan   // under the lock of the regions
	regions publishedFigures
	beside  publishedFigures // of frame and scratch arenas: NextFrame doesn't wait until thousands of slots are copied
	cycles  uint64           // collections before Open
}

type publishedFigures struct {
	sync.Mutex
	list []figures // by arena
	seen []uint64  // of frame and scratch arenas, what Stack.Changes said then; 0: to be read again
}

// countNames has the frame count what scopes hold, by name. Regions do from their first load on; scratch arenas don't, so that theirs
// close as fast as can be.
func (b *Budget) countNames() {
	for _, st := range b.frame {
		st.CountNames(true)
	}
	for _, st := range b.scratches {
		st.CountNames(false)
	}
}

// countScratch has scratch arenas count too: for Measure, right after Open.
func (b *Budget) countScratch() {
	for _, st := range b.scratches {
		st.CountNames(true)
	}
}

// begin makes room for all figures and publishes them for the first time.
func (p *published) begin(b *Budget) {
	p.head = Report{Name: b.plan.Name, Size: b.Size(), Prefaulted: b.prefaulted, NotGranted: b.refused}
	p.plan = b.Plan()
	p.head.GoHeap.Limit, p.cycles = b.plan.GoHeap, collections()
	stacks, regions := b.stacks(), len(b.regions)
	p.regions.list, p.beside.list = make([]figures, regions), make([]figures, len(stacks)-regions)
	p.beside.seen = make([]uint64, len(stacks)-regions)
	for i, r := range b.regions {
		p.regions.list[i].Name = r.name
		p.regions.read(i, r.stack)
	}
	for i, st := range stacks[regions:] {
		p.beside.list[i].Name = st.Arena
		p.beside.read(i, st)
	}
}

// name is that of an arena. It never changes.
func (p *published) name(arena int) string {
	if regions := len(p.regions.list); arena >= regions {
		return p.beside.list[arena-regions].Name
	}
	return p.regions.list[arena].Name
}

func (p *published) copyOf(arena int) figures {
	part := &p.regions
	if regions := len(part.list); arena >= regions {
		part, arena = &p.beside, arena-regions
	}
	part.Lock()
	defer part.Unlock()
	f := part.list[arena]
	f.RegionReport = f.clone()
	return f
}

// read publishes the figures of the arena in arena i. pre: the lock is held, or nobody else knows the budget yet.
func (p *publishedFigures) read(i int, st *scope.Stack) {
	f := &p.list[i]
	if scopes, labels := st.UsageLines(); cap(f.Scopes) < scopes || cap(f.Labels) < labels {
		f.Scopes, f.Labels = make([]scope.Usage, 0, scopes), make([]scope.Usage, 0, labels)
	}
	f.read(st)
}

// hold publishes what a buffer holds of which nothing else changed.
func (p *publishedFigures) hold(i int, used uint64) {
	f := &p.list[i]
	f.Used, f.Free = used, f.Size-used
	f.Peak = max(f.Peak, used)
	f.LoadPeak = f.Peak
	own := &f.Scopes[0] // the frame's own scope was opened first
	own.Bytes, own.Peak = used, max(own.Peak, used)
}

// readScratch publishes a scratch arena, unless it was empty then and nothing was opened since.
func (p *publishedFigures) readScratch(i int, st *scope.Stack) {
	if changes := st.Changes(); changes != p.seen[i] {
		if p.seen[i] = changes; st.Depth() != 0 {
			p.seen[i] = 0
		}
		p.read(i, st)
	}
}

// GoHeap is the Go runtime's memory, which lies beside the budget. It is the whole process's. Sizes are bytes.
type GoHeap struct {
	Limit       uint64 `json:"limit"`       // what the plan gives it (go_heap); 0: the budget doesn't govern it
	Used        uint64 `json:"used"`        // what the runtime has from the system, as its memory limit counts
	Collections uint64 `json:"collections"` // since Open
}

// goHeap reads the figures as they are now. Any goroutine may.
func (b *Budget) goHeap() GoHeap {
	s := readMetrics(metricTotal, metricReleased, metricCycles)
	used := s[0].Value.Uint64() - s[1].Value.Uint64()
	if platform.GoBacked && !b.foreign() {
		used -= min(used, b.published.head.Size) // the budget is Go memory, and has figures of its own
	}
	return GoHeap{Limit: b.published.head.GoHeap.Limit, Used: used, Collections: s[2].Value.Uint64() - b.published.cycles}
}
