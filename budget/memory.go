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

// supply is the source of a budget's memory.
type supply interface {
	Base() unsafe.Pointer
	Size() uint64
	Addresses() uint64
	Missing(parts ...platform.PageRun) (pages int, ok bool)
	Protect(offset, size uint64) error
	Unprotect(offset, size uint64) error
	Release() error
}

// grant is the memory of a plan, with the wished demands that the system refused.
type grant struct {
	memory     supply
	table      *arena_c.Map          // at the bottom of memory
	mirror     *platform.Reservation // the addresses of objects in checked and asan builds, or nil
	parts      []platform.PageRun    // pages of arenas and tables; none: all of memory
	prefaulted bool
	locked     bool
	guarded    bool     // guards are in force: all, or some that couldn't be undone
	refused    []string // a line each: key and reason
}

// want calls ask if the plan demands it. A refusal is an error if the demand is required, else a
// line of the report.
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

// fromSystem reserves a range, makes it accessible, and applies the plan's demands.
func fromSystem(p Plan, l layout) (g grant, err error) {
	// an aligned offset is an aligned address
	const _ = uint(platform.Align - arena_c.AlignMax)
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

// passing is a range whose addresses Release returns to the system, except the head of its tables.
type passing struct{ *platform.Reservation }

func (r passing) Release() error { return r.Return() }

// inPassing is fromSystem for a budget whose pointers don't outlive Close.
func inPassing(p Plan, l layout) (g grant, err error) {
	if g, err = fromSystem(p, l); err == nil {
		g.memory = passing{g.memory.(*platform.Reservation)}
	}
	return g, err
}

// furnish makes the range accessible and applies the plan's demands to the pages of its parts.
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
			g.prefaulted = true // by the lock
		}
		g.locked = err == nil
		return err
	}
	return g.want("lock", pages.Lock, lock)
}

// lockParts locks the parts. Several parts split the range into more mappings.
func (g *grant) lockParts(r *platform.Reservation) error {
	if parts := uint64(len(g.parts)); parts > 1 && !platform.GoBacked {
		if err := fitMappings(2*parts, fmt.Sprintf("to lock %d parts, with edges between them, takes", parts),
			"have fewer slots, give them sizes that are multiples of 64KiB, or set pages.lock to \"off\""); err != nil {
			return err
		}
	}
	return r.Lock(g.parts...)
}

