package budget

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Errors that errors.Is finds.
var (
	ErrFull    = scope.ErrFull   // an arena or a planned table had no room: an expected answer
	ErrClosed  = scope.ErrClosed // something closed was used
	ErrLoading = errors.New("upfront: loading")
)

// Budget is the whole of the memory, reserved once. Its methods belong to the goroutine that drives the program, except
// where they say otherwise; pads belong to the workers they are given to.
type Budget struct {
	Pads *OpenPads // lends pads to goroutines, and gives workers theirs

	plan Plan
	grant
	table     *arena_c.Map
	regions   []*OpenRegion // bottom first, each slot one
	slots     []*OpenSlots
	frame     []*scope.Stack
	current   scope.Scope // of the frame
	turn      int
	pads      []*scope.Stack
	restoreGo func()
	published published

	mu      sync.Mutex            // guards what follows
	leaked  map[place]scope.Scope // the scope that was counted last in each place
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

func open(plan Plan, from func(Plan, layout) (grant, error)) (*Budget, error) {
	defer forgive()()
	if err := plan.Check(); err != nil {
		return nil, err
	}
	plan = plan.resolved()
	b := &Budget{plan: plan, leaked: map[place]scope.Scope{}, leaks: map[*scope.Stack]*leaks{}}
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
		add(r.Name, arena_c.KindRegion, r.Size, r.rows())
	}
	for i := range p.Frame.Buffers {
		add(frameName(i), arena_c.KindFrame, p.Frame.Size, 1)
	}
	for i := range p.Pads.Workers * planPadsEach {
		add(padName(i), arena_c.KindPad, p.Pads.Size, 1)
	}
	return list
}

func frameName(index int) string { return fmt.Sprintf("frame %d", index) }

func padName(index int) string {
	return fmt.Sprintf("pad %d.%d", index/planPadsEach, index%planPadsEach)
}

func (b *Budget) makeStacks() {
	p := b.plan
	row := uint64(0)
	next := func(arena, key string, base int) *scope.Stack {
		st := scope.NewStack(b.table.Row(row), scope.Config{Budget: p.Name, Arena: arena, Key: key, Held: p.Limits.Held,
			Names: p.Limits.Accounts, Base: base, From: uintptr(b.memory.Base()), Size: b.Size()})
		row++
		return st
	}
	for i, r := range p.Regions {
		open := func(name string, slot int) *region {
			part := &region{b: b, row: int(row), level: i, slot: slot, name: name}
			part.stack = next("region "+name, regionSizeKey(i), 1)
			b.regions = append(b.regions, &OpenRegion{region: part})
			return part
		}
		if r.Slots == 0 {
			open(r.Name, -1)
			continue
		}
		slots := newOpenSlots(b, r.Name, i, r.Slots)
		for k := range r.Slots {
			slots.slots = append(slots.slots, open(fmt.Sprintf("%s %d", r.Name, k), k))
			slots.slots[k].siblings = slots
		}
		b.slots = append(b.slots, slots)
	}
	for i := range p.Frame.Buffers {
		b.frame = append(b.frame, next(frameName(i), frameSizeKey, 1))
	}
	for i := range p.Pads.Workers * planPadsEach {
		b.pads = append(b.pads, next(padName(i), padsSizeKey, 0))
	}
	b.Pads = newOpenPads(b)
	b.countNames()
	if len(b.frame) > 0 {
		b.current = b.frame[0].Open("frame")
	}
	b.published.begin(b)
}

// Region is the region of that name, one without slots. An unknown name is a caller's bug and panics with the names there
// are.
func (b *Budget) Region(name string) *OpenRegion {
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

// Frame is the scope of the frame's current buffer. What is made in it in frame n lives until the end of frame
// n+1, with 3 buffers n+2.
func (b *Budget) Frame() scope.Scope {
	if len(b.frame) == 0 {
		panic(fmt.Sprintf("budget: BUG: plan %q has no frame; give it frame.buffers and frame.size", b.plan.Name))
	}
	if b.closed.Load() {
		panic(fmt.Sprintf("budget: BUG: the frame of budget %q, which is closed", b.plan.Name))
	}
	return b.current
}

// NextFrame ends the frame: the oldest buffer is emptied, finalizers first, and becomes the current one. It returns their
// errors and a full that a Try... met in the frame that ends. Call it when no worker is at work on the frame or on pads
// that were asked for by number. Scopes that are open on these are leaks: Report counts them from now on, Close names
// them; those of the frame are closed and named in the error, too. Cost: O(finalizers), no allocation, and a call into C
// for each pool that is open there.
func (b *Budget) NextFrame() (err error) {
	if b.closed.Load() {
		return fmt.Errorf("budget %q: NextFrame: %w", b.plan.Name, ErrClosed)
	}
	b.strictFrame()
	b.countOpenPads(false)
	if len(b.frame) == 0 {
		b.publishFrame()
		return nil
	}
	ending := b.frame[b.turn]
	next := (b.turn + 1) % len(b.frame)
	if busy := b.finalizing(); busy != "" {
		return fmt.Errorf("budget %q: BUG: NextFrame from a finalizer of %s", b.plan.Name, busy)
	}
	b.countOpenFrame()
	left, met := ending.LeftOpen(1), ending.Remembered(0)
	defer func() { // also when a finalizer ends the goroutine
		ending.Freeze()
		err = errors.Join(err, b.frame[next].CloseTo(0)) // it is empty, unless a finalizer ended the goroutine
		b.turn = next
		b.current = b.frame[next].Open("frame")
		b.publishFrame()
	}()
	closed, emptied := ending.CloseTo(1), b.frame[next].CloseTo(0)
	if left == nil && met == nil && closed == nil && emptied == nil {
		return nil
	}
	return errors.Join(left, met, closed, emptied)
}

// finalizing names a buffer of the frame, or a pad of a worker, whose finalizers are running, or is empty. Pads on loan
// are other goroutines' affair.
func (b *Budget) finalizing() string {
	for _, st := range b.frame {
		if st.Closing() {
			return st.Name()
		}
	}
	for i, st := range b.pads {
		if b.Pads.isFixed(i) && st.Closing() {
			return st.Name()
		}
	}
	return ""
}

// Pad is one of the two pads of a worker: which is 0 or 1. Both count from 0; out of the plan's range is a caller's bug.
// See [OpenPads.Of].
func (b *Budget) Pad(worker, which int) scope.Pad {
	if worker < 0 || worker >= b.plan.Pads.Workers || which < 0 || which >= planPadsEach {
		panic(fmt.Sprintf("budget: BUG: pad %d of worker %d: plan %q has pads for %d workers, 2 each", which, worker, b.plan.Name,
			b.plan.Pads.Workers))
	}
	return b.Pads.Of(worker).Pad(which)
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
	return append(append(all, b.frame...), b.pads...)
}
