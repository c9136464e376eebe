package budget

import (
	"context"

	"github.com/upfront-mem/upfront/scope"
)

// Scratch returns one scratch arena of a worker; [Budget.Scratches] returns all of them. Both
// numbers count from 0. A number outside the plan's range is a caller's bug and panics.
func (b *Budget) Scratch(worker, which int) scope.Scratch { return b.Scratches(worker).Scratch(which) }

// Scratches returns the scratch arenas of the worker with this number. They belong to the worker
// until Close and are never lent. A number outside the plan's range, or a worker whose scratch is
// lent, is a caller's bug and panics. So call Scratches at set-up, before the first Lease. Cost: an
// atomic read after the first call.
func (b *Budget) Scratches(worker int) scope.Scratches { return b.leases.of(worker) }

// Lease lends the scratch arenas of a free worker to any goroutine: a worker whose arenas are
// neither lent nor taken by number ([Budget.Scratches]). It waits until a worker is free; if ctx
// ends first, it returns an error with the number of loans. Waiting goroutines are served in turn.
// After Close, Lease returns [ErrClosed], also to goroutines that already wait. It returns an error
// if all workers are taken by number, and panics if the plan has no scratch. A goroutine that
// borrows again mostly gets the same arenas, which may still be in its processor's caches.
//
// Cost: some 50 ns together with Release, and a check of each lent worker. A goroutine that waits
// also uses a channel and a lock. No Go allocation, unless it fails.
func (b *Budget) Lease(ctx context.Context) (Lease, error) { return b.leases.lease(ctx) }

// scratchAsPublished reports whether no numbered worker's scratch was used since it was published.
func (b *Budget) scratchAsPublished() bool {
	for i := range b.published.scratch {
		if b.leases.isFixed(i) && b.published.scratch[i].changed() {
			return false
		}
	}
	return true
}

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
