package budget

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// ArenaReport describes an arena: a region, a slot, a buffer of the frame, or a scratch arena.
// Sizes are in bytes.
type ArenaReport struct {
	Name string `json:"name"` // as in errors: "level", "room 3", "frame 0", "scratch 1.0"
	// Part is the plan's name for the arena and its siblings: "level", "room", "frame", "scratch".
	Part  string `json:"part"`
	Index int    `json:"index"` // among its siblings, from 0
	Kind  string `json:"kind"`  // "region", "slot", "frame", "scratch", "c_heap" or "quota"
	Size  uint64 `json:"size"`
	Used  uint64 `json:"used"`
	Peak  uint64 `json:"peak"` // highest since Open or Reconfigure, temporaries included
	// LoadPeak is the highest use of a region since it was last emptied, or in its last load if
	// that failed. For frame and scratch LoadPeak is the same as Peak.
	LoadPeak uint64 `json:"load_peak"`
	Free     uint64 `json:"free"`
	// Counted reports whether Objects, Padding, and the objects in Labels and Scopes are known.
	// They are known in checked builds.
	Counted    bool          `json:"counted,omitempty"`
	Objects    uint64        `json:"objects,omitempty"` // live allocations
	Finalizers uint64        `json:"finalizers"`        // run since Open
	PoolCap    uint64        `json:"pool_cap"`          // chunks of the open pools
	PoolPeak   uint64        `json:"pool_peak"`         // sum of their peaks
	Padding    uint64        `json:"padding,omitempty"` // bytes of Used that alignment takes
	MostOpen   Limits        `json:"most_open"`         // of each kind, since Open
	Labels     []scope.Usage `json:"labels,omitempty"`  // use of each scope.Label, by name
	// Scopes has the use of each scope's name, but not on scratch arenas.
	Scopes []scope.Usage `json:"scopes,omitempty"`
	// Sites has the calls that allocated the bytes of Used. Only regions in checked builds have
	// Sites.
	Sites []stack.Site `json:"sites,omitempty"`
	// Caches has the counts of all caches of package cache in the arena since Open.
	Caches stack.CacheCounts `json:"caches,omitzero"`
	// Inner has the heaps, buddies, rings and pools of package arena, and the caches, in the
	// arena's open scopes.
	Inner []stack.Inner `json:"inner,omitempty"`

	Fulls    int    `json:"fulls,omitempty"`     // full errors since Open, without those of Acquire
	LastFull string `json:"last_full,omitempty"` // the text of the last one

	Warnings    int    `json:"warnings,omitempty"`     // since Open ([Plan.OnWarn])
	LastWarning uint64 `json:"last_warning,omitempty"` // bytes that were in use at the last one

	// Waits counts the reservations of a quota that waited, or the acquisitions of a region's
	// slots, which the first slot has. It is nil where nothing can wait.
	Waits *Waits `json:"waits,omitempty"`
}

