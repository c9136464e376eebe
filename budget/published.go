package budget

import (
	"slices"

	"github.com/upfront-mem/upfront/platform"
)

// Report reads the figures as they are now; after Close, as they were then. It reads the arenas
// themselves: it belongs to the goroutine that drives the program, where no worker is at work on a region
// or on scratch arenas that were asked for by number. Any other goroutine, or moment, asks for Published.
// Scratch arenas on loan are their borrowers': they show what they held when they were given back last.
// Cost: O(arenas).
func (b *Budget) Report() Report {
	return b.report(b.isOurs)
}

// isOurs says whether only the goroutine that drives the program, or a worker that it knows, uses the arena: it is no
// scratch on loan.
func (b *Budget) isOurs(arena int) bool {
	scratch := arena - len(b.regions) - len(b.frame)
	return scratch < 0 || b.leases.isFixed(scratch)
}

// Published are the figures as they were last published; after Close, as they were then. It is for any
// goroutine, at any time: a console, a metrics page, a log. Each arena's figures are those of one moment:
// of Open, of the last Load, Rewind, Release or Reconfigure that touched the region, of the last NextFrame
// for the frame and for scratch arenas that were asked for by number, of the last Release for others. What
// the Go heap has, and what went wrong, is as of now. Cost: O(arenas) and a copy.
func (b *Budget) Published() Report {
	return b.report(func(int) bool { return false })
}

// report has the figures of each arena: as they are now, or as they were published.
func (b *Budget) report(now func(arena int) bool) Report {
	if b.closed.Load() {
		return b.last.clone()
	}
	r := Report{Name: b.plan.Name, Size: b.Size(), Reserved: b.memory.Addresses(), Committed: b.committed(), Resident: b.resident,
		Prefaulted: b.prefaulted, NotGranted: slices.Concat(b.refused, b.untracked()), GoHeap: b.goHeap()}
	p := &b.published
	for i := range p.list {
		var f figures
		if now(i) {
			f = p.list[i].now()
		} else {
			f = p.copyOf(i)
		}
		r.add(f)
	}
	r.Leaks.Scopes = b.left.count()
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Plan, r.Cost = b.Plan(), b.cost
	r.Errors, r.ErrorCount = slices.Clone(b.errors), b.errorsN
	return r
}

// add adds an arena.
func (r *Report) add(f figures) {
	r.Arenas = append(r.Arenas, f.ArenaReport)
	r.Leaks.Finalizers += f.failed
	r.Leaks.Owned += f.lost
	r.Leaks.Blocks += f.blocks
}

// goHeap reads the figures as they are now. Any goroutine may.
func (b *Budget) goHeap() GoHeap {
	s := readMetrics(metricTotal, metricReleased, metricCycles)
	used := s[0].Value.Uint64() - s[1].Value.Uint64()
	if platform.GoBacked && !b.foreign() {
		used -= min(used, b.Size()) // the budget is Go memory, and has figures of its own
	}
	return GoHeap{Limit: b.plan.GoHeap, Used: used, Collections: s[2].Value.Uint64() - b.cycles}
}
