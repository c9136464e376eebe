package budget

import (
	"context"

	"github.com/upfront-mem/upfront/scope"
)

// Scratch returns one scratch arena of a worker; both numbers count from 0, and a number outside
// the plan's range is a caller's bug and panics. See [Budget.Scratches].
func (b *Budget) Scratch(worker, which int) scope.Scratch { return b.Scratches(worker).Scratch(which) }

// Scratches returns the scratch arenas of a worker. They belong to that worker until Close and are
// never lent. A worker outside the plan's range, or one whose scratch is lent, is a caller's bug
// and panics: call it at set-up, before the first Lease. Cost: an atomic read.
func (b *Budget) Scratches(worker int) scope.Scratches { return b.leases.of(worker) }

// Lease lends the scratch arenas of a free worker. It waits until a worker is free; if ctx ends
// first, it returns an error with the number of loans. Waiting goroutines are served in turn. After
// Close it returns ErrClosed, also to goroutines that wait. It returns an error if all workers are
// taken by number, and panics if the plan has no scratch. A goroutine that borrows again mostly
// gets the arenas that it released, which its processor's caches hold.
//
// Cost: with its Release some 50 ns, and a check of each lent worker; for a goroutine that waits,
// also a channel and a lock. No Go allocation.
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