// Report describes a budget.
type Report struct {
	Name string `json:"name"`
	Size uint64 `json:"size"` // bytes, tables and guards included
	// Reserved is the budget's address space: Size, mostly rounded up to a power of two. Addresses
	// cost nothing.
	Reserved uint64 `json:"reserved"`
	// Committed is the part of Size that may be read and written: all except the guards in force.
	Committed uint64 `json:"committed"`
	// Resident is the part of Size that was present when last measured: by Open, [Budget.Report] or
	// [Budget.Trim]; 0 where it can't be measured. Pages that are used later add to Resident, up to
	// the resident bytes in Cost.
	Resident uint64 `json:"resident"`
	// Cost is the maximum that the plan takes ([Plan.Cost]).
	Cost Cost `json:"cost"`
	// Prefaulted reports whether Open made every page of arenas and tables present.
	Prefaulted bool `json:"prefaulted"`
	// NotGranted lists demands of the plan that aren't in force, such as refused wished ones: key
	// and reason. An allocator that c_heap doesn't bound has a line as well.
	NotGranted []string `json:"not_granted,omitempty"`
	// Arenas are in map order: regions and slots, frame buffers, scratch arenas.
	Arenas []ArenaReport `json:"arenas"`
	Leaks  Leaks         `json:"leaks"`
	// Errors has the last 16 errors that no call returned (see Plan.OnError).
	Errors     []string `json:"errors,omitempty"`
	ErrorCount int      `json:"error_count"` // how many there were
	GoHeap     GoHeap   `json:"go_heap"`
	// CHeap describes C's malloc if the program imports package arena/with/malloc; otherwise it is
	// zero. Arenas doesn't include C's malloc, which is outside the budget's Size.
	CHeap CHeapReport `json:"c_heap,omitzero"`
	// Quotas describe the quotas of the plan, as of now. Used is the reserved bytes, Labels are the
	// tenants, and Fulls counts the refusals.
	Quotas []ArenaReport `json:"quotas,omitempty"`
	// Outside is the resident memory of the process that no other part of the report has, including
	// memory that a quota counts.
	Outside Outside `json:"outside,omitzero"`
	Plan    Plan    `json:"plan"` // as of Budget.Plan

	// Proxies are the statistics of allocator proxies. The program adds its own: append(r.Proxies,
	// sound.Stats()).
	Proxies []arena.ProxyStats `json:"proxies,omitempty"`
}

// Arena returns the report of the arena or quota of that name, or the zero ArenaReport if there is
// none.
func (r Report) Arena(name string) ArenaReport {
	for _, list := range [][]ArenaReport{r.Arenas, r.Quotas} {
		for i := range list {
			if list[i].Name == name {
				return list[i]
			}
		}
	}
	return ArenaReport{}
}

// clone returns a copy that shares no memory: callers may keep it and write to it.
func (r Report) clone() Report {
	r.NotGranted, r.Errors = slices.Clone(r.NotGranted), slices.Clone(r.Errors)
	r.Arenas = slices.Clone(r.Arenas)
	for i := range r.Arenas {
		r.Arenas[i] = r.Arenas[i].clone()
	}
	r.CHeap.ArenaReport = r.CHeap.clone()
	r.Outside.Largest = slices.Clone(r.Outside.Largest)
	r.GoHeap.Moves = slices.Clone(r.GoHeap.Moves)
	r.Quotas = slices.Clone(r.Quotas)
	for i := range r.Quotas {
		r.Quotas[i] = r.Quotas[i].clone()
	}
	r.Plan.Regions, r.Plan.Expected = slices.Clone(r.Plan.Regions), slices.Clone(r.Plan.Expected)
	r.Plan.Quotas = slices.Clone(r.Plan.Quotas)
	return r
}

// clone turns empty lists into nil, as decoding from JSON does.
func (r ArenaReport) clone() ArenaReport {
	r.Labels, r.Scopes = append([]scope.Usage(nil), r.Labels...), append([]scope.Usage(nil), r.Scopes...)
	r.Sites, r.Inner = append([]stack.Site(nil), r.Sites...), append([]stack.Inner(nil), r.Inner...)
	return r
}

// figures is the report of one arena. Published ones are copies in memory of their own, made at
// Open, so any goroutine may read them. Publishing makes no Go allocation.
type figures struct {
	stack *stack.Stack
	seen  uint64 // of frame and scratch: Stack.Changes when read; 0: read again
	ArenaReport
	failed int              // finalizers
	blocks int              // leaked
	lost   int              // owned values, while no scope is open that could hold them
	since  uint64           // highest use since the peak was last reset
	full   *scope.FullError // the last; its text is made when the report is copied
	gauge  *seam.Gauge      // nil: the budget has no timeline
	sites  *stack.Sites     // in checked builds, or nil
	rests  bool             // no scope was open
	rest   stack.Rest       // of that moment
}

