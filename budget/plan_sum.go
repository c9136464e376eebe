package budget

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// planSum adds up parts of a plan as they are laid out, without tables. For example, with guards, a
// region of 100 KiB and a frame of two buffers of 10 KiB make 3 arenas with 120 KiB of bytes and
// 192 KiB of guards. Each arena is rounded up to 64 KiB, so whole is (128 + 64) + 2 * (64 + 64) =
// 448 KiB.
type planSum struct {
	arenas       uint64 // each slot, buffer and scratch arena is one
	slots, pools uint64 // scopes and pools of all arenas; 0 unless defaults are filled in
	bytes        uint64 // of all arenas
	guards       uint64 // bytes: one guard after each arena
	whole        uint64 // bytes, each arena rounded up to 64 KiB, and guards
}

// sum adds up parts of the plan; a region with the Rest counts as empty. pre: sizes and counts are
// within their bounds.
func (p Plan) sum(parts ...sizedPart) (sum planSum) {
	for _, part := range parts {
		size, limits := *part.size, part.own.or(p.Limits)
		if size == Rest {
			size = 0
		}
		sum.arenas += part.count
		sum.slots += part.count * planCount(limits.Scopes)
		sum.pools += part.count * planCount(limits.Pools)
		sum.bytes += part.count * size
		sum.guards += part.count * p.guard()
		sum.whole += part.count * (planRound(size) + p.guard())
	}
	return sum
}

// tables returns the tables of the arenas.
func (sum planSum) tables() arena_c.Tables {
	return arena_c.MapTables(sum.arenas, sum.slots, sum.pools)
}

// tablesSize returns the bytes below the parts as laid out: the tables, and a guard.
func (p Plan) tablesSize() uint64 {
	p = p.withLimits()
	return planRound(p.sum(p.sized()...).tables().Size) + p.guard()
}

// total returns the bytes of all parts as laid out; at most Size if the plan has one. pre: the plan
// is resolved.
func (p Plan) total() uint64 { return p.sum(p.sized()...).whole }

func (p Plan) arenaCount() uint64 { return p.sum(p.sized()...).arenas }

// ofKind returns the bytes of all parts of a kind, without their guards.
func (p Plan) ofKind(kind uint64) uint64 {
	sum := p.sum(slices.DeleteFunc(p.sized(), func(part sizedPart) bool { return part.kind != kind })...)
	return sum.whole - sum.guards
}

func (p Plan) guard() uint64 {
	if p.Pages.Guards.asks() {
		return planEdge
	}
	return 0
}

// rest returns the index of the region with the Rest, or -1.
func (p Plan) rest() int {
	return slices.IndexFunc(p.Regions, func(r RegionPlan) bool { return r.Size == Rest })
}

// resolved returns a checked plan as it is laid out: with a size for the region with the Rest, and
// every default filled in. With a Rest the plan's size is rounded up, because the parts then fill
// it exactly.
func (p Plan) resolved() Plan {
	p.Regions, p.Quotas, p.Expected = slices.Clone(p.Regions), slices.Clone(p.Quotas), slices.Clone(p.Expected)
	if rest := p.rest(); rest >= 0 {
		p.Size = planRound(p.Size)
		p.Regions[rest].Size = p.Size - p.total()
	}
	if p.Scratch.Workers != 0 {
		p.Scratch.Each = cmp.Or(p.Scratch.Each, planEachUsual)
	}
	p = p.withLimits()
	p.Pages = p.Pages.orDefault(p.Base)
	return p
}

func (p Pages) orDefault(base uint64) Pages {
	usual := Off
	if base != 0 {
		usual = Wished
	}
	return Pages{Prefault: cmp.Or(p.Prefault, Wished), Lock: cmp.Or(p.Lock, Off), Huge: cmp.Or(p.Huge, Off),
		Guards: cmp.Or(p.Guards, Off), Base: cmp.Or(p.Base, usual)}
}

