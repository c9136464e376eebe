package budget

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/platform"
)

// Report describes the budget now, or as of Close. It reads the arenas themselves, so only the
// goroutine that drives the program may call it, while no goroutine loads or uses a region or
// numbered scratch. Any other goroutine uses [Budget.Published]. Scratch of leases is as of its
// last Release. Cost: O(arenas), that of [Budget.Missing] for the resident bytes, and that of
// [platform.AppendAnonymous] for those outside.
func (b *Budget) Report() Report {
	if !b.closed.Load() {
		b.measure()
	}
	return b.report(b.isOurs)
}

// isOurs reports whether the arena belongs to the goroutine that drives the program or to a
// numbered worker: it isn't scratch for leases.
func (b *Budget) isOurs(arena int) bool {
	scratch := arena - len(b.regions) - len(b.frame)
	return scratch < 0 || b.leases.isFixed(scratch)
}

// Published describes each arena as of its last publication. Any goroutine may call Published at
// any time, for example for a console, a metrics page or a log. Open and Close publish every arena.
// Between Open and Close:
//
//	arena                                  published by each
//	a region, a slot                       Load, Rewind, Release and Reconfigure that touches it
//	the frame, a numbered worker's scratch NextFrame
//	scratch of leases                      Release of a lease
//
// The Go heap, C's malloc, quotas, the memory outside and the errors are as of the call, or as of
// Close.
// Cost: O(arenas), for a copy, and that of [platform.AppendAnonymous].
func (b *Budget) Published() Report {
	return b.report(func(int) bool { return false })
}

// report describes each arena: as it is now if now is true for the arena, else as published.
func (b *Budget) report(now func(arena int) bool) Report {
	if b.closed.Load() {
		return b.last.clone()
	}
	r := Report{Name: b.plan.Name, Size: b.Size(), Reserved: b.memory.Addresses(), Committed: b.committed(),
		Resident: b.resident.Load(), Prefaulted: b.prefaulted, NotGranted: slices.Concat(b.refused, b.untracked()),
		GoHeap: b.goHeap(), CHeap: b.cHeapReport(), Outside: b.outside(true)}
	p := &b.published
	r.Arenas = make([]ArenaReport, 0, len(p.list)) // [] in JSON, also if there are none
	for i := range p.list {
		var f figures
		if now(i) {
			f = p.list[i].now()
		} else {
			f = p.copyOf(i)
		}
		r.add(f)
	}
	for _, s := range b.slots {
		if s.queue != nil {
			r.Arenas[s.slots[0].index].Waits = new(s.queue.waitsLocked())
		}
	}
	for _, q := range b.quotas {
		r.Quotas = append(r.Quotas, q.report())
	}
	r.Leaks.Scopes = b.left.count()
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Plan, r.Cost = b.Plan(), b.cost
	r.Errors, r.ErrorCount = slices.Clone(b.errors), b.errorsN
	return r
}

func (r *Report) add(f figures) {
	r.Arenas = append(r.Arenas, f.ArenaReport)
	r.Leaks.Finalizers += f.failed
	r.Leaks.Owned += f.lost
	r.Leaks.Blocks += f.blocks
}

// goHeap describes the Go heap now. Any goroutine may call it.
func (b *Budget) goHeap() GoHeap {
	s := readMetrics(metricTotal, metricReleased, metricCycles, metricAllocs)
	used := s[0].Value.Uint64() - s[1].Value.Uint64()
	if platform.GoBacked && !b.foreign() {
		used -= min(used, b.Size()) // the budget is Go memory that is reported apart
	}
	heap := b.follow.goHeap()
	heap.Used, heap.Collections = used, s[2].Value.Uint64()-b.cycles
	if heap.Collections != 0 { // each gives room for as much garbage as on average until now
		heap.Halving = cmp.Or(heap.Limit, used) + (s[3].Value.Uint64()-b.allocated)/heap.Collections
	}
	return heap
}