func newFigures(st *stack.Stack) figures {
	f := figures{stack: st,
		ArenaReport: ArenaReport{Name: arenaName(st), Part: st.Part, Index: st.Index, Kind: st.Kind}}
	if arena_c.Checked && f.isRegion() { // only of regions: a frame is published too often
		f.sites = new(stack.Sites)
	}
	return f
}

// isRegion reports whether the arena is a region, whose LoadPeak begins again when it is emptied.
// In other arenas a timeline resets that peak.
func (f *figures) isRegion() bool { return f.stack.Row().Kind == arena_c.KindRegion }

func arenaName(st *stack.Stack) string { return strings.TrimPrefix(st.Arena, "region ") }

// read reads the arena now. It reuses the memory of the lists.
func (f *figures) read() {
	s := f.stack.Stats()
	f.ArenaReport = ArenaReport{Name: f.Name, Part: f.Part, Index: f.Index, Kind: f.Kind, Size: s.Size, Used: s.Used,
		Peak: s.Peak, LoadPeak: s.PeakSince, Free: s.Free, Counted: s.Counted, Objects: s.Objects,
		Finalizers: s.Finalizers, PoolCap: s.PoolCap, PoolPeak: s.PoolPeak, Padding: s.Padding,
		MostOpen: Limits(s.MostOpen), Labels: f.Labels[:0], Scopes: f.Scopes[:0], Caches: s.Caches,
		Inner: f.stack.AppendInner(f.Inner[:0]), Fulls: f.stack.Fulls()}
	if f.since, f.full = s.PeakSince, f.stack.LastFull(); !f.isRegion() {
		f.LoadPeak = s.Peak
	}
	f.Scopes, f.Labels = f.stack.AppendUsage(f.Scopes, f.Labels)
	f.Warnings, f.LastWarning = f.stack.Warnings() // after AppendUsage, which looks
	if f.sites != nil {
		f.sites.Read(f.stack)
	}
	f.failed, f.blocks, f.lost = s.Failed, int(s.Leaks), 0
	if f.stack.Depth() == 0 {
		f.lost = s.Owned
	}
}

// publish reads the arena into lists with space for every name.
func (f *figures) publish() {
	if scopes, labels := f.stack.UsageLines(); cap(f.Scopes) < scopes || cap(f.Labels) < labels {
		f.Scopes, f.Labels = make([]scope.Usage, 0, scopes), make([]scope.Usage, 0, labels)
	}
	fulls, warnings := f.Fulls, f.Warnings
	f.read()
	if f.Fulls != fulls {
		f.gauge.Mark(seam.Full)
	}
	if f.Warnings != warnings {
		f.gauge.Mark(seam.Warn)
	}
}

// publishRegion publishes a region that was loaded or emptied. The peak of its own load counts for
// this tick.
func (f *figures) publishRegion(what uint16) {
	f.publish()
	f.gauge.Mark(what)
	most := f.Used
	if what == seam.Load {
		most = f.LoadPeak
	}
	f.gauge.Saw(most, f.Used)
}

// publishBeside publishes a buffer of the frame, or a scratch arena.
func (f *figures) publishBeside() {
	f.publish()
	f.sawSince(f.since, f.Used)
}

// sawSince passes the peak since the last publication to the timeline and resets it.
func (f *figures) sawSince(most, used uint64) {
	if f.gauge != nil {
		f.gauge.Saw(most, used)
		f.stack.ResetPeak(false)
	}
}

// now returns the arena's report as of now, apart from the published one.
func (f *figures) now() figures {
	now := newFigures(f.stack)
	now.read()
	now.tell()
	return now
}

// tell makes the texts of a copy: each is a Go allocation.
func (f *figures) tell() {
	if f.sites != nil {
		f.Sites = f.sites.Tell()
	}
	stack.TellInner(f.Inner)
	if f.full != nil {
		f.LastFull = f.full.Error()
	}
}

// changed reports whether the arena was used since it was published.
func (f *figures) changed() bool { return f.stack.Changes() != f.seen }

