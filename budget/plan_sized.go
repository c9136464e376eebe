package budget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// sizedPart is what has one size in a plan: a region with its slots, the buffers of the frame, the scratch arenas.
type sizedPart struct {
	key   string  // of the size: "regions[2].size"
	size  *uint64 // in the plan
	count uint64  // arenas of that size; 0 in a faulty plan
	kind  uint64  // of these arenas
}

// The keys of sizes.
const frameSizeKey, scratchSizeKey = "frame.size", "scratch.size"

func regionSizeKey(index int) string { return fmt.Sprintf("regions[%d].size", index) }

// sized are the parts of the plan in the order of their arenas. The plan's regions are its own (see slices.Clone).
func (p *Plan) sized() (parts []sizedPart) {
	for i := range p.Regions {
		slots := max(1, planCount(p.Regions[i].Slots))
		parts = append(parts, sizedPart{regionSizeKey(i), &p.Regions[i].Size, slots, arena_c.KindRegion})
	}
	if p.Frame != (FramePlan{}) {
		parts = append(parts, sizedPart{frameSizeKey, &p.Frame.Size, planCount(p.Frame.Buffers), arena_c.KindFrame})
	}
	if p.Scratch != (ScratchPlan{}) {
		parts = append(parts, sizedPart{scratchSizeKey, &p.Scratch.Size, p.Scratch.arenas(),
			arena_c.KindScratch})
	}
	return parts
}

// largest names the key whose part takes the most, and its size, for messages.
func (p Plan) largest() string {
	key, size, most := "size", p.Size, p.Size-min(p.Size, p.total()) // what no part has
	for _, part := range p.sized() {
		if all := p.sum(part); all.Bytes+all.Edges > most {
			key, size, most = part.key, *part.size, all.Bytes+all.Edges
		}
	}
	return fmt.Sprintf("%s (%s)", key, sizeText(size))
}

// arenas is their number, of all workers.
func (s ScratchPlan) arenas() uint64 {
	return planCount(s.Workers) * planCount(cmp.Or(s.Each, planEachUsual))
}

// planCount is a count as a factor; a negative one is a fault, and nothing.
func planCount(count int) uint64 { return uint64(max(0, count)) }

// byKey are the limits by their keys.
func (l *Limits) byKey() []struct {
	key   string
	limit *int
} {
	return []struct {
		key   string
		limit *int
	}{{"limits.scopes", &l.Scopes}, {"limits.pools", &l.Pools}, {"limits.owned", &l.Owned}, {"limits.labels", &l.Labels}}
}

// raiseTo makes each limit at least that of the other.
func (l *Limits) raiseTo(other Limits) {
	l.Scopes, l.Pools = max(l.Scopes, other.Scopes), max(l.Pools, other.Pools)
	l.Owned, l.Labels = max(l.Owned, other.Owned), max(l.Labels, other.Labels)
}

// dropUsual makes each limit that is no more than the default the default.
func (l *Limits) dropUsual() {
	usual := Limits{}.orDefault()
	for i, limit := range l.byKey() {
		if *limit.limit <= *usual.byKey()[i].limit {
			*limit.limit = 0
		}
	}
}

// peaks are what each sized part of the report's plan needed, the highest over its arenas, and the limits that were
// needed, at least 1 each. An error says that the report isn't of its plan.
func (r Report) peaks() (sizes []uint64, limits Limits, err error) {
	arenas := slices.Concat(r.Regions, r.Beside)
	limits = Limits{1, 1, 1, 1}
	if planned := r.Plan.arenaCount(); planned != uint64(len(arenas)) {
		return nil, limits, fmt.Errorf("has figures of %d regions, slots, buffers and scratch arenas; its plan has %d",
			len(arenas), planned)
	}
	for _, part := range r.Plan.sized() {
		peak := uint64(0)
		for _, arena := range arenas[:part.count] {
			peak = max(peak, arena.Peak)
			limits.raiseTo(arena.MostOpen)
		}
		arenas = arenas[part.count:]
		sizes = append(sizes, peak)
	}
	return sizes, limits, nil
}
