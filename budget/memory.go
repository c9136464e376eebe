package budget

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// supply is where a budget has its memory from.
type supply interface {
	Base() unsafe.Pointer
	Size() uint64
	Missing() (pages int, ok bool)
	Protect(offset, size uint64) error
	Unprotect(offset, size uint64) error
	Release() error
}

// What is aligned in a budget is so at its address, too.
const _ = uint(platform.Align - arena_c.AlignMax)

// layout is a plan in bytes.
type layout struct {
	arenas []arena_c.Arena
	shape  arena_c.Map // arenas, slots and pools
	tables uint64      // bytes at the bottom
	size   uint64      // of all, tables included
}

// sizeEnd is what no budget has: the core's limit, or what a slice and a distance of pointers hold on 32-bit targets.
const sizeEnd = min(arena_c.OffsetMax, math.MaxInt+1-arena_c.Edge)

func (p Plan) layout() (l layout, err error) {
	l.arenas = p.arenas()
	l.shape = arena_c.Map{Rows: p.arenaCount(), Slots: uint64(p.Limits.Scopes), Pools: uint64(p.Limits.Pools), Guard: p.guard()}
	l.size = arena_c.MapSize(l.arenas, l.shape.Slots, l.shape.Pools, l.shape.Guard)
	total := p.total()
	l.tables = l.size - total - l.shape.Guard
	if l.size != 0 && p.Size != 0 {
		l.size += planRound(p.Size) - total
	}
	if l.size == 0 || l.size >= sizeEnd {
		return l, fmt.Errorf("the plan and its tables need %s or more; lower %s or limits", sizeText(sizeEnd), p.largest())
	}
	return l, nil
}

// Need is the number of bytes that the plan needs of a block ([OpenIn]), wherever it begins; the tables are among them.
func (p Plan) Need() (uint64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	l, err := p.resolved().layout()
	return l.size + arena_c.Edge, err
}

// grant is the memory that a plan gets, and what the system refused of what the plan wished.
type grant struct {
	memory     supply
	prefaulted bool
	guarded    bool     // guards have no access, or some that the system doesn't give back
	refused    []string // a line each: the key, and why
}

// want asks for what the plan demands. A refusal is an error when it is required, else a line of the report.
func (g *grant) want(key string, demand Demand, ask func() error) error {
	if demand <= Off {
		return nil
	}
	err := ask()
	if err != nil && demand == Required {
		return fmt.Errorf("pages.%s is required: %w", key, err)
	}
	if err != nil {
		g.refused = append(g.refused, fmt.Sprintf("pages.%s: %v", key, err))
	}
	return nil
}

// fromSystem takes a range and makes it accessible, as the plan demands it.
func fromSystem(p Plan, l layout) (g grant, err error) {
	limits := readLimits()
	kept := platform.Keeps(0, l.size, l.tables) || p.keepsBase(l)
	if err := p.fits(l, kept, limits); err != nil {
		return g, err
	}
	r, err := g.reserve(p, l, limits)
	if err != nil {
		return g, err
	}
	g.memory = r
	if err := g.furnish(r, p.Pages); err != nil {
		return g, errors.Join(err, r.Release())
	}
	return g, nil
}

// furnish makes the range accessible and its pages what the plan demands.
func (g *grant) furnish(r *platform.Reservation, pages Pages) error {
	if err := r.Commit(); err != nil {
		return err
	}
	prefault := func() (err error) {
		if g.prefaulted, err = r.Prefault(); err == nil && !g.prefaulted {
			err = errors.New("not every page stayed present")
		}
		return err
	}
	if err := g.want("huge", pages.Huge, r.HugePages); err != nil {
		return err
	}
	if err := g.want("prefault", pages.Prefault, prefault); err != nil {
		return err
	}
	lock := func() error {
		err := r.Lock()
		if missing, ok := r.Missing(); err == nil && ok && missing == 0 {
			g.prefaulted = true // by this
		}
		return err
	}
	return g.want("lock", pages.Lock, lock)
}

