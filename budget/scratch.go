package budget

import (
	"context"

	"github.com/upfront-mem/upfront/scope"
)

// Scratch is one of the scratch arenas of a worker: which counts from 0, as workers do; out of the
// plan's range is a caller's bug. See [Budget.Scratches].
func (b *Budget) Scratch(worker, which int) scope.Scratch { return b.Scratches(worker).Scratch(which) }

// Scratches are the scratch arenas of a worker. They stay that worker's until Close and are never
// lent. Out of the plan's range, or lent at the moment, is a caller's bug and panics: ask at set-up,
// before the first Lease. Cost: an atomic read.
func (b *Budget) Scratches(worker int) scope.Scratches { return b.leases.of(worker) }

// Lease lends the scratch arenas of a worker that is free, and waits for one until ctx ends; then the
// error says how many are lent. Who waits is served in turn. After Close it is ErrClosed, also for those
// who wait. Without scratch arenas in the plan it panics. A goroutine that borrows again gets, most often, what
// it gave back, which its processor's caches hold. Cost: with its Release some 50 ns, and a look at each worker whose
// scratch is lent; that of a channel and a lock for those who wait. No Go allocation.
func (b *Budget) Lease(ctx context.Context) (Lease, error) { return b.leases.lease(ctx) }

// scratchAsPublished says that nothing was done on the scratch arenas that only this goroutine and workers that it knows use.
func (b *Budget) scratchAsPublished() bool {
	for i := range b.published.scratch {
		if b.leases.isFixed(i) && b.published.scratch[i].changed() {
			return false
		}
	}
	return true
}

// publishScratch publishes these scratch arenas.
func (b *Budget) publishScratch() {
	p := &b.published
	p.beside.Lock()
	defer p.beside.Unlock()
	for i := range p.scratch {
		if b.leases.isFixed(i) {
			p.scratch[i].publishChanged()
		}
	}
}