func (g *grant) reserve(p Plan, l layout) (r *platform.Reservation, err error) {
	limits := readLimits()
	if err := p.fits(l, p.keeps(l), limits); err != nil {
		return nil, err // too large at any base
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

// keeps reports whether the range of a closed budget suits the plan, at its base or elsewhere.
func (p Plan) keeps(l layout) bool {
	return platform.Keeps(0, l.size, l.kept()) || platform.Keeps(uintptr(p.Base), l.size, l.kept())
}

// giveBack releases the memory of a map, except the head of the tables.
func (g *grant) giveBack() error {
	g.table.Over()
	arena_c.Unpoison(g.memory.Base(), g.memory.Size())
	return g.memory.Release()
}

// reserveAt takes the range at a base; 0 is any. The range of a closed budget keeps the head of its
// tables, because stale handles may point into it. The range is reused only for a head of the same
// size, so that each handle finds its own dead words.
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

// kept returns the part of the tables that outlives the budget, in multiples of 64 KiB.
func (l layout) kept() platform.Head {
	return platform.Head{Size: planRound(l.tables.Head),
		Kind: fmt.Sprintf("tables of %d and %d bytes", l.tables.Head, l.tables.Headers)}
}

// given is the caller's block of OpenIn, or the tables of a dry budget. It keeps a Go block alive.
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

var errGiven = errors.New("OpenIn can't change the pages of the caller's block")

func fromBlock(block []byte, p Plan, l layout) (g grant, err error) {
	start := unsafe.Pointer(unsafe.SliceData(block))
	skip := -uint64(uintptr(start)) & (arena_c.Edge - 1)
	if start == nil || uint64(len(block)) < skip || uint64(len(block))-skip < l.size {
		return g, fmt.Errorf("the block has %d bytes, the plan needs %d (Plan.Need)", len(block), l.size+arena_c.Edge)
	}
	base := unsafe.Add(start, skip)
	// first, because a refused plan leaves the block unchanged
	for _, page := range p.Pages.byKey() {
		if *page.value == Wished && (page.key == "prefault" || page.key == "guards") {
			// not requested by the plan; guards have to wait for the map
			continue
		}
		if err := g.want(page.key, *page.value, func() error { return errGiven }); err != nil {
			return g, err
		}
	}
	arena_c.Unpoison(base, l.size)
	// The block may hold any bytes. Keep only a closed budget's head of this size: its handles stay
	// dead.
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

// fitMappings returns an error with the remedy if the process may not make `need` more mappings. It
// keeps some for the runtime, which ends the process if it gets no more.
func fitMappings(need uint64, what, or string) error {
	used, most, ok := readMappings()
	if reserve := most / 64; ok && used+need+reserve > most {
		return fmt.Errorf("%s %d mappings more; vm.max_map_count allows %d (%d in use, %d kept for "+
			"the runtime): raise it (sysctl -w vm.max_map_count=%d) or %s",
			what, need, most, used, reserve, (used+need)*64/63+1, or)
	}
	return nil
}

// protectGuards takes access to all guards away. If the system refuses one, it restores access to
// all.
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
		g.guarded = true // Reconfigure must try again: a boundary may move there
		return errors.Join(err, fmt.Errorf("some guards are in force all the same: %w", refused))
	}
	return err
}

// committed returns the bytes that may be read and written: all but the guards in force.
func (g *grant) committed() uint64 {
	size := g.memory.Size()
	if g.guarded {
		size -= guardBytes(g.table)
	}
	return size
}

// pages returns the system's range, or nil for the caller's block.
func (g *grant) pages() *platform.Reservation {
	switch m := g.memory.(type) {
	case *platform.Reservation:
		return m
	case passing:
		return m.Reservation
	}
	return nil
}

func (g *grant) foreign() bool { return g.pages() == nil }

// guard calls do for the guard before arena first and the guard after each arena from there on.
func (g *grant) guard(first int, do func(offset, size uint64) error) error {
	if platform.GoBacked {
		return errors.New("the pages of a race build are Go's")
	}
	size, before := g.table.Guard, planRound(g.table.Tables)
	if first > 0 {
		before = g.table.GuardStart(uint64(first) - 1)
	}
	if err := do(before, size); err != nil {
		return err
	}
	for i := uint64(first); i < g.table.Rows; i++ {
		if err := do(g.table.GuardStart(i), size); err != nil {
			return err
		}
	}
	return nil
}

// openMirror reserves the addresses of objects in checked and asan builds, far apart from each
// other (arena_c/mirror.h). They are outside the plan: not locked, not prefaulted, and not in
// reports.
func (g *grant) openMirror(budget string) error {
	size := g.table.MirrorSize()
	if size == 0 {
		return nil
	}
	m, err := platform.ReserveSparse(size)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // only fills
	}
	if err != nil {
		return fmt.Errorf("this build lays objects out far apart, in %s of addresses: %w", SizeText(size), err)
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
		g.table.Row(i).Over() // a last check, also of scratch arenas
	}
	g.table.MirrorClose()
	return g.mirror.Release()
}

// readLimits is platform.Limits; tests replace it.
var readLimits = platform.Limits

// countsAddresses reports whether a limit counts mapped addresses: memory that is writable, even if
// it was never touched.
func countsAddresses(limit platform.Limit) bool { return strings.HasPrefix(limit.Name, "RLIMIT") }

// claim is the memory that a plan takes of a limit, apart from the Go share. Sizes are bytes.
type claim struct {
	size   uint64 // of the budget
	cHeap  uint64
	quotas uint64 // of memory that no other part has
	beside uint64 // outside the plan
	text   string // the shares, for messages
	lower  string // the key of the largest share
	or     string // another way to lower the claim
}

