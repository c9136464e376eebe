package budget

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// ArenaReport has the figures of an arena: a region, a slot, a buffer of the frame, or a scratch arena. Sizes are bytes.
type ArenaReport struct {
	Name       string        `json:"name"`      // as in errors: "level", "room 3", "frame 0", "scratch 1.0"
	Part       string        `json:"part"`      // what the plan calls it and its siblings: "level", "room", "frame", "scratch"
	Index      int           `json:"index"`     // among its siblings, from 0
	Kind       string        `json:"kind"`      // "region", "slot", "frame" or "scratch"
	Size       uint64        `json:"size"`      //
	Used       uint64        `json:"used"`      //
	Peak       uint64        `json:"peak"`      // highest use since Open, temporaries included
	LoadPeak   uint64        `json:"load_peak"` // of a region, highest use since it was last emptied; of frame and scratch arenas the Peak
	Free       uint64        `json:"free"`
	Counted    bool          `json:"counted,omitempty"` // Objects, Padding and the objects of Labels and Scopes are known: in checked builds
	Objects    uint64        `json:"objects,omitempty"` // allocations that are live
	Finalizers uint64        `json:"finalizers"`        // that ran since Open
	PoolCap    uint64        `json:"pool_cap"`          // chunks of the pools that are open
	PoolPeak   uint64        `json:"pool_peak"`         // sum of their peaks
	Padding    uint64        `json:"padding,omitempty"` // of Used, what alignment costs
	MostOpen   Limits        `json:"most_open"`         // the most that were open at once since Open
	Labels     []scope.Usage `json:"labels,omitempty"`  // what subsystems hold and held (scope.Label), by name
	Scopes     []scope.Usage `json:"scopes,omitempty"`  // what scopes hold and held, by name; of regions and frame, not scratch arenas
	Sites      []Site        `json:"sites,omitempty"`   // of a region in checked builds, who made what is Used
	Inner      []scope.Inner `json:"inner,omitempty"`   // heaps, buddies, rings and pools of package arena in its open scopes

	Fulls    int    `json:"fulls,omitempty"`     // how often it was full since Open, and told of it
	LastFull string `json:"last_full,omitempty"` // what it told of last
}

// Report are the figures of a budget.
type Report struct {
	Name       string        `json:"name"`
	Size       uint64        `json:"size"`                  // bytes, tables and guards included
	Reserved   uint64        `json:"reserved"`              // bytes of addresses: Size, mostly up to the next power of two; they cost nothing
	Committed  uint64        `json:"committed"`             // of Size, what may be read and written: the guards in force are not
	Resident   uint64        `json:"resident"`              // of Size, what was present when Open returned; the first touch of more comes on top, up to that of Cost
	Cost       Cost          `json:"cost"`                  // what the plan takes at most: addresses, resident memory, Go heap
	Prefaulted bool          `json:"prefaulted"`            // every page of arenas and tables was present at Open
	NotGranted []string      `json:"not_granted,omitempty"` // what the plan wished and the system refused: key and reason
	Arenas     []ArenaReport `json:"arenas"`                // in the order of the map: regions and slots, the frame's buffers, scratch arenas
	Leaks      Leaks         `json:"leaks"`
	Errors     []string      `json:"errors,omitempty"` // of finalizers whose contents a load replaced: the last 16
	ErrorCount int           `json:"error_count"`      // of them in all
	GoHeap     GoHeap        `json:"go_heap"`
	Plan       Plan          `json:"plan"` // as opened, with its defaults filled in

	// Proxies are what clients have of allocators. The program adds those that it has: append(r.Proxies, sound.Stats()).
	Proxies []arena.ProxyStats `json:"proxies,omitempty"`
}

// Arena returns the figures of an arena by its name; the zero ArenaReport if there is no such arena.
func (r Report) Arena(name string) ArenaReport {
	for i := range r.Arenas {
		if r.Arenas[i].Name == name {
			return r.Arenas[i]
		}
	}
	return ArenaReport{}
}

