package budget

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// Suggest makes a plan of recorded reports: what programs in the field needed at most, and nothing beyond (Headroom adds
// some). The reports' plans have the same parts: regions of the same names in the same order, with slots or without,
// as many buffers of the frame, scratch arenas or none. Their sizes may differ, and so may their names.
//
// Each size is the highest Peak in the reports, of slots, buffers and scratch arenas the highest of the
// siblings. A peak of 0 is no measure: the part wasn't used, or its use wasn't published when the report was
// made (Published). Such a part has the largest size that the reports' plans gave it. Of a part that was full
// (Fulls) the peak says too little, for what was refused isn't in it, nor what would have come after that: it
// has no less than the plan of that report gave it. It may need more; LastFull says what it asked for last.
//
// Slots, workers and their scratch arenas are as many as at most in the plans. Limits are the default, or the
// highest MostOpen where that is more. A region with slots, and one that has limits in the first plan, has limits of its own: the
// highest MostOpen of its slots, at least 1, and no less than its plan gave it where it was full. One that was never used has
// what the plans gave it. The note of a region says which report its size came from. The parts'
// sum is the plan's size: no region has the rest. All else (name, base, pages, Go heap, OnError) is the first
// plan's.
//
// Reconfigure forgets peaks: record a report before it, too.
//
// Temporaries ([scope.Scope.Temp]) begin at a line: a region that had some may need the next multiple of 64 bytes. Measure,
// which runs the plan, says so to the byte.
func Suggest(reports ...Report) (Plan, error) {
	if len(reports) == 0 {
		return Plan{}, errors.New("budget: Suggest: no reports")
	}
	plan := reports[0].Plan
	plan.Regions, plan.Size, plan.Limits = slices.Clone(plan.Regions), 0, Limits{}
	parts := plan.sized()
	needs := make([]need, len(parts))
	limits, given := make([]Limits, len(parts)), make([]Limits, len(parts))
	for n, report := range reports {
		if err := plan.suits(report); err != nil {
			return Plan{}, fmt.Errorf("budget: Suggest: report %d, %s: %w", n+1, jsonfile.Quote(report.Name), err)
		}
		peaks, most := report.peaks()
		arenas, planned := report.siblings(), report.Plan.resolved() // with a size for what takes the rest
		for i, part := range planned.sized() {
			full := slices.ContainsFunc(arenas[i], func(a ArenaReport) bool { return a.Fulls > 0 })
			needs[i].see(n, peaks[i], *part.size, full)
			limits[i].raiseTo(most[i])
			given[i].raiseTo(part.own)
			if full && part.kind == arena_c.KindRegion && plan.ownLimits(i) {
				limits[i].raiseTo(part.own.or(planned.Limits))
			}
		}
		plan.Scratch.Workers = max(plan.Scratch.Workers, report.Plan.Scratch.Workers)
		plan.Scratch.Each = max(plan.Scratch.Each, report.Plan.Scratch.Each)
		for i, r := range report.Plan.Regions {
			plan.Regions[i].Slots = max(plan.Regions[i].Slots, r.Slots)
		}
	}
	plan.limit(limits)
	plan.Limits.dropUsual()
	for i, part := range parts {
		*part.size = needs[i].size()
	}
	for i := range plan.Regions {
		plan.Regions[i].Note = needs[i].note(reports)
		if needs[i].bytes == 0 {
			plan.Regions[i].Limits = given[i]
		}
	}
	return plan, plan.check()
}

// need is what reports say that a part needs.
type need struct {
	bytes   uint64 // the highest peak, or what was planned where it was full; 0: no report says
	report  int    // that says so
	full    bool   // in that report
	planned uint64 // the largest size
}

func (n *need) see(report int, peak, planned uint64, full bool) {
	n.planned = max(n.planned, planned)
	if full {
		peak = max(peak, planned)
	}
	if peak > n.bytes {
		n.bytes, n.report, n.full = peak, report, full
	}
}

func (n *need) size() uint64 {
	if n.bytes == 0 {
		return n.planned
	}
	return min(n.bytes, Rest-1) // Rest is no size, whatever a file says
}

