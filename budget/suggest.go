package budget

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// Suggest returns a plan with the sizes and limits that the recorded reports show, without a
// margin; [Plan.Headroom] adds a margin. The reports' plans must have the same regions in the same
// order. Each region must have slots in all plans or in none. Sizes and the plans' names may
// differ.
//
//   - Each size is the highest Peak of the part's arenas in the reports.
//   - A part with a peak of 0 gets its largest size in the reports' plans. Such a part wasn't used,
//     or its use wasn't published before the report ([Budget.Published]).
//   - A part that was full (Fulls), in its bytes or in a table, gets at least its size in that
//     report's plan, and may need more; LastFull has the last refusal.
//   - The numbers of slots, buffers, workers and scratch arenas are the highest in the plans.
//   - Plan.Limits is the highest MostOpen, at least the default. A region with slots, or with
//     limits of its own in a plan, gets limits of its own: the highest MostOpen of its slots, at
//     least 1. If a slot was full, its limits in that plan are the least. A region that was never
//     used keeps the highest limits of its own; if it has none, the new Plan.Limits apply.
//   - A region's note names the report that its size came from, or says that the region was never
//     used.
//   - The plan's Size is the sum of the parts; no region has the [Rest].
//   - The C heap's size is the highest in the plans, because the bytes that a heap needs beyond its
//     peak depend on fragmentation.
//   - A quota's size is the highest Peak in the reports, in whole pieces. If a quota that enforces
//     refused or delayed a reservation, its size in that report's plan is the least. For a quota
//     that observes, the result would have refused and delayed nothing in these reports. The
//     tenants' limit is the highest peak of a tenant, in the same way.
//   - The name, base, pages, Go heap, expectations and functions are the first plan's, and so is
//     the On of each region. A Go heap that was the Rest is the Rest again; one that is a number
//     holds the quotas in it.
//
// Reconfigure resets peaks, so record a report before it. Temporaries ([scope.Scope.Temp]) begin at
// a cache line, so a region with temporaries may need the next multiple of 64 bytes. [Measure]
// finds the exact size.
func Suggest(reports ...Report) (Plan, error) {
	if len(reports) == 0 {
		return Plan{}, errors.New("budget: Suggest: no reports")
	}
	plan := reports[0].Plan.resolved()
	plan.Size = 0
	if reports[0].GoHeap.Reserve != 0 {
		plan.GoHeap = Rest // the number was that of one machine
	}
	for n, report := range reports {
		err := report.Plan.check()
		if err == nil {
			err = plan.widen(report.Plan.resolved()) // with a size for the region with the Rest
		}
		if planned := report.Plan.arenaCount(); err == nil && planned != uint64(len(report.Arenas)) {
			err = fmt.Errorf("has figures of %d regions, slots, buffers and scratch arenas; its plan has %d",
				len(report.Arenas), planned)
		}
		if err != nil {
			return Plan{}, fmt.Errorf("budget: Suggest: report %d, %s: %w", n+1, jsonfile.Quote(report.Name), err)
		}
	}
	most := map[string]need{}
	for n, report := range reports {
		given, needs := report.Plan.resolved(), report.needs()
		for i, part := range given.sized() {
			one, all := needs[part.key], most[part.key]
			one.from = fmt.Sprintf(" bytes in report %d, %s", n+1, jsonfile.Quote(report.Name))
			if one.full {
				one.bytes, one.from = max(one.bytes, *part.size), one.from+", where it was full"
				if plan.ownLimits(i) {
					one.limits.raiseTo(part.own.or(given.Limits))
				}
			}
			if one.bytes > all.bytes || all.from == "" {
				all.bytes, all.from = one.bytes, one.from
			}
			all.limits.raiseTo(one.limits)
			most[part.key] = all
		}
	}
	plan = plan.fit(most)
	for i := range plan.Quotas {
		plan.Quotas[i].fit(i, reports)
	}
	plan.holdQuotas()
	plan.Limits.dropUsual()
	return plan, plan.check()
}