// clone is a copy that shares nothing: callers may keep it and write to it.
func (r Report) clone() Report {
	r.NotGranted, r.Errors = slices.Clone(r.NotGranted), slices.Clone(r.Errors)
	r.Arenas = slices.Clone(r.Arenas)
	for i := range r.Arenas {
		r.Arenas[i] = r.Arenas[i].clone()
	}
	r.Plan.Regions = slices.Clone(r.Plan.Regions)
	return r
}

// clone makes lists without lines nil, as they are when they are read from JSON.
func (r ArenaReport) clone() ArenaReport {
	r.Labels, r.Scopes = append([]scope.Usage(nil), r.Labels...), append([]scope.Usage(nil), r.Scopes...)
	r.Sites, r.Inner = append([]Site(nil), r.Sites...), append([]scope.Inner(nil), r.Inner...)
	return r
}

// figures are those of one arena. Published, any goroutine may read them: they are copies in memory of their own, made at
// Open. Publishing makes no Go allocation.
type figures struct {
	stack *scope.Stack
	seen  uint64 // of frame and scratch arenas, what Stack.Changes said then; 0: to be read again
	ArenaReport
	failed int              // finalizers
	blocks int              // that leaked
	lost   int              // owned values, while nothing is open that could hold them
	since  uint64           // highest use since the count of the arena's peak began anew
	full   *scope.FullError // the last; its text is made when the figures are copied
	gauge  *gauge           // nil: the budget has no timeline
	sites  *scope.Sites     // in checked builds; nil: nobody asks
	rests  bool             // no scope was open
	rest   scope.Rest       // then
}

func newFigures(st *scope.Stack) figures {
	f := figures{stack: st, ArenaReport: ArenaReport{Name: arenaName(st), Part: st.Part, Index: st.Index, Kind: st.Kind}}
	if arena_c.Checked && f.isRegion() { // a frame is published too often
		f.sites = new(scope.Sites)
	}
	return f
}

// isRegion: of a region the highest use since it was last emptied is counted. That of others begins anew whenever a timeline has
// seen it.
func (f *figures) isRegion() bool { return f.stack.Row().Kind == arena_c.KindRegion }

// arenaName is the name of an arena in reports.
func arenaName(st *scope.Stack) string { return strings.TrimPrefix(st.Arena, "region ") }

// read reads the figures of the arena as they are now. It takes the room of the lists that are there.
func (f *figures) read() {
	s := f.stack.Stats()
	f.ArenaReport = ArenaReport{Name: f.Name, Part: f.Part, Index: f.Index, Kind: f.Kind, Size: s.Size, Used: s.Used, Peak: s.Peak, LoadPeak: s.PeakSince, Free: s.Free,
		Counted: s.Counted, Objects: s.Objects, Finalizers: s.Finalizers, PoolCap: s.PoolCap, PoolPeak: s.PoolPeak, Padding: s.Padding,
		MostOpen: Limits(s.MostOpen), Labels: f.Labels[:0], Scopes: f.Scopes[:0], Inner: f.stack.AppendInner(f.Inner[:0]), Fulls: f.stack.Fulls()}
	if f.since, f.full = s.PeakSince, f.stack.LastFull(); !f.isRegion() {
		f.LoadPeak = s.Peak
	}
	f.Scopes, f.Labels = f.stack.AppendUsage(f.Scopes, f.Labels)
	if f.sites != nil {
		f.sites.Read(f.stack)
	}
	f.failed, f.blocks, f.lost = s.Failed, int(s.Leaks), 0
	if f.stack.Depth() == 0 {
		f.lost = s.Owned
	}
}

// publish is read, with room for what the lists may come to hold.
func (f *figures) publish() {
	if scopes, labels := f.stack.UsageLines(); cap(f.Scopes) < scopes || cap(f.Labels) < labels {
		f.Scopes, f.Labels = make([]scope.Usage, 0, scopes), make([]scope.Usage, 0, labels)
	}
	fulls := f.Fulls
	f.read()
	if f.Fulls != fulls {
		f.gauge.mark(MarkFull)
	}
}