// reserve takes the range at the plan's base, or any. The range of an earlier budget has its tables still, and handles into
// them may be kept: it is taken only where the tables have the same shape, so that each handle finds its own words, dead.
func (g *grant) reserve(p Plan, l layout, limits []platform.Limit) (r *platform.Reservation, err error) {
	err = g.want("base", p.Pages.Base, func() (err error) {
		if err := p.fits(l, p.keepsBase(l), limits); err != nil {
			return err
		}
		r, err = reserveAt(p.Base, l)
		return err
	})
	if r != nil || err != nil {
		return r, err
	}
	var others []*platform.Reservation
	defer func() {
		for _, other := range others {
			err = errors.Join(err, other.Release())
		}
		if r != nil && err != nil { // taken, but another could not go back
			r, err = nil, errors.Join(err, r.Release())
		}
	}()
	for {
		if err := p.fits(l, platform.Keeps(0, l.size, l.tables), limits); err != nil {
			return nil, err
		}
		r, err := platform.Reserve(0, l.size, l.tables)
		if err != nil {
			return nil, fmt.Errorf("%w; lower %s or limits", err, p.largest())
		}
		ok, err := mayTake(r, l)
		if err != nil {
			return nil, err
		}
		if ok {
			return r, nil
		}
		others = append(others, r)
	}
}

func reserveAt(base uint64, l layout) (*platform.Reservation, error) {
	if base > uint64(^uintptr(0)) {
		return nil, fmt.Errorf("this target has no address %#x", base)
	}
	r, err := platform.Reserve(uintptr(base), l.size, l.tables)
	if err != nil {
		return nil, err
	}
	ok, err := mayTake(r, l)
	if err == nil && !ok {
		err = errors.Join(errors.New("a budget of another shape was there, and handles into it may be kept"), r.Release())
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// mayTake says whether the range is new, or had a budget of the same shape.
func mayTake(r *platform.Reservation, l layout) (bool, error) {
	if err := r.Commit(); err != nil {
		return false, errors.Join(err, r.Release())
	}
	return hasShape(r.Base(), l.shape), nil
}

// hasShape says whether tables of the shape may be laid out at base: over nothing, or over their like.
func hasShape(base unsafe.Pointer, shape arena_c.Map) bool {
	old := (*arena_c.Map)(base)
	return old.Magic == 0 || sameShape(*old, shape)
}

func sameShape(a, b arena_c.Map) bool {
	return a.Rows == b.Rows && a.Slots == b.Slots && a.Pools == b.Pools && a.Guard == b.Guard
}

// given is a block that belongs to somebody else. It keeps the block alive where that is a Go value.
type given struct {
	block []byte
	base  unsafe.Pointer
	size  uint64
}

func (g given) Base() unsafe.Pointer          { return g.base }
func (g given) Size() uint64                  { return g.size }
func (g given) Missing() (pages int, ok bool) { return 0, false }
func (g given) Release() error                { return nil }

func (g given) Protect(uint64, uint64) error   { return errGiven }
func (g given) Unprotect(uint64, uint64) error { return errGiven }

var errGiven = errors.New("the pages of a block that was given are its owner's")

func fromBlock(block []byte, p Plan, l layout) (g grant, err error) {
	start := unsafe.Pointer(unsafe.SliceData(block))
	skip := -uint64(uintptr(start)) & (arena_c.Edge - 1)
	if start == nil || uint64(len(block)) < skip || uint64(len(block))-skip < l.size {
		return g, fmt.Errorf("the block has %d bytes, the plan needs %d (Plan.Need)", len(block), l.size+arena_c.Edge)
	}
	base := unsafe.Add(start, skip)
	for _, page := range p.Pages.list() { // first: a plan that is refused leaves the block as it was
		if page.demand == Wished && (page.key == "prefault" || page.key == "guards") {
			continue // nobody asked for it; and guards are asked for when the map says where
		}
		if err := g.want(page.key, page.demand, func() error { return errGiven }); err != nil {
			return g, err
		}
	}
	arena_c.Unpoison(base, l.size)
	// What is there may be anything. Only tables that a budget of this shape left are worth keeping: their handles stay dead.
	if old := (*arena_c.Map)(base); old.Magic != arena_c.MapMagic || !sameShape(*old, l.shape) {
		clear(unsafe.Slice((*byte)(base), l.tables))
	}
	g.memory = given{block, base, l.size}
	return g, nil
}