// withLimits returns the plan with all default limits. Slots have lower ones, because each of the
// many slots has tables of its own.
func (p Plan) withLimits() Plan {
	p.Regions = slices.Clone(p.Regions)
	usual := Limits{Scopes: 16, Pools: 16, Owned: 32, Labels: 8}
	for i, limit := range p.Limits.byKey() {
		if *limit.value != 0 { // that of slots as well
			*usual.byKey()[i].value = 0
		}
	}
	for i := range p.Regions {
		if r := &p.Regions[i]; r.Slots != 0 {
			r.Limits = r.Limits.or(usual)
		}
	}
	p.Limits = p.Limits.orDefault()
	return p
}

func (l Limits) orDefault() Limits {
	return l.or(Limits{Scopes: 64, Pools: 64, Owned: 256, Labels: 32})
}

// or returns l with other's limits in place of zeros.
func (l Limits) or(other Limits) Limits {
	return Limits{Scopes: cmp.Or(l.Scopes, other.Scopes), Pools: cmp.Or(l.Pools, other.Pools),
		Owned: cmp.Or(l.Owned, other.Owned), Labels: cmp.Or(l.Labels, other.Labels)}
}

// quotaBytes returns the bytes of the quotas that no other part of the process's memory has.
func (p Plan) quotaBytes() (bytes uint64) {
	for _, q := range p.Quotas {
		if q.In == "" {
			bytes += q.Size
		}
	}
	return bytes
}

// planRound rounds a size up to a multiple of 64 KiB, as an arena of that size is laid out.
func planRound(size uint64) uint64 { return roundUp(size, planEdge) }

// roundUp rounds a size up to a multiple of a power of two.
func roundUp(size, to uint64) uint64 { return (size + to - 1) &^ (to - 1) }

// sizedPart is a part of a plan with one size: a region with its slots, the buffers of the frame,
// the scratch arenas.
type sizedPart struct {
	part  string  // name in reports: the region's name, "frame", "scratch"
	of    string  // kind of its arenas in reports: "region", "slot", "frame", "scratch"
	key   string  // of the size: "regions[2].size"
	size  *uint64 // in the plan
	count uint64  // arenas of that size; 0 in an invalid plan
	kind  uint64  // kind of its arenas in the core
	name  func(arena int) string
	own   Limits            // the region's own limits
	keys  map[string]string // of the tables of these limits, by the limit's name
}

const frameSizeKey, scratchSizeKey, cHeapKey = "frame.size", "scratch.size", "c_heap"

func regionSizeKey(index int) string { return fmt.Sprintf("regions[%d].size", index) }

// regionLimitsKey returns the prefix of the keys of a region's limits.
func regionLimitsKey(index int) string { return fmt.Sprintf("regions[%d].limits.", index) }

// keys returns the keys of the limits that aren't 0, by the limit's name.
func (l Limits) keys(prefix string) (keys map[string]string) {
	for _, limit := range l.byKey() {
		if *limit.value != 0 {
			if keys == nil {
				keys = map[string]string{}
			}
			keys[limit.key] = prefix + limit.key
		}
	}
	return keys
}

// sized returns the parts of the plan in the order of their arenas. Sizes point into the plan, so
// it must own its regions (see slices.Clone).
func (p *Plan) sized() (parts []sizedPart) {
	for i := range p.Regions {
		r := &p.Regions[i]
		of, slots := "region", uint64(1)
		if r.Slots != 0 {
			of, slots = "slot", max(1, planCount(r.Slots))
		}
		parts = append(parts, sizedPart{r.Name, of, regionSizeKey(i), &r.Size, slots, arena_c.KindRegion, r.slotName,
			r.Limits, r.Limits.keys(regionLimitsKey(i))})
	}
	if f := &p.Frame; *f != (FramePlan{}) {
		name := func(buffer int) string { return fmt.Sprintf("frame %d", buffer) }
		parts = append(parts, sizedPart{part: "frame", of: "frame", key: frameSizeKey, size: &f.Size,
			count: planCount(f.Buffers), kind: arena_c.KindFrame, name: name})
	}
	if s := &p.Scratch; *s != (ScratchPlan{}) {
		name := func(i int) string { return fmt.Sprintf("scratch %d.%d", i/s.Each, i%s.Each) }
		arenas := planCount(s.Workers) * planCount(cmp.Or(s.Each, planEachUsual))
		parts = append(parts, sizedPart{part: "scratch", of: "scratch", key: scratchSizeKey, size: &s.Size,
			count: arenas, kind: arena_c.KindScratch, name: name})
	}
	return parts
}

