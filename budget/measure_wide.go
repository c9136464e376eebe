package budget

import (
	"math"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// wideLimit is the most of each that an arena of a wide plan may have open, if it has wideRoom for each: the tables have a
// place for each too.
const (
	wideLimit = 4096
	wideRoom  = 4096
)

// wide is the plan with every part as large as an equal share of total, and with limits to match, but at least as planned.
func (p Plan) wide(total uint64) Plan {
	p.Regions = slices.Clone(p.Regions)
	share := total / p.arenaCount() &^ (planEdge - 1)
	for _, part := range p.sized() {
		*part.size = max(*part.size, share)
	}
	each := int(min(share/wideRoom, wideLimit))
	p.Limits.raiseTo(Limits{each, each, each, each})
	return p
}

// wideMost is the most that Measure asks for: it may well be beyond the machine's memory, since only what is used becomes
// present, and a small part of what the narrowest address space has, of 39 bits; where they have 32, a sixteenth.
// Instrumented builds touch every byte of a budget, or a shadow of it.
func wideMost() uint64 {
	if arena_c.Race || arena_c.Asan {
		return 256 * MiB
	}
	return min(16*GiB, math.MaxUint/16)
}

// wideTotal is what a wide plan may have: half of what the process's limits leave, but at most wideMost.
func wideTotal() uint64 {
	total := wideMost()
	for _, limit := range readLimits() {
		total = min(total, limit.Rest()/2)
	}
	return total
}

// openWide opens the widest budget that the system grants; wide is its plan.
func openWide(plan Plan, total uint64) (b *Budget, wide Plan, err error) {
	for {
		wide = plan.wide(total)
		if b, err = Open(wide); err == nil || total < planEdge {
			return b, wide, err
		}
		total /= 2 // RLIMIT_AS, or the kernel's overcommit, is against it
	}
}