// fit sets the size and the tenants' limit that the reports show for the plan's quota of an index.
// A quota that was never used stays as planned.
func (q *QuotaPlan) fit(index int, reports []Report) {
	var size, tenant uint64
	for _, report := range reports {
		if index >= len(report.Quotas) {
			continue // a report of an earlier version
		}
		r, given := report.Quotas[index], report.Plan.Quotas[index]
		isShort := !given.Observe && (r.Fulls != 0 || r.waits().Waited|uint64(r.waits().Waiting) != 0)
		if size = max(size, r.Peak); isShort {
			size = max(size, given.Size)
		}
		for _, u := range r.Labels {
			tenant = max(tenant, u.Peak)
		}
		if isShort && given.Tenants != 0 {
			tenant = max(tenant, given.tenant())
		}
	}
	q.size(size, min(tenant, size))
}

// size sets sizes that aren't 0, in whole pieces.
func (q *QuotaPlan) size(size, tenant uint64) {
	piece := max(q.Piece, 1)
	if size != 0 {
		q.Size = roundUp(min(size, planHeapMax), piece)
	}
	if tenant != 0 {
		q.Tenant = roundUp(min(tenant, planHeapMax), piece)
	}
	if q.Tenant = min(q.Tenant, q.Size); q.Tenant == q.Size {
		q.Tenant = 0
	}
}

// need is the highest need of a part's arenas.
type need struct {
	bytes  uint64 // its peak; 0: not used
	limits Limits // at least 1 each
	full   bool   // bytes don't suffice
	// the end of a region's note after the bytes; "": the note stays
	from string
}

// needs returns the need of each part of the report's plan, by its key.
func (r Report) needs() map[string]need {
	needs, arenas := map[string]need{}, r.Arenas
	for _, part := range r.Plan.sized() {
		n := need{limits: Limits{1, 1, 1, 1}}
		for _, a := range arenas[:part.count] {
			n.bytes, n.full = max(n.bytes, a.Peak), n.full || a.Fulls > 0
			n.limits.raiseTo(a.MostOpen)
		}
		needs[part.key], arenas = n, arenas[part.count:]
	}
	return needs
}

// fit returns the plan with sizes and limits of needs. An unused part stays as planned.
func (p Plan) fit(needs map[string]need) Plan {
	p.Regions = slices.Clone(p.Regions)
	p.Limits = Limits{1, 1, 1, 1}
	for i, part := range p.sized() {
		n := needs[part.key]
		if n.bytes != 0 {
			*part.size = min(n.bytes, Rest-1) // a file may hold Rest, which is no size
		}
		if !p.ownLimits(i) {
			p.Limits.raiseTo(n.limits)
		} else if n.bytes != 0 {
			p.Regions[i].Limits = n.limits
		}
		if i < len(p.Regions) && n.from != "" {
			p.Regions[i].Note = n.noted(n.from)
		}
	}
	return p
}

func (n need) noted(from string) string {
	if n.bytes == 0 {
		return "never used: as planned"
	}
	return fmt.Sprint(n.bytes) + from
}

// ownLimits reports whether a fitted plan sets limits for only this part, because each slot of a
// region pays for them.
func (p Plan) ownLimits(part int) bool {
	return part < len(p.Regions) && (p.Regions[part].Slots != 0 || p.Regions[part].Limits != Limits{})
}