func (r *RegionPlan) slotName(slot int) string {
	if r.Slots == 0 {
		return r.Name
	}
	return fmt.Sprintf("%s %d", r.Name, slot)
}

// largest returns the key and size of the largest part, for messages.
func (p Plan) largest() string {
	key, size, most := "size", p.Size, p.Size-min(p.Size, p.total()) // unplanned space
	for _, part := range p.sized() {
		if all := p.sum(part); all.whole-all.guards > most {
			key, size, most = part.key, *part.size, all.whole-all.guards
		}
	}
	return fmt.Sprintf("%s (%s)", key, sizeInPlan(size))
}

// planCount returns a count as a factor: 0 for a negative one, which Check refuses.
func planCount(count int) uint64 { return uint64(max(0, count)) }

func (l *Limits) raiseTo(other Limits) {
	l.Scopes, l.Pools = max(l.Scopes, other.Scopes), max(l.Pools, other.Pools)
	l.Owned, l.Labels = max(l.Owned, other.Owned), max(l.Labels, other.Labels)
}

// dropUsual sets each limit up to the default to 0.
func (l *Limits) dropUsual() {
	usual := Limits{}.orDefault()
	for i, limit := range l.byKey() {
		if *limit.value <= *usual.byKey()[i].value {
			*limit.value = 0
		}
	}
}

// layout is a plan in bytes, added up once.
type layout struct {
	plan   Plan
	sum    planSum
	tables arena_c.Tables
	bottom uint64 // end of the tables, rounded up to 64 KiB; a guard may follow
	size   uint64 // of all parts, tables included
	goRest bool   // the plan's GoHeap was a Rest
}

// guardBytes returns the bytes of a map's guards: one after each arena, and one after the tables.
func guardBytes(m *arena_c.Map) uint64 { return (m.Rows + 1) * m.Guard }

// sizeEnd is larger than any budget: the core's bound, or on 32-bit targets the bound of slices and
// of distances between pointers.
const sizeEnd = min(arena_c.OffsetMax, math.MaxInt+1-arena_c.Edge)

// layout returns the layout of a resolved plan. The C core counts the tables, layout adds the rest.
// MapInit and a test hold that both agree with the core's map.
func (p Plan) layout() (l layout, err error) {
	l.plan, l.sum = p, p.sum(p.sized()...)
	l.tables = l.sum.tables()
	l.bottom = planRound(l.tables.Size)
	l.size = l.bottom + p.guard() + max(l.sum.whole, planRound(p.Size))
	if l.size >= sizeEnd {
		return l, fmt.Errorf("the plan and its tables need %s or more; lower %s or limits", sizeInPlan(sizeEnd),
			p.largest())
	}
	return l, nil
}

// memory returns the bytes that become memory when the whole layout is used, in pages of a size:
// arenas and tables. With huge pages, padding, guards and unplanned space also become memory.
func (l layout) memory(page uint64) (bytes uint64) {
	if l.plan.Pages.Huge.asks() {
		return l.size
	}
	for _, part := range l.pages(page) {
		bytes += part.Size
	}
	return bytes
}

// parts returns the pages of arenas and tables; nil means all pages.
func (l layout) parts() []platform.PageRun {
	if l.plan.Pages.Huge.asks() {
		return nil
	}
	return l.pages(uint64(os.Getpagesize()))
}

