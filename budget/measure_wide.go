package budget

import "slices"

// wideLimit is the most of each that an arena of a wide plan may have open, if it has wideRoom for each: the tables have a
// place for each too.
const (
	wideLimit = 4096
	wideRoom  = 4096
)

// wide is the plan with every part as large as an equal share of total, and with limits to match, but at least as planned.
func (p Plan) wide(total uint64) Plan {
	p.Regions = slices.Clone(p.Regions)
	share := total / p.rows() &^ (planEdge - 1)
	for _, part := range p.sized() {
		*part.size = max(*part.size, share)
	}
	each := int(min(share/wideRoom, wideLimit))
	p.Limits.raiseTo(Limits{each, each, each, each})
	return p
}

// wideTotal is what a wide plan may have: half of what the process's limits leave, but at most wideMost.
func wideTotal() uint64 {
	total := wideMost
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
