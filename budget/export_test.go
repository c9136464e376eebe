package budget

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// DuringOpen makes each Open call do, until restore is called.
func DuringOpen(do func()) (restore func()) {
	before := readLimits
	readLimits = func() []platform.Limit { do(); return before() }
	return func() { readLimits = before }
}

// SetLimits replaces the process's limits until restore. The runtime then needs no more threads.
func SetLimits(limits ...platform.Limit) (restore func()) {
	before, threads, watch := readLimits, readThreads, watchLimits
	readLimits = func() []platform.Limit { return limits }
	readThreads = func() (int, uint64, bool) { return 0, 0, false }
	watchLimits = func(func([]platform.Limit, []string), func(platform.LimitEvents)) (func(), error) {
		return nil, errors.ErrUnsupported
	}
	return func() { readLimits, readThreads, watchLimits = before, threads, watch }
}

// Watch is a watch of limits that a test moves.
type Watch struct {
	Moved   func(limits []platform.Limit, unread []string)
	Pressed func(platform.LimitEvents)
	Stopped int
}

// SetWatch makes budgets follow the watch until restore. Call SetLimits before.
func SetWatch() (w *Watch, restore func()) {
	w = &Watch{}
	before := watchLimits
	watchLimits = func(moved func([]platform.Limit, []string), pressed func(platform.LimitEvents)) (func(), error) {
		w.Moved, w.Pressed = moved, pressed
		moved(readLimits(), nil)
		return func() { w.Stopped++ }, nil
	}
	return w, func() { watchLimits = before }
}

// SetGoLive replaces the live heap's measures, and the collection of a limit that falls, until
// restore.
func SetGoLive(read func() (live, others uint64), collects func()) (restore func()) {
	beforeLive, beforeCollect := goLive, collect
	goLive, collect = read, collects
	return func() { goLive, collect = beforeLive, beforeCollect }
}

// SetOutside replaces the measure of memory outside the plan, for limits that move, until restore.
func SetOutside(o Outside) (restore func()) {
	before := measureOutside
	measureOutside = func(*Budget) Outside { return o }
	return func() { measureOutside = before }
}

// FailWatch makes the watch of limits fail until restore.
func FailWatch(err error) (restore func()) {
	before := watchLimits
	watchLimits = func(func([]platform.Limit, []string), func(platform.LimitEvents)) (func(), error) { return nil, err }
	return func() { watchLimits = before }
}

// SetGoLimit replaces debug.SetMemoryLimit, for limits that move, until restore.
func SetGoLimit(set func(limit int64) (old int64)) (restore func()) {
	before := setGoLimit
	setGoLimit = set
	return func() { setGoLimit = before }
}

// SetWarnings replaces standard error for warnings until restore.
func SetWarnings(to io.Writer) (restore func()) {
	before := warnings
	warnings = to
	return func() { warnings = before }
}

// IgnoreAddresses hides the process's limit on addresses from Open, and the threads that count
// against it. The system still enforces the limit.
func IgnoreAddresses() {
	limits := readLimits
	readLimits = func() []platform.Limit {
		return slices.DeleteFunc(limits(), func(l platform.Limit) bool { return l.Name == "RLIMIT_AS" })
	}
	readThreads = func() (int, uint64, bool) { return 0, 0, false }
	watch := watchLimits
	watchLimits = func(moved func([]platform.Limit, []string), pressed func(platform.LimitEvents)) (func(), error) {
		return watch(func(all []platform.Limit, unread []string) {
			moved(slices.DeleteFunc(all, func(l platform.Limit) bool { return l.Name == "RLIMIT_AS" }), unread)
		}, pressed)
	}
}

// SetThreads replaces the process's threads until restore. The runtime makes most in all.
func SetThreads(count int, stack uint64) (most int, restore func()) {
	before := readThreads
	readThreads = func() (int, uint64, bool) { return 0, stack, true }
	most, _ = moreThreads()
	readThreads = func() (int, uint64, bool) { return count, stack, true }
	return most, func() { readThreads = before }
}

func SetMappings(used, most uint64) (restore func()) {
	before := readMappings
	readMappings = func() (uint64, uint64, bool) { return used, most, true }
	return func() { readMappings = before }
}

func SetGoMemory(mapped, present uint64) (restore func()) {
	before := goMemory
	goMemory = func() (uint64, uint64) { return mapped, present }
	return func() { goMemory = before }
}

// Stop holds up each load's begin and end until resume. Then the waiters are served in turn: a
// sync.Mutex passes directly to a waiter that has waited for a millisecond and finds it locked
// again.
func (b *Budget) Stop() (resume func()) {
	b.mu.Lock()
	return func() {
		time.Sleep(time.Millisecond)
		b.mu.Unlock()
		b.mu.Lock()
		time.Sleep(time.Millisecond)
		b.mu.Unlock()
	}
}

