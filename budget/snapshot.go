package budget

import (
	"sync"

	"github.com/upfront-mem/upfront/scope"
)

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

// publishRegions is for who has them for itself: the end of what touched them.
func (b *Budget) publishRegions(touched []*region) {
	p := &b.published.regions
	p.Lock()
	defer p.Unlock()
	for _, r := range touched {
		p.read(r.index, r.stack)
	}
}

// publishPlan is for Reconfigure.
func (b *Budget) publishPlan() {
	p := &b.published
	p.regions.Lock()
	defer p.regions.Unlock()
	p.plan = b.Plan()
}

// publishFrame publishes the frame.
func (b *Budget) publishFrame() {
	p := &b.published.beside
	p.Lock()
	defer p.Unlock()
	for i, st := range b.frame {
		p.seen[i] = st.Changes()
		p.read(i, st)
	}
}

// publishPlain publishes a frame that ended with so many bytes, and the next one, with none: both are most often as they
// were but for these.
func (b *Budget) publishPlain(next int, used uint64) {
	p := &b.published.beside
	p.Lock()
	if ending := b.frame[b.buffer]; ending.Changes() == p.seen[b.buffer] {
		p.hold(b.buffer, used)
	} else {
		p.read(b.buffer, ending)
	}
	p.hold(next, 0)
	p.seen[next] = b.frame[next].Changes()
	p.Unlock()
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

// scratchAsPublished says that nothing was done on the scratch arenas that only this goroutine and workers that it knows use.
func (b *Budget) scratchAsPublished() bool {
	seen := b.published.beside.seen[len(b.frame):]
	for i, st := range b.scratches {
		if b.leases.isFixed(i) && st.Changes() != seen[i] {
			return false
		}
	}
	return true
}

// publishScratch publishes these scratch arenas.
func (b *Budget) publishScratch() {
	p := &b.published.beside
	p.Lock()
	defer p.Unlock()
	for i, st := range b.scratches {
		if b.leases.isFixed(i) {
			p.readScratch(len(b.frame)+i, st)
		}
	}
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

// publishLease is for Release, while nobody else can have the worker's scratch arenas.
func (b *Budget) publishLease(worker int) {
	p := &b.published.beside
	p.Lock()
	defer p.Unlock()
	for i, st := range b.scratchOf(worker) {
		p.readScratch(len(b.frame)+worker*b.plan.Scratch.Each+i, st)
	}
}
