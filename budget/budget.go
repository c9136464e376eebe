package budget

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// Errors that errors.Is finds.
var (
	ErrFull    = scope.ErrFull   // an arena or a planned table had no room: an expected answer
	ErrClosed  = scope.ErrClosed // something closed was used
	ErrLoading = errors.New("upfront: loading")
)

// Budget is the whole of the memory, reserved once. Its methods belong to the goroutine that drives the program, except
// where they say otherwise; scratch arenas belong to the workers they are given to.
type Budget struct {
	plan Plan
	grant
	table     *arena_c.Map
	regions   []*Region // bottom first, each slot one
	slots     []*Slots
	frame     []*scope.Stack
	current   scope.Scope // of the frame
	buffer    int         // the current one
	scratches []*scope.Stack
	leases    *leases // of them
	restoreGo func()
	published published
	mirror    *platform.Reservation // where the bytes lie in checked and asan builds, or nil

	mu      sync.Mutex             // guards what follows
	leaked  map[opened]scope.Scope // the scope that was counted last at each depth of an arena
	leaks   map[*scope.Stack]*leaks
	errors  []string
	errorsN int
	last    Report // as of Close
	closed  atomic.Bool
	sealed  atomic.Bool
	_       noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Open checks the plan, takes all its memory from the system and lays it out. From then on the budget asks the system
// for nothing until Close. Every page is made present, where the system grants it (Report says so).
func Open(plan Plan) (*Budget, error) { return open(plan, fromSystem) }

// OpenIn is Open in a block that the caller has: static memory, memory of C, a slice of another budget. The plan needs
// Need bytes of it. The block is the budget's until Close returned, and its handles are dead only until the block is
// used for something else. Whether its pages are present is the caller's affair. Reading or writing the block directly
// while the budget is open is a bug.
func OpenIn(block []byte, plan Plan) (*Budget, error) {
	return open(plan, func(p Plan, l layout) (grant, error) { return fromBlock(block, p, l) })
}

// OpenScratch is Open for who wants scratch alone: two scratch arenas of so many bytes for each of the
// workers. Who is known by number asks for [Budget.Scratch], a goroutine that comes and goes for a
// [Budget.Lease].
func OpenScratch(workers int, size uint64) (*Budget, error) {
	return Open(Plan{Name: "scratch", Scratch: ScratchPlan{Workers: workers, Size: size}})
}

func open(plan Plan, from func(Plan, layout) (grant, error)) (*Budget, error) {
	defer forgive()()
	if err := plan.Check(); err != nil {
		return nil, err
	}
	plan = plan.resolved()
	b := &Budget{plan: plan, leaked: map[opened]scope.Scope{}, leaks: map[*scope.Stack]*leaks{}}
	restore, err := takeGoShare(plan)
	if err != nil {
		return nil, err
	}
	b.restoreGo = restore
	if err := b.layOut(from); err != nil {
		restore()
		return nil, fmt.Errorf("budget %q: %w", plan.Name, err)
	}
	return b, nil
}

func (b *Budget) layOut(from func(Plan, layout) (grant, error)) error {
	l, err := b.plan.layout()
	if err != nil {
		return err
	}
	if b.grant, err = from(b.plan, l); err != nil {
		return err
	}
	b.table = arena_c.MapInit(b.memory.Base(), l.size, l.arenas, l.shape.Slots, l.shape.Pools, l.shape.Guard)
	if b.table == nil {
		return errors.Join(errors.New("BUG: the C core refuses the map that it measured itself"), b.memory.Release())
	}
	if err := b.want("guards", b.plan.Pages.Guards, b.protectGuards); err != nil {
		arena_c.Unpoison(b.memory.Base(), b.Size()) // it is its owner's again
		return errors.Join(err, b.memory.Release())
	}
	if err := b.openMirror(); err != nil {
		return errors.Join(err, b.memory.Release())
	}
	b.makeStacks()
	b.watchFaults()
	return nil
}

// arenas is the plan as the map wants it: regions bottom-up, then what stands beside them.
func (p Plan) arenas() (list []arena_c.Arena) {
	add := func(name string, kind, size, siblings uint64) {
		a := arena_c.Arena{Kind: kind, Size: size, Siblings: siblings}
		copy(a.Name[:arena_c.NameSize-1], name)
		list = append(list, a)
	}
	for _, r := range p.Regions {
		add(r.Name, arena_c.KindRegion, r.Size, uint64(r.Slots))
	}
	for i := range p.Frame.Buffers {
		add(frameName(i), arena_c.KindFrame, p.Frame.Size, 1)
	}
	for i := range p.Scratch.Workers * p.Scratch.Each {
		add(p.Scratch.name(i), arena_c.KindScratch, p.Scratch.Size, 1)
	}
	return list
}

func frameName(index int) string { return fmt.Sprintf("frame %d", index) }

func (s ScratchPlan) name(index int) string {
	return fmt.Sprintf("scratch %d.%d", index/s.Each, index%s.Each)
}

func (b *Budget) makeStacks() {
	p := b.plan
	index := uint64(0)
	next := func(arena, key string, base int) *scope.Stack {
		st := &scope.Stack{Budget: p.Name, Arena: arena, Key: key, Owned: p.Limits.Owned, Names: p.Limits.Labels, Base: base,
			From: b.memory.Base(), Size: b.Size()}
		st.Start(b.table.Row(index))
		index++
		return st
	}
	for i, r := range p.Regions {
		open := func(name string, slot int) *region {
			part := &region{b: b, index: int(index), level: i, slot: slot, name: name}
			part.stack = next("region "+name, regionSizeKey(i), 1)
			b.regions = append(b.regions, &Region{region: part})
			return part
		}
		if r.Slots == 0 {
			open(r.Name, -1)
			continue
		}
		slots := newSlots(b, r.Name, i, r.Slots)
		for k := range r.Slots {
			slots.slots = append(slots.slots, open(fmt.Sprintf("%s %d", r.Name, k), k))
			slots.slots[k].siblings = slots
		}
		b.slots = append(b.slots, slots)
	}
	for i := range p.Frame.Buffers {
		b.frame = append(b.frame, next(frameName(i), frameSizeKey, 1))
	}
	for i := range p.Scratch.Workers * p.Scratch.Each {
		b.scratches = append(b.scratches, next(p.Scratch.name(i), scratchSizeKey, 0))
	}
	b.leases = newLeases(b)
	b.countNames()
	if len(b.frame) > 0 {
		b.current = b.frame[0].Open(frameScope)
	}
	b.published.begin(b)
}

// Region is the region of that name, one without slots. An unknown name is a caller's bug and panics with the names there
// are.
func (b *Budget) Region(name string) *Region {
	for _, r := range b.regions {
		if r.name == name && r.slot < 0 {
			return r
		}
	}
	for _, s := range b.slots {
		if s.name == name {
			panic(fmt.Sprintf("budget: BUG: region %q of plan %q has slots: Slots(%q).Acquire gives one", name, b.plan.Name, name))
		}
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no region %q; it has %s", b.plan.Name, name, b.regionNames()))
}

// Plan is the plan as opened, with its defaults filled in.
func (b *Budget) Plan() Plan {
	plan := b.plan
	plan.Regions = slices.Clone(plan.Regions) // the caller may make another plan of it
	return plan
}

// Size is the number of bytes that were reserved, tables included.
func (b *Budget) Size() uint64 { return b.memory.Size() }

// Base is what arena.Ptr and its like count from when they point from one region to another, or to the frame. It stays
// the same as long as the budget is open, and so do those of the regions until Reconfigure moves them. A pointer of one
// base that another resolves reads other bytes, unseen.
func (b *Budget) Base() arena.Base { return arena.BaseAt(b.memory.Base(), b.Size()) }

// Missing is the number of the budget's pages that are not present, each of which would cost a page fault; ok is false
// where it can't be measured. Cost: one system call, a byte a page.
func (b *Budget) Missing() (pages int, ok bool) {
	defer forgive()()
	return b.memory.Missing()
}

func (b *Budget) stacks() []*scope.Stack {
	var all []*scope.Stack
	for _, r := range b.regions {
		all = append(all, r.stack)
	}
	return append(append(all, b.frame...), b.scratches...)
}
