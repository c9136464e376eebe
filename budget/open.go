package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Open checks the plan, reserves all memory of the plan and lays it out. After that the budget asks
// the system for no memory until Close, except in Reconfigure. By default Open makes every page of
// arenas and tables present, if the system grants this ([Pages]).
func Open(plan Plan) (*Budget, error) { return openPlan(plan, fromSystem) }

// OpenIn is [Open] in a block of the caller, such as static memory, memory of C, or a slice of
// another budget. The block needs [Plan.Need] bytes. The caller decides whether the block's pages
// are present.
//
// Until Close returns, the block belongs to the budget, and reading or writing it directly is a
// bug. After Close, old handles of the budget stay dead until the block gets another use. To open
// the block again while old handles exist, use the same plan: a plan with tables of another size is
// another use.
func OpenIn(block []byte, plan Plan) (*Budget, error) {
	return openPlan(plan, func(p Plan, l layout) (grant, error) { return fromBlock(block, p, l) })
}

// OpenScratch opens a budget of only scratch: for each worker two arenas of size bytes. A numbered
// worker uses [Budget.Scratch]; a goroutine that comes and goes uses [Budget.Lease].
func OpenScratch(workers int, size uint64) (*Budget, error) {
	return Open(Plan{Name: "scratch", Scratch: ScratchPlan{Workers: workers, Size: size}})
}

func openPlan(plan Plan, from func(Plan, layout) (grant, error)) (*Budget, error) {
	b, l, err := newBudget(plan)
	if err != nil {
		return nil, err
	}
	f := &b.follow
	if plan.GoHeap == Rest {
		if f.heap, f.shares, err = b.plan.goRest(l, b.plan.keeps(l), readLimits()); err != nil {
			return nil, fmt.Errorf("budget %q: %w", plan.Name, err)
		}
		b.plan.GoHeap, l.plan.GoHeap, l.goRest = f.heap.Limit, f.heap.Limit, true
	}
	restore, err := f.takeGoShare(l)
	if err != nil {
		return nil, err
	}
	b.restoreGo = restore
	if err := b.layOut(l, from); err != nil {
		restore()
		return nil, fmt.Errorf("budget %q: %w", plan.Name, err)
	}
	_, bound := b.plan.leastRest(f.shares)
	if isMachines(bound) && f.heap.Limit == b.plan.GoHeap { // no operator's limit is lower
		b.refused = append(b.refused, fmt.Sprintf(`go_heap: "rest" is %s of the machine's memory, as no lower limit `+
			"is in force: the collector may not run before the Go heap has as much; set go_heap_max, or a limit of "+
			"the process", SizeText(f.heap.Limit)))
	}
	s := readMetrics(metricCycles, metricAllocs)
	b.cycles, b.allocated = s[0].Value.Uint64(), s[1].Value.Uint64()
	b.followLimits(l)
	return b, nil
}

// newBudget checks the plan and lays it out.
func newBudget(plan Plan) (b *Budget, l layout, err error) {
	if err := plan.check(); err != nil {
		return nil, l, err
	}
	b = &Budget{plan: plan.resolved(), left: newLeftOpen()}
	for i, q := range b.plan.Quotas {
		b.quotas = append(b.quotas, newQuota(b, q, "quota "+q.Name, q.key(), i))
	}
	if l, err = b.plan.layout(); err != nil {
		return nil, l, fmt.Errorf("budget %q: %w", plan.Name, err)
	}
	return b, l, nil
}

func (b *Budget) layOut(l layout, from func(Plan, layout) (grant, error)) (err error) {
	if b.grant, err = from(b.plan, l); err != nil {
		return err
	}
	if b.makeTable(l); b.table == nil {
		return errors.Join(errors.New("BUG: the C core refuses the plan's map"), b.memory.Release())
	}
	if err := b.want("guards", b.plan.Pages.Guards, b.protectGuards); err != nil {
		return errors.Join(err, b.giveBack())
	}
	if err := b.openMirror(b.plan.Name); err != nil {
		return errors.Join(err, b.giveBack())
	}
	b.makeStacks(stack.Start)
	b.watchUse()
	b.leases = newLeases(b.plan, b.scratches, b.left, &b.published)
	b.leases.whole = b
	if len(b.frame) > 0 {
		b.current = scope.At(b.frame[0].Open(0, frameScope))
	}
	b.published.begin(b.stacks, len(b.regions), len(b.frame))
	b.track(b.regions)
	b.trimKeys()
	b.measure()
	if err := b.openCHeap(); err != nil {
		return errors.Join(err, b.drop())
	}
	b.watchFaults()
	return nil
}