// publishRegion publishes a region that was loaded or emptied. What it held in its own load counts for this tick.
func (f *figures) publishRegion(what Mark) {
	f.publish()
	f.gauge.mark(what)
	most := f.Used
	if what == MarkLoad {
		most = f.LoadPeak
	}
	f.gauge.saw(most, f.Used)
}

// publishBeside publishes a buffer of the frame, or a scratch arena.
func (f *figures) publishBeside() {
	f.publish()
	f.sawSince(f.since, f.Used)
}

// sawSince begins a new count of the peak, for the timeline: there is one since the figures were published last.
func (f *figures) sawSince(most, used uint64) {
	if f.gauge != nil {
		f.gauge.saw(most, used)
		f.stack.ResetPeak(false)
	}
}

// now are the figures of the arena, apart from those that are published.
func (f *figures) now() figures {
	now := newFigures(f.stack)
	now.read()
	now.tell()
	return now
}

// tell is for a copy: a text is a Go allocation.
func (f *figures) tell() {
	f.Sites = f.sitesNow()
	scope.TellInner(f.Inner)
	if f.full != nil {
		f.LastFull = f.full.Error()
	}
}

// changed says that something was done on the arena since it was published.
func (f *figures) changed() bool { return f.stack.Changes() != f.seen }

// publishChanged publishes a scratch arena, unless it was empty then and nothing was opened since.
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

// stands says that what publishChanged would publish stands there already. It is for the goroutine that has the arena: only that
// one publishes it.
func (f *figures) stands() bool { return f.rests && f.stack.Rests(&f.rest) }

// hold publishes what a buffer holds of which nothing else changed.
func (f *figures) hold(used uint64) {
	f.Used, f.Free = used, f.Size-used
	f.Peak = max(f.Peak, used)
	f.LoadPeak = f.Peak
	own := &f.Scopes[0] // the frame's own scope was opened first
	own.Allocated += used - min(used, own.Bytes)
	own.Bytes, own.Peak = used, max(own.Peak, used)
}

// published are the figures of all arenas.
type published struct {
	loads   sync.Mutex // of those of regions
	beside  sync.Mutex // of those of frame and scratch arenas: NextFrame doesn't wait until thousands of slots are copied
	list    []figures  // by arena
	regions []figures  // of the list, as the following
	frame   []figures
	scratch []figures
	watched atomic.Bool // there is a timeline
}

// begin publishes all for the first time.
func (p *published) begin(stacks []*scope.Stack, regions, buffers int) {
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
	if f.sites != nil { // their texts take longer than a load is to wait
		f.sites = &scope.Sites{List: slices.Clone(f.sites.List)}
	}
	return f
}

// watch has each arena's gauge follow what is published of it from now on. A budget has one timeline.
func (p *published) watch(gauges []gauge) {
	p.loads.Lock()
	defer p.loads.Unlock()
	p.beside.Lock()
	defer p.beside.Unlock()
	if p.list[0].gauge != nil {
		panic("budget: BUG: a second Timeline of a budget: it has one, which any goroutine may Read")
	}
	p.watched.Store(true)
	for i := range p.list {
		p.list[i].gauge = &gauges[i]
		gauges[i].saw(p.list[i].Used, p.list[i].Used)
	}
}

func (p *published) lockOf(arena int) *sync.Mutex {
	if arena < len(p.regions) {
		return &p.loads
	}
	return &p.beside
}

// size is that of an arena, as it was published.
func (p *published) size(arena int) uint64 {
	lock := p.lockOf(arena)
	lock.Lock()
	defer lock.Unlock()
	return p.list[arena].Size
}

// GoHeap is the Go runtime's memory, which lies beside the budget. It is the whole process's. Sizes are bytes.
type GoHeap struct {
	Limit       uint64 `json:"limit"`       // what the plan gives it (go_heap); 0: the budget doesn't govern it
	Used        uint64 `json:"used"`        // what the runtime has from the system, as its memory limit counts
	Collections uint64 `json:"collections"` // since Open
}