// widen raises the size of each part of p, each limit, the C heap's size, and the numbers of slots,
// buffers, workers and scratch arenas, to at least those of other. Everything else stays, so a
// Plan.Size may then be too small. Both plans need their defaults filled in, and the same regions:
// equal names in the same order, each with slots in both plans or in neither. Otherwise widen
// returns an error with the difference. No other plan may share p.Regions.
func (p *Plan) widen(other Plan) error {
	differs := func(key string, have, want any) error {
		return fmt.Errorf("%s is %v, but %v in the first", key, have, want)
	}
	if len(p.Regions) != len(other.Regions) {
		return differs("the number of regions", len(other.Regions), len(p.Regions))
	}
	for i, r := range other.Regions {
		own := &p.Regions[i]
		switch {
		case r.Name != own.Name:
			return differs(fmt.Sprintf("regions[%d].name", i), jsonfile.Quote(r.Name), jsonfile.Quote(own.Name))
		case (r.Slots == 0) != (own.Slots == 0):
			return differs(fmt.Sprintf("regions[%d].slots", i), r.Slots, own.Slots)
		case own.Limits != r.Limits: // a limit of 0 is the plan's
			own.Limits = own.Limits.or(p.Limits)
			own.Limits.raiseTo(r.Limits.or(other.Limits))
		}
		own.Slots, own.Size = max(own.Slots, r.Slots), max(own.Size, r.Size)
	}
	p.CHeap.Size = max(p.CHeap.Size, other.CHeap.Size)
	if len(p.Quotas) != len(other.Quotas) {
		return differs("the number of quotas", len(other.Quotas), len(p.Quotas))
	}
	for i, q := range other.Quotas {
		own := &p.Quotas[i]
		if q.Name != own.Name || (q.Tenants == 0) != (own.Tenants == 0) {
			return differs(own.key(), planText(&other.Quotas), planText(&p.Quotas))
		}
		if own.Tenants = max(own.Tenants, q.Tenants); own.Waiters != 0 {
			own.Waiters = max(own.Waiters, q.Waiters, own.Tenants+1)
		}
		own.Piece = max(own.Piece, q.Piece)
		own.Size, own.Tenant = max(own.Size, q.Size), max(own.Tenant, q.Tenant)
	}
	p.Limits.raiseTo(other.Limits)
	f, s := &p.Frame, &p.Scratch
	*f = FramePlan{Buffers: max(f.Buffers, other.Frame.Buffers), Size: max(f.Size, other.Frame.Size)}
	*s = ScratchPlan{Workers: max(s.Workers, other.Scratch.Workers), Each: max(s.Each, other.Scratch.Each),
		Size: max(s.Size, other.Scratch.Size)}
	return nil
}

// Headroom returns the plan with each size of regions, frame, scratch arenas and quotas raised by
// percent and rounded up to whole KiB. Headroom also raises each limit of the plan and of regions
// that isn't 0, up to 65535. The numbers of slots, buffers and workers, the Go heap and the C heap
// stay, but a Go heap holds the quotas in it. A Size that isn't 0 grows with the parts, and a
// region with the Rest grows with it. A size that becomes too large for a plan doesn't wrap;
// [Plan.Check] reports it. A negative percent is a caller's bug and panics.
func (p Plan) Headroom(percent int) Plan {
	if percent < 0 {
		panic(fmt.Sprintf("budget: BUG: Headroom of %d percent", percent))
	}
	p.Regions, p.Quotas = slices.Clone(p.Regions), slices.Clone(p.Quotas)
	for i := range p.Quotas {
		q := &p.Quotas[i]
		raised := func(size uint64) uint64 { return min(withHeadroom(size, percent, KiB), planHeapMax) }
		tenant := q.Tenant
		if tenant != 0 {
			tenant = raised(tenant)
		}
		q.size(raised(q.Size), tenant)
	}
	p.holdQuotas()
	rest := p.rest()
	if rest >= 0 {
		size := planRound(p.Size)
		p.Regions[rest].Size = size - min(size, p.total())
	}
	for _, part := range p.sized() {
		*part.size = withHeadroom(*part.size, percent, KiB)
	}
	if p.Size != 0 {
		p.Size = max(withHeadroom(p.Size, percent, KiB), p.total())
	}
	if rest >= 0 {
		p.Regions[rest].Size = Rest
	}
	p.Limits.grow(percent)
	for i := range p.Regions {
		p.Regions[i].Limits.grow(percent)
	}
	return p
}

func (l *Limits) grow(percent int) {
	for _, limit := range l.byKey() {
		if *limit.value > 0 {
			*limit.value = int(min(withHeadroom(uint64(*limit.value), percent, 1), planLimitMax))
		}
	}
}

// withHeadroom returns n raised by percent, rounded up to a multiple. A result that is too large
// becomes Rest - 1.
func withHeadroom(n uint64, percent int, multiple uint64) uint64 {
	const tooLarge = Rest - 1
	high, low := bits.Mul64(n, uint64(percent))
	if high >= 100 {
		return tooLarge
	}
	more, rest := bits.Div64(high, low, 100)
	if n >= tooLarge-multiple || more >= tooLarge-multiple-n {
		return tooLarge
	}
	if rest > 0 {
		more++
	}
	return (n + more + multiple - 1) / multiple * multiple
}