// drop ends the work of layOut when its last step fails.
func (b *Budget) drop() error {
	for _, st := range b.stacks {
		st.Drop()
	}
	return errors.Join(b.untrack(b.regions), b.closeMirror(), b.giveBack())
}

// makeTable writes the map at the bottom of the memory, and touches no other byte.
func (b *Budget) makeTable(l layout) {
	b.table = arena_c.MapInit(b.memory.Base(), l.size, b.plan.arenas(), uint64(b.plan.Limits.Scopes),
		uint64(b.plan.Limits.Pools), b.plan.guard())
	if b.table != nil {
		b.shape, b.cost = *b.table, l.cost()
	}
}

// makeStacks makes the Go side of each arena of the map; start binds it to its row.
func (b *Budget) makeStacks(start func(stack.Config, *arena_c.Row) *stack.Stack) {
	for level, part := range b.plan.sized() {
		for i := range int(part.count) {
			name := part.name(i)
			switch part.kind {
			case arena_c.KindRegion:
				st := b.makeStack("region "+name, part, i, 1, start)
				st.CountScopes()
				b.addRegion(level, i, st)
			case arena_c.KindFrame:
				st := b.makeStack(name, part, i, 1, start)
				st.CountScopes()
				b.frame = append(b.frame, st)
			case arena_c.KindScratch:
				st := b.makeStack(name, part, i, 0, start)
				// not counted by scope: scratch scopes close as fast as possible
				b.scratches = append(b.scratches, st)
			}
		}
	}
	b.stackRegions()
}

// stackRegions sets the regions that stand on each region.
func (b *Budget) stackRegions() {
	var starts []int // of each region of the plan, the index of its first slot, or its own
	for _, r := range b.regions {
		if r.slot <= 0 {
			starts = append(starts, r.index)
		}
	}
	starts = append(starts, len(b.regions))
	for _, r := range b.regions {
		if r.slot > 0 {
			r.above = b.regions[r.index-1].above
		} else {
			r.above = b.regions[starts[r.level+1]:starts[b.plan.end(r.level)]]
		}
	}
}

func (b *Budget) makeStack(name string, part sizedPart, index, base int,
	start func(stack.Config, *arena_c.Row) *stack.Stack) *stack.Stack {
	limits := part.own.or(b.plan.Limits)
	st := start(stack.Config{Budget: b.plan.Name, Arena: name, Part: part.part, Index: index, Kind: part.of,
		Key: part.key, TableKeys: part.keys, Owned: limits.Owned, Names: limits.Labels, Base: base,
		From: b.memory.Base(), Size: b.Size(), Pages: (*budgetPages)(b)}, b.table.Row(uint64(len(b.stacks))))
	b.stacks = append(b.stacks, st)
	return st
}

func (b *Budget) addRegion(level, slot int, st *stack.Stack) {
	planned := b.plan.Regions[level]
	r := &region{b: b, index: len(b.regions), level: level, slot: -1, name: arenaName(st), state: planned.State,
		track: planned.Track, trims: planned.Trim == TrimEmpty, trimmed: true, stack: st}
	st.Pages = (*regionPages)(r)
	b.regions = append(b.regions, r)
	if planned.Slots == 0 {
		return
	}
	if r.slot = slot; slot == 0 {
		s := &Slots{b: b, name: planned.Name, index: level}
		if planned.Waiters != 0 {
			units := QuotaPlan{Name: planned.Name, Size: uint64(planned.Slots), Waiters: planned.Waiters}
			s.queue = newQuota(b, units, "slots of region "+planned.Name, fmt.Sprintf("regions[%d]", level),
				slotsRank+level)
		}
		b.slots = append(b.slots, s)
	}
	s := b.slots[len(b.slots)-1]
	r.queue = s.queue
	s.slots = append(s.slots, r)
}

// Need returns the bytes of a block for [OpenIn], tables included, at any start address.
func (p Plan) Need() (uint64, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	l, err := p.resolved().layout()
	return l.size + arena_c.Edge, err
}
