package budget

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// supply is where a budget has its memory from.
type supply interface {
	Base() unsafe.Pointer
	Size() uint64
	Addresses() uint64
	Missing(parts ...platform.PageRun) (pages int, ok bool)
	Protect(offset, size uint64) error
	Unprotect(offset, size uint64) error
	Release() error
}

// pager is the supply whose pages are the budget's own affair.
type pager interface {
	Lock(parts ...platform.PageRun) error
	Touch(parts ...platform.PageRun) error
}

// grant is the memory that a plan gets, and what the system refused of what the plan wished.
type grant struct {
	memory     supply
	table      *arena_c.Map          // at its bottom
	mirror     *platform.Reservation // where the bytes lie in checked and asan builds, or nil
	parts      []platform.PageRun    // of the memory, what holds arenas and tables; none: all of it
	prefaulted bool
	locked     bool
	resident   uint64   // bytes that were present at the end of Open, where that is measured
	guarded    bool     // guards have no access, or some that the system doesn't give back
	refused    []string // a line each: the key, and why
}

// want asks for what the plan demands. A refusal is an error when it is required, else a line of the report.
func (g *grant) want(key string, demand Demand, ask func() error) error {
	if !demand.asks() {
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
	const _ = uint(platform.Align - arena_c.AlignMax) // what is aligned in a budget is so at its address, too
	r, err := g.reserve(p, l)
	if err != nil {
		return g, err
	}
	g.memory, g.parts = r, l.parts()
	if err := g.furnish(r, p.Pages); err != nil {
		return g, errors.Join(err, r.Release())
	}
	return g, nil
}

// passing is a range of which nothing is kept but the head.
type passing struct{ *platform.Reservation }

func (r passing) Release() error { return r.Return() }

// inPassing is fromSystem for a budget of which no pointer outlives Close.
func inPassing(p Plan, l layout) (g grant, err error) {
	if g, err = fromSystem(p, l); err == nil {
		g.memory = passing{g.memory.(*platform.Reservation)}
	}
	return g, err
}

// furnish makes the range accessible, and the pages of its parts what the plan demands.
func (g *grant) furnish(r *platform.Reservation, pages Pages) error {
	if err := r.Commit(); err != nil {
		return err
	}
	prefault := func() (err error) {
		if g.prefaulted, err = r.Prefault(g.parts...); err == nil && !g.prefaulted {
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
		err := g.lockParts(r)
		if missing, ok := r.Missing(g.parts...); err == nil && ok && missing == 0 {
			g.prefaulted = true // by this
		}
		g.locked = err == nil
		return err
	}
	return g.want("lock", pages.Lock, lock)
}

// lockParts locks the parts: each of several makes mappings of the range.
func (g *grant) lockParts(r pager) error {
	if parts := uint64(len(g.parts)); parts > 1 && !platform.GoBacked {
		if err := fitMappings(2*parts, fmt.Sprintf("to lock %d parts, with edges between them, takes", parts),
			"have fewer slots, give them sizes that are multiples of 64KiB, or set pages.lock to \"off\""); err != nil {
			return err
		}
	}
	return r.Lock(g.parts...)
}

// reserve takes the range at the plan's base, or any.
func (g *grant) reserve(p Plan, l layout) (r *platform.Reservation, err error) {
	limits := readLimits()
	kept := platform.Keeps(0, l.size, l.kept()) || platform.Keeps(uintptr(p.Base), l.size, l.kept())
	if err := p.fits(l, kept, limits); err != nil {
		return nil, err // wherever it lies: not the base's fault
	}
	err = g.want("base", p.Pages.Base, func() (err error) {
		if p.Base > uint64(^uintptr(0)) {
			return fmt.Errorf("this target has no address %#x", p.Base)
		}
		r, err = p.reserveAt(uintptr(p.Base), l, limits)
		return err
	})
	if r != nil || err != nil {
		return r, err
	}
	return p.reserveAt(0, l, limits)
}

// giveBack releases the memory of a map: it is its owner's again, but for the head of the tables.
func (g *grant) giveBack() error {
	g.table.Over()
	arena_c.Unpoison(g.memory.Base(), g.memory.Size())
	return g.memory.Release()
}

// reserveAt takes the range at a base; 0 is any. The range of an earlier budget has the head of its tables still, and
// handles into it may be kept: only a head of the same size may lie there, so that each handle finds its own words, dead.
func (p Plan) reserveAt(base uintptr, l layout, limits []platform.Limit) (*platform.Reservation, error) {
	if err := p.fits(l, platform.Keeps(base, l.size, l.kept()), limits); err != nil {
		return nil, err
	}
	r, err := platform.Reserve(base, l.size, l.kept())
	if err != nil && base == 0 {
		err = fmt.Errorf("%w; lower %s or limits", err, p.largest())
	}
	return r, err
}

// kept is the part of the tables that outlives the budget, in whole edges.
func (l layout) kept() platform.Head {
	return platform.Head{Size: planRound(l.tables.Head), Kind: fmt.Sprintf("tables of %d and %d bytes", l.tables.Head, l.tables.Headers)}
}

// given is a block that belongs to somebody else. It keeps the block alive where that is a Go value.
type given struct {
	block []byte
	base  unsafe.Pointer
	size  uint64
}

func (g given) Base() unsafe.Pointer                             { return g.base }
func (g given) Size() uint64                                     { return g.size }
func (g given) Addresses() uint64                                { return g.size }
func (g given) Missing(...platform.PageRun) (pages int, ok bool) { return 0, false }
func (g given) Release() error                                   { return nil }

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
	for _, page := range p.Pages.byKey() { // first: a plan that is refused leaves the block as it was
		if *page.value == Wished && (page.key == "prefault" || page.key == "guards") {
			continue // nobody asked for it; and guards are asked for when the map says where
		}
		if err := g.want(page.key, *page.value, func() error { return errGiven }); err != nil {
			return g, err
		}
	}
	arena_c.Unpoison(base, l.size)
	// What is there may be anything. Only a head that a budget left, of this size, is worth keeping: its handles stay dead.
	var left arena_c.Tables
	if old := (*arena_c.Map)(base); old.Magic == arena_c.MapMagic {
		left = arena_c.MapTables(old.Rows, 0, old.Pools)
	}
	if left.Head != l.tables.Head || left.Headers != l.tables.Headers {
		clear(unsafe.Slice((*byte)(base), l.bottom))
	}
	g.memory = given{block, base, l.size}
	return g, nil
}

// readMappings is platform.Mappings; tests replace it.
var readMappings = platform.Mappings

// fitMappings says what to do when more mappings are needed than the process may have. A part of them is left to the
// runtime: it ends the process when it gets none.
func fitMappings(need uint64, what, or string) error {
	used, most, ok := readMappings()
	if reserve := most / 64; ok && used+need+reserve > most {
		return fmt.Errorf("%s %d mappings more; vm.max_map_count allows %d, of which %d are in use and %d are "+
			"left to the runtime: raise it (sysctl -w vm.max_map_count=%d) or %s",
			what, need, most, used, reserve, (used+need)*64/63+1, or)
	}
	return nil
}

// protectGuards takes access to the guards away: to all, or, when the system refuses one, to none.
func (g *grant) protectGuards() error {
	if !platform.GoBacked && !g.foreign() {
		what := fmt.Sprintf("%d arenas with guards need", g.table.Rows)
		if err := fitMappings(2*(g.table.Rows+1), what, "have fewer guards (fewer slots, or guards off)"); err != nil {
			return err
		}
	}
	err := g.guard(0, g.memory.Protect)
	if g.guarded = err == nil; g.guarded || platform.GoBacked || g.foreign() {
		return err
	}
	if refused := g.guard(0, g.memory.Unprotect); refused != nil {
		g.guarded = true // Reconfigure must try again: an edge may come to lie there
		return errors.Join(err, fmt.Errorf("some guards are in force all the same: %w", refused))
	}
	return err
}

// committed is what may be read and written: all but the guards in force.
func (g *grant) committed() uint64 {
	size := g.memory.Size()
	if g.guarded {
		size -= guardBytes(g.table)
	}
	return size
}

// foreign says whether the memory is a block that was given.
func (g *grant) foreign() bool {
	_, foreign := g.memory.(given)
	return foreign
}

// guard gives the guards behind the arenas from `first` up, and the one before them, to do: to take access away or to give
// it back.
func (g *grant) guard(first int, do func(offset, size uint64) error) error {
	if platform.GoBacked {
		return errors.New("the pages of a race build are Go's")
	}
	size := g.table.Guard
	if err := do(g.table.Start(uint64(first))-size, size); err != nil {
		return err
	}
	for i := uint64(first); i < g.table.Rows; i++ {
		if err := do(g.table.GuardStart(i), size); err != nil {
			return err
		}
	}
	return nil
}

// openMirror takes the addresses at which the bytes lie in checked and asan builds, far apart from each other
// (arena_c/mirror.h). They are beside the plan: not locked, not made present, and counted nowhere.
func (g *grant) openMirror(budget string) error {
	size := g.table.MirrorSize()
	if size == 0 {
		return nil
	}
	m, err := platform.ReserveSparse(size)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // fills alone
	}
	if err != nil {
		return fmt.Errorf("this build lays things out far apart from each other, in %s of addresses: %w", SizeText(size), err)
	}
	if !g.table.MirrorOpen(m.Base(), budget) {
		return errors.Join(errors.New("this build has no more than 256 budgets open at once"), m.Release())
	}
	g.mirror = m
	return nil
}