// claimOf returns the plan's claim on a limit. A group or the machine counts memory, and the rest
// count addresses. The kernel kills a process of a group over its limit, instead of returning an
// error, so a group's claim includes the page tables and the runtime. Where addresses count, the
// claim includes whole stacks of the threads that the runtime may still make.
func (p Plan) claimOf(limit platform.Limit, l layout) claim {
	c := claim{size: l.size, cHeap: p.CHeap.Size, lower: p.largest()}
	beside := ""
	switch {
	case countsAddresses(limit):
		more, stack := moreThreads()
		if more == 0 {
			break
		}
		c.beside = uint64(more) * (stack + threadHeap)
		if limit.Name == "RLIMIT_AS" {
			c.beside += uint64(more)*threadArena + goArenaSize
		}
		beside = ", " + plural(more, "more thread") + " " + SizeText(c.beside)
		c.or = fmt.Sprintf("; each thread's stack takes %s: lower it (ulimit -s, in KiB)", SizeText(stack))
	case strings.HasPrefix(limit.Name, "cgroup"):
		c.beside = p.beside(l)
		beside = ", page tables and runtime " + SizeText(c.beside)
	}
	if !platform.GoBacked && !countsAddresses(limit) {
		c.size = l.memory(uint64(os.Getpagesize()))
	}
	c.text = "budget " + SizeText(c.size)
	if p.GoHeap != Rest {
		c.text += ", Go heap " + SizeText(p.goShare())
	}
	if c.cHeap != 0 {
		c.text += ", C heap " + SizeText(c.cHeap)
	}
	if c.quotas = p.quotaBytes(); c.quotas != 0 {
		c.text += ", quotas " + SizeText(c.quotas)
	}
	c.text += beside
	if c.cHeap > c.size {
		c.lower = cHeapKey + " (" + sizeInPlan(c.cHeap) + ")"
	}
	if c.quotas > max(c.size, c.cHeap) {
		c.lower = "quotas (" + sizeInPlan(c.quotas) + ")"
	}
	return c
}

// threadHeap is the memory that a new thread takes apart from its stack: C's first blocks of the
// thread, and the runtime's own stacks. threadArena is the addresses that glibc reserves for the
// thread's blocks.
const (
	threadHeap  = 256 * KiB
	threadArena = 64 * MiB
)

// fits returns an error if a limit of the process is too small for the budget, the Go share and C's
// heap. kept reports that the budget reuses the range of a closed one.
func (p Plan) fits(l layout, kept bool, limits []platform.Limit) error {
	heap := p.goShare()
	if l.goRest { // goRest has looked; a thread may have begun since, which was counted as one more
		heap = p.goLeast()
	}
	for _, limit := range limits {
		if limit.Name == "cgroup memory.high" {
			continue // no wall: the group is slowed down above it
		}
		left, c := p.leftBy(limit, l, kept), p.claimOf(limit, l)
		if need := c.size + heap + c.cHeap + c.quotas + c.beside; need > left {
			lower := "the plan"
			if max(c.size, c.cHeap, c.quotas) > heap {
				lower = c.lower + " in the plan"
			}
			return fmt.Errorf("the plan needs %s (%s), and %s leaves %s of %s; lower %s, or raise the limit: %s%s",
				SizeText(need), c.text, limit.Name, SizeText(left-left%KiB), SizeText(limit.Bytes), lower,
				limit.Raise, c.or)
		}
	}
	return nil
}

// pageEntries is the number of entries of 8 bytes in a page of a page table. Such a page covers 2
// MiB.
const pageEntries = 512

// The result is the bytes that a control group pays for a budget outside the plan: its page tables,
// and the runtime's memory before the first collection. A plan with a GoHeap includes the latter
// there.
func (p Plan) beside(l layout) uint64 {
	tables := planRound((l.size+p.CHeap.Size)/pageEntries) + planEdge // a few more pages are above
	if p.GoHeap != 0 {
		return tables
	}
	return tables + planHeapMin
}

// leftBy returns the bytes that a limit leaves for the plan. Bytes that already count against the
// limit and are part of the plan aren't subtracted: the Go heap in use, up to the plan's share, and
// the tables of a kept range, which stay present and writable. Where addresses count, it is the
// whole kept range.
//
// Memory that other processes use may become free again, so it isn't subtracted from the machine's,
// except for a Rest.
func (p Plan) leftBy(limit platform.Limit, l layout, kept bool) uint64 {
	share := p.goShare()
	if p.GoHeap == Rest {
		share = Rest // the share will include all that is in use
	} else if limit.Name == "physical memory" {
		return limit.Bytes
	}
	mapped, present := goMemory()
	own := min(share, present)
	if countsAddresses(limit) {
		own = min(share, mapped)
	}
	switch {
	case kept && (limit.Name == "RLIMIT_AS" || platform.GoBacked):
		own += l.size
	case kept:
		own += l.kept().Size
	}
	if c := p.cHeapInUse(); countsAddresses(limit) {
		own += c.Size
	} else {
		own += c.Used
	}
	limit.Used -= min(limit.Used, own)
	return limit.Rest()
}

// cHeapInUse returns the counts of C's heap if an earlier budget has begun it already.
func (p Plan) cHeapInUse() (c arena_c.ProcessCounts) {
	if h := arena_c.ProcessHeapOf(); h != nil && p.CHeap.Size != 0 {
		if c = h.Counts(); c.Size != p.CHeap.Size {
			return arena_c.ProcessCounts{}
		}
	}
	return c
}