// pages returns the pages that hold a control word or an arena, in order and merged. The head of
// the tables has space for larger counts, which is only addresses.
func (l layout) pages(page uint64) (list []platform.PageRun) {
	end := uint64(0)
	add := func(from, size uint64) {
		to := roundUp(from+size, page)
		from = max(from&^(page-1), end)
		switch {
		case to <= from:
			return
		case end != 0 && from == end:
			list[len(list)-1].Size += to - from
		default:
			list = append(list, platform.PageRun{Offset: from, Size: to - from})
		}
		end = to
	}
	add(0, uint64(unsafe.Sizeof(arena_c.Map{}))+l.sum.arenas*uint64(unsafe.Sizeof(arena_c.Row{})))
	add(l.tables.Headers, l.sum.pools*uint64(unsafe.Sizeof(arena_c.Pool{})))
	add(l.tables.Head, l.tables.Size-l.tables.Head)
	start := l.bottom + l.plan.guard()
	for _, part := range l.plan.sized() {
		for range part.count {
			add(start, *part.size)
			start += planRound(*part.size) + l.plan.guard()
		}
	}
	return list
}

// Cost is the most memory that a budget uses of a machine, in bytes, and the addresses of its
// parts. Report.Reserved may have more addresses. Only the GoHeap of an open budget with a [Rest]
// depends on the machine.
type Cost struct {
	// Addresses is the budget's address space: arenas, tables, padding to 64 KiB, guards, and
	// unplanned space.
	Addresses uint64 `json:"addresses"`
	// Resident4K is the maximum that is resident with pages of 4 KiB: arenas and tables.
	Resident4K  uint64 `json:"resident_4k"`
	Resident64K uint64 `json:"resident_64k"` // the same with pages of 64 KiB
	// GoHeap is outside the budget: the plan's go_heap, or an estimate of the arenas' tables there
	// if that is larger. If the plan's go_heap is the [Rest], GoHeap is the least that Open
	// accepts, and after Open the number that Open computed.
	GoHeap uint64 `json:"go_heap"`
	CHeap  uint64 `json:"c_heap,omitempty"` // outside the budget: the memory of C's malloc
	// Quotas is outside the budget: the quotas of memory of the process that no other part has.
	Quotas uint64 `json:"quotas,omitempty"`
}

// Cost returns the most that a budget of the plan takes: addresses, which cost nothing by
// themselves, resident memory, and the share of the Go heap. With huge pages all addresses may
// become resident. Cost fails, as Open does, if the plan is invalid or can't be laid out.
func (p Plan) Cost() (Cost, error) {
	if err := p.check(); err != nil {
		return Cost{}, err
	}
	l, err := p.resolved().layout()
	if err != nil {
		return Cost{}, err
	}
	return l.cost(), nil
}

func (l layout) cost() Cost {
	return Cost{Addresses: l.size, Resident4K: l.memory(4 * KiB), Resident64K: l.memory(64 * KiB),
		GoHeap: l.plan.goShare(), CHeap: l.plan.CHeap.Size, Quotas: l.plan.quotaBytes()}
}

// String returns the cost as one line of text.
func (c Cost) String() string {
	text := fmt.Sprintf("%s of addresses, %s resident at most (pages of 64 KiB: %s), Go heap %s", SizeText(c.Addresses),
		SizeText(c.Resident4K), SizeText(c.Resident64K), SizeText(c.GoHeap))
	if c.CHeap != 0 {
		text += ", C heap " + SizeText(c.CHeap)
	}
	if c.Quotas != 0 {
		text += ", quotas " + SizeText(c.Quotas)
	}
	return text
}

// arenas returns the plan for the core's map: regions bottom-up, then frame and scratch.
func (p Plan) arenas() (list []arena_c.Arena) {
	add := func(name string, part sizedPart, siblings uint64) {
		a := arena_c.Arena{Kind: part.kind, Size: *part.size, Siblings: siblings, Slots: planCount(part.own.Scopes),
			Pools: planCount(part.own.Pools)}
		copy(a.Name[:len(a.Name)-1], name)
		list = append(list, a)
	}
	for i, part := range p.sized() {
		if part.kind == arena_c.KindRegion {
			add(p.Regions[i].Name, part, part.count)
			continue
		}
		for k := range int(part.count) {
			add(part.name(k), part, 1)
		}
	}
	return list
}