func (g *grant) closeMirror() error {
	if g.mirror == nil {
		return nil
	}
	for i := range g.table.Rows {
		g.table.Row(i).Over() // scratch arenas, too, are looked at once more
	}
	g.table.MirrorClose()
	return g.mirror.Release()
}

// readLimits is platform.Limits; tests replace it.
var readLimits = platform.Limits

// fits says which limit of the process is too small for the budget and the Go share. kept says that the budget gets the
// range of one that was closed.
func (p Plan) fits(l layout, kept bool, limits []platform.Limit) error {
	heap := p.goShare()
	for _, limit := range limits {
		rest, size, beside, more := p.leftBy(limit, l, kept), l.size, uint64(0), ""
		if !platform.GoBacked && !strings.HasPrefix(limit.Name, "RLIMIT") { // which counts addresses
			size = l.memory(uint64(os.Getpagesize()))
		}
		if strings.HasPrefix(limit.Name, "cgroup") { // its answer to a byte too many is no error, but a kill
			beside = p.beside(l)
			more = ", page tables and runtime " + SizeText(beside)
		}
		if need := size + heap + beside; need > rest {
			return fmt.Errorf("the plan needs %s (budget %s, Go heap %s%s), and %s leaves %s of %s; lower the plan or raise the limit: %s",
				SizeText(need), SizeText(size), SizeText(heap), more, limit.Name, SizeText(rest-rest%KiB), SizeText(limit.Bytes), limit.Raise)
		}
	}
	return nil
}