// publishChanged publishes a scratch arena, unless it was empty at its last publication and no
// scope was opened since.
func (f *figures) publishChanged() {
	if !f.changed() {
		return
	}
	if f.seen = f.stack.Changes(); f.stack.Depth() != 0 {
		f.seen = 0
	}
	f.publishBeside()
	if f.rests = f.stack.Depth() == 0; f.rests {
		f.rest = f.stack.Rest()
	}
}

// stands reports whether publishChanged would change nothing. It is for the goroutine that owns the
// arena, the only one that publishes it.
func (f *figures) stands() bool { return f.rests && f.stack.Rests(&f.rest) }

// hold publishes the bytes of a buffer in which everything else stays the same.
func (f *figures) hold(used uint64) {
	f.Used, f.Free = used, f.Size-used
	f.Peak = max(f.Peak, used)
	f.LoadPeak = f.Peak
	own := &f.Scopes[0] // the frame's own scope was opened first
	own.Allocated += used - min(used, own.Bytes)
	own.Bytes, own.Peak = used, max(own.Peak, used)
}

// published holds the published reports of all arenas.
type published struct {
	loads sync.Mutex // guards the reports of regions
	// guards the reports of frame and scratch, so that NextFrame doesn't wait for a copy of
	// thousands of slots
	beside  sync.Mutex
	list    []figures // in map order
	regions []figures // these are parts of list
	frame   []figures
	scratch []figures
	watched atomic.Bool // there is a timeline
}

func (p *published) begin(stacks []*stack.Stack, regions, buffers int) {
	p.list = make([]figures, 0, len(stacks))
	for _, st := range stacks {
		f := newFigures(st)
		f.publish()
		p.list = append(p.list, f)
	}
	p.regions, p.frame, p.scratch = p.list[:regions], p.list[regions:regions+buffers], p.list[regions+buffers:]
}

func (p *published) copyOf(arena int) figures {
	f := p.copyLocked(arena)
	f.tell()
	return f
}

func (p *published) copyLocked(arena int) figures {
	lock := p.lockOf(arena)
	lock.Lock()
	defer lock.Unlock()
	f := p.list[arena]
	f.ArenaReport = f.clone()
	if f.sites != nil { // making their texts takes longer than a load should wait
		f.sites = &stack.Sites{List: slices.Clone(f.sites.List)}
	}
	return f
}

func (p *published) lockOf(arena int) *sync.Mutex {
	if arena < len(p.regions) {
		return &p.loads
	}
	return &p.beside
}

func (p *published) size(arena int) uint64 {
	lock := p.lockOf(arena)
	lock.Lock()
	defer lock.Unlock()
	return p.list[arena].Size
}

// GoHeap is the Go runtime's memory in the whole process, outside the budget. Sizes are in bytes.
type GoHeap struct {
	// Limit is the collector's limit: the plan's go_heap, or another limit (see From). It is 0 if
	// the plan has no go_heap. With the [Rest] it follows the limits of the process.
	Limit uint64 `json:"limit"`
	// From is the origin of a Limit that isn't a number of the plan: "the rest of cgroup memory.max
	// 524288KiB", or a lower GOMEMLIMIT of the operator.
	From string `json:"from,omitempty"`
	// Reserve is the bytes that Open left free if go_heap is the [Rest], and 0 if go_heap is a
	// number. It isn't a part of Limit, whereas the reserve of a heap is a part of the heap's size:
	// the process has these bytes for memory that no plan counts.
	Reserve uint64 `json:"reserve,omitempty"`
	// Used is the bytes that the runtime has from the system, as its memory limit counts them.
	Used        uint64 `json:"used"`
	Collections uint64 `json:"collections"` // since Open
	// Halving is the Limit with which the collector would run half as often, while the program
	// makes garbage as before. It is 0 if the collector hasn't run since Open.
	Halving uint64 `json:"halving,omitempty"`
	// Moves has the last 16 changes of the limits of the process since Open, a line each, with the
	// time and the change of Limit.
	Moves []string `json:"moves,omitempty"`
}
