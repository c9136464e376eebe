package budget

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// Suggest makes a plan of recorded reports: what programs in the field needed at most, and nothing beyond (Headroom adds
// some). The reports' plans have regions of the same names in the same order, with slots or without. Their sizes may differ, and
// so may their names.
//
// Each size is the highest Peak in the reports, of slots, buffers and scratch arenas the highest of the
// siblings. A peak of 0 is no measure: the part wasn't used, or its use wasn't published when the report was
// made (Published). Such a part has the largest size that the reports' plans gave it. Of a part that was full
// (Fulls) the peak says too little, for what was refused isn't in it, nor what would have come after that: it
// has no less than the plan of that report gave it. It may need more; LastFull says what it asked for last.
//
// Slots, buffers, workers and their scratch arenas are as many as at most in the plans. Limits are the default, or the
// highest MostOpen where that is more. A region with slots, and one that has limits in a plan, has limits of its own: the
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
	plan := reports[0].Plan.resolved()
	plan.Size = 0
	for n, report := range reports {
		err := report.Plan.check()
		if err == nil {
			err = plan.Widen(report.Plan.resolved()) // with a size for what takes the rest
		}
		if planned := report.Plan.arenaCount(); err == nil && planned != uint64(len(report.Arenas)) {
			err = fmt.Errorf("has figures of %d regions, slots, buffers and scratch arenas; its plan has %d", len(report.Arenas), planned)
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
	plan.Limits.dropUsual()
	return plan, plan.check()
}

// need is what a part needs: the highest of its arenas.
type need struct {
	bytes  uint64 // its peak; 0: it wasn't used
	limits Limits // at least 1 each
	full   bool   // it needs more
	from   string // of a region, what its note says of the bytes; "": it keeps its own
}

// needs are what the parts of the report's plan needed, by their keys.
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

// fit is the plan with sizes and limits of what its parts need. A part that wasn't used stays as planned.
func (p Plan) fit(needs map[string]need) Plan {
	p.Regions = slices.Clone(p.Regions)
	p.Limits = Limits{1, 1, 1, 1}
	for i, part := range p.sized() {
		n := needs[part.key]
		if n.bytes != 0 {
			*part.size = min(n.bytes, Rest-1) // Rest is no size, whatever a file says
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

// noted is the note of a region that needs so many bytes, which are from somewhere.
func (n need) noted(from string) string {
	if n.bytes == 0 {
		return "never used: as planned"
	}
	return fmt.Sprint(n.bytes) + from
}

// ownLimits reports whether a fitted plan has limits of the part's own: each slot of a region pays for them.
func (p Plan) ownLimits(part int) bool {
	return part < len(p.Regions) && (p.Regions[part].Slots != 0 || p.Regions[part].Limits != Limits{})
}

// Widen makes each size and limit of p at least as large as that of another plan, and gives it as many slots, buffers, workers
// and scratch arenas. All else stays. Both have their defaults filled in, and regions of the same names in the same order, with
// slots or without: else the error says where they differ. p shares no regions with other plans.
func (p *Plan) Widen(other Plan) error {
	differs := func(key string, have, want any) error {
		return fmt.Errorf("%s is %v, and in the first %v", key, have, want)
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
		case own.Limits != r.Limits: // what a region doesn't give is its plan's
			own.Limits = own.Limits.or(p.Limits)
			own.Limits.raiseTo(r.Limits.or(other.Limits))
		}
		own.Slots, own.Size = max(own.Slots, r.Slots), max(own.Size, r.Size)
	}
	p.Limits.raiseTo(other.Limits)
	f, s := &p.Frame, &p.Scratch
	*f = FramePlan{Buffers: max(f.Buffers, other.Frame.Buffers), Size: max(f.Size, other.Frame.Size)}
	*s = ScratchPlan{Workers: max(s.Workers, other.Scratch.Workers), Each: max(s.Each, other.Scratch.Each), Size: max(s.Size, other.Scratch.Size)}
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