func (b *Budget) PublishRegions() { b.publishRegions(b.along(nil), "") }

// PartBytes returns the bytes of the pages that hold arenas and tables.
func (b *Budget) PartBytes() (bytes uint64) {
	for _, part := range b.parts {
		bytes += part.Size
	}
	return bytes
}

// ResidentOf returns the resident bytes of the budget now, without spare room in the head, which an
// earlier budget may have used.
func (b *Budget) ResidentOf() (bytes uint64, ok bool) {
	l, _ := b.plan.layout()
	head := l.kept().Size
	ask := []platform.PageRun{{Offset: head, Size: b.Size() - head}}
	for _, part := range b.parts {
		if end := min(part.Offset+part.Size, head); part.Offset < end {
			ask = append(ask, platform.PageRun{Offset: part.Offset, Size: end - part.Offset})
		}
	}
	for _, part := range ask {
		bytes += part.Size
	}
	missing, ok := b.memory.Missing(ask...)
	return bytes - uint64(missing)*uint64(os.Getpagesize()), ok
}

// MemoryOf returns the bytes of memory that a control group pays for the plan's budget, and the
// bytes of its addresses.
func MemoryOf(plan Plan) (memory, size uint64) {
	l, _ := plan.resolved().layout()
	if platform.GoBacked {
		return l.size, l.size
	}
	return l.memory(uint64(os.Getpagesize())), l.size
}

// FitsIn returns the error of a new budget of the plan within the limits.
func FitsIn(plan Plan, limits ...platform.Limit) error {
	plan = plan.resolved()
	l, _ := plan.layout()
	return plan.fits(l, false, limits)
}

func GoTables(plan Plan) uint64 { return plan.goTables() }

// Returns the bytes that a control group pays for the budget outside the plan.
func Beside(plan Plan) uint64 {
	plan = plan.resolved()
	l, _ := plan.layout()
	return plan.beside(l)
}

// SitesOf returns the bytes of call sites on the Go heap in checked builds.
func SitesOf(plan Plan) uint64 { return plan.sites() }

// HeadOf returns the bytes of the plan's tables that stay after Close.
func HeadOf(plan Plan) (head platform.Head) {
	l, _ := plan.resolved().layout()
	return l.kept()
}

// HoldKept takes all ranges of earlier budgets that an Open of the plan could reuse, until give is
// called.
func HoldKept(plan Plan) (give func()) {
	l, _ := plan.resolved().layout()
	var held []*platform.Reservation
	for platform.Keeps(0, l.size, l.kept()) {
		r, err := platform.Reserve(0, l.size, l.kept())
		if err != nil {
			panic(err)
		}
		held = append(held, r)
	}
	return func() {
		for _, r := range held {
			if err := r.Release(); err != nil {
				panic(err)
			}
		}
	}
}

func (b *Budget) Closed() bool { return b.closed.Load() }

// SetWideFirst makes Measure begin with size bytes, until undo is called.
func SetWideFirst(size uint64) (undo func()) {
	was := wideFirst
	wideFirst = size
	return func() { wideFirst = was }
}

// TrackerOf returns the tracker of a region, or nil.
func (b *Budget) TrackerOf(region string) *platform.Tracker { return b.Region(region).tracker }

// MoreThreads returns how many threads Open counts beyond the present ones.
func MoreThreads() (more int, stack uint64) { return moreThreads() }

// Waiting returns the number of workers that wait for a pin of the region.
func Waiting(r Region) int {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return len(r.waiting)
}

// Pins returns the number of readers that a lease keeps.
func Pins(l Lease) int { return len(l.from.pins) }

// FakeAnonymous replaces the call that Outside makes of package platform.
func FakeAnonymous(to func(list, except []platform.Mapping) ([]platform.Mapping, uint64, error)) (restore func()) {
	old := appendAnonymous
	appendAnonymous = to
	return func() { appendAnonymous = old }
}

// PresentOf returns the resident bytes of C's heap.
func PresentOf(c arena_c.ProcessCounts) uint64 { return presentOf(c) }

// LookOutside looks as Report does, without texts.
func (b *Budget) LookOutside() Outside { return b.outside(false) }

// QuotaReport describes a quota, without the rest of the budget.
func QuotaReport(t *Quota) ArenaReport { return t.of.report() }

// QuotaWaiting returns the number of waiters of a quota, without an allocation.
func QuotaWaiting(t *Quota) int {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.waiting
}