func (n *need) note(reports []Report) string {
	if n.bytes == 0 {
		return "never used: as planned"
	}
	text := fmt.Sprintf("%d bytes in report %d, %s", n.bytes, n.report+1, jsonfile.Quote(reports[n.report].Name))
	if n.full {
		text += ", where it was full"
	}
	return text
}

// suits says what the report's plan has that this one has not, or what is wrong with the report.
func (p Plan) suits(report Report) error {
	other := report.Plan
	if err := other.check(); err != nil {
		return err
	}
	differs := func(key string, have, want any) error {
		return fmt.Errorf("%s is %v, and in the first %v", key, have, want)
	}
	if len(p.Regions) != len(other.Regions) {
		return differs("the number of regions", len(other.Regions), len(p.Regions))
	}
	for i, r := range other.Regions {
		if first := p.Regions[i]; r.Name != first.Name {
			return differs(fmt.Sprintf("regions[%d].name", i), jsonfile.Quote(r.Name), jsonfile.Quote(first.Name))
		} else if (r.Slots == 0) != (first.Slots == 0) {
			return differs(fmt.Sprintf("regions[%d].slots", i), r.Slots, first.Slots)
		}
	}
	if p.Frame.Buffers != other.Frame.Buffers {
		return differs("frame.buffers", other.Frame.Buffers, p.Frame.Buffers)
	}
	if (p.Scratch.Workers == 0) != (other.Scratch.Workers == 0) {
		return differs("scratch.workers", other.Scratch.Workers, p.Scratch.Workers)
	}
	arenas := uint64(len(report.Arenas))
	if planned := other.arenaCount(); planned != arenas {
		return fmt.Errorf("has figures of %d regions, slots, buffers and scratch arenas; its plan has %d", arenas, planned)
	}
	return nil
}

// Headroom is the plan with each size of regions, frame and scratch arenas larger by so many percent, rounded up to whole KiB, and
// each limit that is given too, of the plan and of a region, rounded up, but at most 65535. The number of slots, buffers and workers, and the Go
// heap, stay; a Size that is given grows as the parts do, what takes the rest among them. Sizes that are too large for a plan are
// Check's to report; they never wrap. A negative percent is a caller's bug and panics.
func (p Plan) Headroom(percent int) Plan {
	if percent < 0 {
		panic(fmt.Sprintf("budget: BUG: Headroom of %d percent", percent))
	}
	p.Regions = slices.Clone(p.Regions)
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

// grow makes each limit that is given larger by so many percent.
func (l *Limits) grow(percent int) {
	for _, limit := range l.byKey() {
		if *limit.value > 0 {
			*limit.value = int(min(withHeadroom(uint64(*limit.value), percent, 1), planLimitMax))
		}
	}
}

// ownLimits reports whether a suggested or measured plan has limits of the region's own: each slot pays for them.
func (p Plan) ownLimits(region int) bool {
	return p.Regions[region].Slots != 0 || p.Regions[region].Limits != Limits{}
}

// limit gives the plan and its regions the limits that its parts need. Its regions are its own.
func (p *Plan) limit(parts []Limits) {
	p.Limits = Limits{1, 1, 1, 1}
	for i, limits := range parts {
		if i < len(p.Regions) && p.ownLimits(i) {
			p.Regions[i].Limits = limits
		} else {
			p.Limits.raiseTo(limits)
		}
	}
}

// withHeadroom is n and so many percent of it, rounded up to a multiple. What is too large is just that: below Rest.
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

// peaks are what each sized part of the report's plan needed, the highest over its arenas, and the limits, at least 1 each.
func (r Report) peaks() (sizes []uint64, limits []Limits) {
	for _, arenas := range r.siblings() {
		peak, most := uint64(0), Limits{1, 1, 1, 1}
		for _, arena := range arenas {
			peak = max(peak, arena.Peak)
			most.raiseTo(arena.MostOpen)
		}
		sizes, limits = append(sizes, peak), append(limits, most)
	}
	return sizes, limits
}

// siblings are the arenas of each sized part of the report's plan.
func (r Report) siblings() (parts [][]ArenaReport) {
	arenas := r.Arenas
	for _, part := range r.Plan.sized() {
		parts, arenas = append(parts, arenas[:part.count]), arenas[part.count:]
	}
	return parts
}