// beside is what a group pays for a budget and the plan doesn't name: the page tables of its pages, and
// what the runtime takes before its first collection. A Go heap with a share has that in the share.
func (p Plan) beside(l layout) uint64 {
	const entries = 512 // of 8 bytes, for so many pages of 4 KiB: a page of table for 2 MiB, and a few above
	tables := planRound(l.size/entries) + planEdge
	if p.GoHeap != 0 {
		return tables
	}
	return tables + planHeapMin
}

// leftBy is what a limit leaves for the plan. What counts against it already and is a part of what the plan needs isn't
// taken off: the Go heap in use, up to the plan's share; and of a kept range the tables, which stay present and writable,
// or all of it, where addresses are what counts.
//
// What others use of the machine's memory may go away again: it doesn't count.
func (p Plan) leftBy(limit platform.Limit, l layout, kept bool) uint64 {
	if limit.Name == "physical memory" {
		return limit.Bytes
	}
	mapped, present := goMemory()
	own := min(p.goShare(), present)
	if limit.Name == "RLIMIT_AS" || limit.Name == "RLIMIT_DATA" {
		own = min(p.goShare(), mapped)
	}
	switch {
	case kept && (limit.Name == "RLIMIT_AS" || platform.GoBacked):
		own += l.size
	case kept:
		own += l.kept().Size
	}
	limit.Used -= min(limit.Used, own)
	return limit.Rest()
}
