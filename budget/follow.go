package budget

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

const (
	movesMost   = 16          // GoHeap.Moves
	settlePause = time.Second // between two looks at a live heap that is larger than its share

	// The collector runs for each quarter of the live heap that is allocated, and no more often
	// than for 4 MiB, if the limits leave less.
	liveMargin    = 4 // the live heap's quarter
	liveMarginMin = 4 * MiB
)

// Tests replace these functions.
var (
	// watchLimits is platform.WatchLimits.
	watchLimits = platform.WatchLimits
	// collect runs the collector and returns the free memory of the Go heap to the system.
	collect = debug.FreeOSMemory
	// measureOutside is Budget.outside.
	measureOutside = func(b *Budget) Outside { return b.outside(false) }
	// setGoLimit is debug.SetMemoryLimit, for limits that move.
	setGoLimit = debug.SetMemoryLimit
	// warnings gets the warnings of a plan without OnWarn.
	warnings io.Writer = os.Stderr
)

// follower keeps the limit of the Go heap as the limits of the process move. It belongs to the one
// budget that has set the limit of the Go heap.
type follower struct {
	stop   func()
	layout layout // as of Open; Reconfigure changes the budget's plan

	work   sync.Mutex // held by one move, or settling, at a time
	shares []limitShare
	begun  bool     // shares are those of the first look
	unread []string // files of limits that can't be read
	// Counts of warnings without an OnWarn: of limits, and of the kernel.
	short, pressed uint64

	mu       sync.Mutex // guards the fields below
	settled  uint64     // the limit before the settling that the last of the heap's Moves has, or 0
	heap     GoHeap     // without Used and Collections
	operator uint64     // the runtime's limit before Open
	beside   uint64     // bytes of the runtime's limit that aren't the Go heap's share
	inForce  int64      // the runtime's limit, unless the program has set another
	settles  *time.Timer
	ended    bool
}

// goHeap returns the report's part that moves.
func (f *follower) goHeap() GoHeap {
	f.mu.Lock()
	defer f.mu.Unlock()
	heap := f.heap
	heap.Moves = slices.Clone(heap.Moves)
	return heap
}

// followLimits begins to follow the limits of the process, if the plan limits the Go heap. Where
// the system has no watch, the limits stay as of Open, and Report.NotGranted says so if a cgroup
// may limit the process.
func (b *Budget) followLimits(l layout) {
	if b.plan.GoHeap == 0 {
		return
	}
	f := &b.follow
	f.layout = l
	stop, err := watchLimits(b.limitsMoved, b.limitEvents)
	if err != nil {
		if l.goRest && !errors.Is(err, errors.ErrUnsupported) {
			b.refused = append(b.refused, fmt.Sprintf(`go_heap: "rest" doesn't follow limits: %v`, err))
		}
		return
	}
	f.stop = stop
}

// end ends the following, for Close. No later move changes the limit of the Go heap.
func (f *follower) end() {
	if f.stop != nil {
		f.stop()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.settles != nil {
		f.settles.Stop()
	}
}

func (f *follower) isEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// limitsMoved follows a change of limits. The watch calls it, first during Open.
func (b *Budget) limitsMoved(limits []platform.Limit, unread []string) {
	for _, w := range b.moveLimits(limits, unread) {
		b.warnOfLimit(w, &b.follow.short)
	}
}

func (b *Budget) moveLimits(limits []platform.Limit, unread []string) (warned []Warning) {
	f := &b.follow
	f.work.Lock()
	defer f.work.Unlock()
	if f.isEnded() {
		return nil
	}
	for _, line := range unread {
		if !slices.Contains(f.unread, line) {
			f.note(line)
		}
	}
	f.unread = unread
	first := !f.layout.goRest && !f.begun
	f.begun = true
	shares, changes, changed := b.sharesOf(limits, first)
	f.shares = shares
	if first || changes == "" && len(changed) == 0 {
		return nil
	}
	if f.layout.goRest {
		return b.setRest(changes)
	}
	if changes != "" {
		f.note(changes + ": go_heap is a number, and stays " + SizeText(f.layout.plan.GoHeap))
	}
	return b.shortages(changed, f.layout.plan.GoHeap)
}

// sharesOf returns the share of each limit, and the changes since the last call as text. A limit
// that stays keeps its share, also if other processes use more. changed has the shares with a new
// bound, and those whose use can be read again. first reports a look that only compares.
//
// While a file can't be read, a limit that isn't in the list stays, and others are taken to have as
// much of a limit as before: the use in the list may be an earlier one, when the Go heap had more.
func (b *Budget) sharesOf(limits []platform.Limit, first bool) (shares []limitShare, text string,
	changed []limitShare) {
	f := &b.follow
	var changes []string
	same := func(a, b platform.Limit) bool { return a.Name == b.Name && a.Raise == b.Raise }
	isStale := len(f.unread) != 0
	for _, limit := range limits {
		var old limitShare
		at := slices.IndexFunc(f.shares, func(s limitShare) bool { return same(s.limit, limit) })
		if at >= 0 {
			old = f.shares[at]
		}
		moved := at < 0 || old.limit.Bytes != limit.Bytes
		if !moved && (isStale || !old.stale) {
			shares = append(shares, old)
			continue
		}
		share := limitShare{limit: limit, stale: isStale}
		switch {
		case first:
		case isStale && at < 0:
			share.taken = f.mostTaken(limit).withOutside(b)
		case isStale:
			share.taken = old.taken.withOutside(b)
		default:
			share.taken = b.taken(limit)
		}
		if f.layout.goRest {
			left := limit.Bytes - min(limit.Bytes, share.taken.bytes)
			share.share = restOf(limit, left, f.layout.plan.claimOf(limit, f.layout))
		}
		shares, changed = append(shares, share), append(changed, share)
		switch {
		case at < 0:
			changes = append(changes, fmt.Sprintf("%s none -> %s", limit.Name, SizeText(limit.Bytes)))
		case moved:
			changes = append(changes, fmt.Sprintf("%s %s -> %s", limit.Name, SizeText(old.limit.Bytes),
				SizeText(limit.Bytes)))
		case f.layout.goRest:
			changes = append(changes, fmt.Sprintf("the use of %s can be read again", limit.Name))
		}
	}
	for _, s := range f.shares {
		switch {
		case slices.ContainsFunc(limits, func(l platform.Limit) bool { return same(l, s.limit) }):
		case isStale:
			shares = append(shares, s)
		default:
			changes = append(changes, fmt.Sprintf("%s %s -> none", s.limit.Name, SizeText(s.limit.Bytes)))
		}
	}
	return shares, strings.Join(changes, ", "), changed
}

// mostTaken returns the most that others have of the limits of groups, for a new limit of a group
// whose use can't be read.
func (f *follower) mostTaken(limit platform.Limit) (most takenBytes) {
	isGroups := func(l platform.Limit) bool { return strings.HasPrefix(l.Name, "cgroup") }
	for _, s := range f.shares {
		if isGroups(limit) && isGroups(s.limit) && s.taken.bytes > most.bytes {
			most = s.taken
		}
	}
	return most
}

// taken returns the bytes of a limit that other processes and memory outside the plan take: its use
// without the resident parts of the plan, of the Go heap and of C's heap. It is at least the
// [Outside] of now.
func (b *Budget) taken(limit platform.Limit) (t takenBytes) {
	f := &b.follow
	mapped, present := goMemory()
	c := f.layout.plan.cHeapInUse()
	if countsAddresses(limit) {
		own := mapped + c.Size + b.quotasHeld()
		if !platform.GoBacked {
			own += f.layout.size
		}
		t.bytes = limit.Used - min(limit.Used, own)
		t.outside, t.isSplit = t.bytes, true // only the process counts
		return t
	}
	own := present + presentOf(c) + b.quotasHeld()
	if missing, ok := b.memory.Missing(); ok && !platform.GoBacked {
		own += b.Size() - min(b.Size(), uint64(missing)*uint64(os.Getpagesize()))
	}
	t.bytes = limit.Used - min(limit.Used, own)
	return t.withOutside(b)
}

// withOutside returns the bytes, and at least the Outside of now.
func (t takenBytes) withOutside(b *Budget) takenBytes {
	if o := measureOutside(b); o.Unknown == "" {
		outside := o.Bytes - min(o.Bytes, b.quotasHeld()) // the claim has the quotas
		t.bytes = max(t.bytes, outside)
		t.outside, t.isSplit = outside, true
	}
	return t
}

// presentOf returns the resident bytes of C's heap, or the bytes in use if the system doesn't count
// them.
func presentOf(c arena_c.ProcessCounts) (bytes uint64) {
	if c.Base == 0 {
		return c.Used + c.RuntimeUsed
	}
	heap := mappingOf(c)
	end := heap.Base + uintptr(heap.Size)
	// both ends split the mappings that cross them
	list, _, err := appendAnonymous(nil, []platform.Mapping{{Base: heap.Base}, {Base: end}})
	if err != nil {
		return c.Used + c.RuntimeUsed
	}
	for _, m := range list {
		if m.Base >= heap.Base && m.Base < end {
			bytes += m.Present
		}
	}
	return bytes
}

// setRest makes the rest of the limits the limit of the Go heap, but never less than the live heap
// with a margin: the collector would run all the time, and free nothing.
func (b *Budget) setRest(changes string) (warned []Warning) {
	f := &b.follow
	rest, _ := f.layout.plan.leastRest(f.shares)
	least := b.leastLive()
	before, after, done := f.set(rest, least)
	if _, present := goMemory(); done == setOurs && present > after {
		collect() // the memory has to go back, and a collection measures the live heap
		least = b.leastLive()
		_, after, done = f.set(rest, least)
	}
	if done == setNone {
		return nil
	}
	f.note(fmt.Sprintf("%s: limit %s -> %s", changes, SizeText(before), SizeText(after)))
	if done == setTheirs {
		f.note(fmt.Sprintf("the program has set another limit by debug.SetMemoryLimit, which stays; "+
			"the limits would leave %s", SizeText(rest.Limit)))
		return nil
	}
	if rest.Limit < after {
		b.settleLater()
	}
	return b.shortages(f.shares, after)
}

// leastLive returns the least limit with which the collector doesn't run all the time.
func (b *Budget) leastLive() uint64 {
	f := &b.follow
	live, others := goLive()
	if platform.GoBacked {
		live -= min(live, f.layout.size)
	}
	return max(f.layout.plan.goLeast(), live+others+max(live/liveMargin, liveMarginMin))
}

// limitSet is the result of set.
type limitSet uint8

const (
	setNone   limitSet = iota // the budget is closed
	setOurs                   // the limit of the Go heap is ours
	setTheirs                 // the program has set a limit of its own since, which stays
)

// set makes the rest the limit of the Go heap, or least if that is more.
func (f *follower) set(rest GoHeap, least uint64) (before, after uint64, done limitSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.heap.Limit
	if f.ended {
		return before, before, setNone
	}
	now, from := setGoLimit(-1), ""
	if now == f.inForce {
		after, from = f.bounded(rest, least)
		now = swapGoLimit(f.inForce, int64(after+f.beside))
	}
	if now != f.inForce {
		f.heap.Limit = uint64(now) - min(uint64(now), f.beside)
		f.heap.From = "a limit that the program has set (debug.SetMemoryLimit); the plan allows " + rest.From
		return before, f.heap.Limit, setTheirs
	}
	f.heap.Limit, f.heap.From, f.inForce = after, from, int64(after+f.beside)
	return before, after, setOurs
}

// swapGoLimit changes the runtime's limit from one that the budget has set. It returns that limit,
// or another one that the program has set meanwhile, which stays.
func swapGoLimit(from, to int64) (found int64) {
	found = setGoLimit(to)
	for wrote := to; found != from; {
		next := setGoLimit(found)
		if next == wrote {
			break
		}
		wrote, found = found, next // the program has set one more
	}
	return found
}

// bounded returns the rest as a limit of the Go heap, or least if that is more, within the bounds
// of the plan and of the operator.
func (f *follower) bounded(rest GoHeap, least uint64) (limit uint64, from string) {
	limit, from = max(rest.Limit, least), rest.From
	if limit > rest.Limit {
		from = fmt.Sprintf("the live heap with a margin; %s leaves %s", rest.From, SizeText(rest.Limit))
	}
	if most := f.layout.plan.GoHeapMax; most != 0 && limit > most {
		limit, from = most, "go_heap_max "+SizeText(most)
	}
	if limit > f.operator {
		limit = f.operator
		from = "a lower limit of the operator (GOMEMLIMIT, debug.SetMemoryLimit); the plan allows " + from
	}
	return limit, from
}

// settleLater looks again whether the live heap fits in the rest.
func (b *Budget) settleLater() {
	f := &b.follow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if f.settles == nil {
		f.settles = time.AfterFunc(settlePause, b.settle)
	} else {
		f.settles.Reset(settlePause)
	}
}

func (b *Budget) settle() {
	f := &b.follow
	f.work.Lock()
	defer f.work.Unlock()
	rest, _ := f.layout.plan.leastRest(f.shares)
	before, after, done := f.set(rest, b.leastLive())
	if done == setTheirs && after != before {
		f.note(fmt.Sprintf("the program has set another limit by debug.SetMemoryLimit, which stays: limit %s -> %s",
			SizeText(before), SizeText(after)))
	}
	if done == setOurs {
		f.noteSettled(before, after)
		if after > rest.Limit {
			b.settleLater()
		}
	}
}

// note adds a line to GoHeap.Moves.
func (f *follower) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = 0
	f.noteLocked(line)
}

func (f *follower) noteLocked(line string) {
	if len(f.heap.Moves) == movesMost {
		f.heap.Moves = slices.Delete(f.heap.Moves, 0, 1)
	}
	f.heap.Moves = append(f.heap.Moves, time.Now().UTC().Format("2006-01-02T15:04:05Z ")+line)
}

// noteSettled adds a line about a limit that has followed the live heap. Several of them in a row
// are one line.
func (f *follower) noteSettled(before, after uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before == after {
		return
	}
	if f.settled != 0 {
		before = f.settled
		f.heap.Moves = f.heap.Moves[:len(f.heap.Moves)-1]
	}
	if f.settled = before; before == after {
		f.settled = 0
		return
	}
	size := "smaller"
	if after > before {
		size = "larger"
	}
	f.noteLocked(fmt.Sprintf("the live heap is %s: limit %s -> %s", size, SizeText(before), SizeText(after)))
}

// shortages returns a warning for each limit that has fewer bytes than the plan and a Go heap need.
func (b *Budget) shortages(shares []limitShare, heap uint64) (warned []Warning) {
	f := &b.follow
	for _, s := range shares {
		c := f.layout.plan.claimOf(s.limit, f.layout)
		tables, reserve := scope.Usage{Name: "page tables", Bytes: c.beside}, uint64(0)
		if countsAddresses(s.limit) {
			tables.Name = "threads"
		}
		if f.layout.goRest {
			tables.Bytes += restNeeds(s.limit, heap) - heap
			reserve = restReserve
		}
		need := c.size + c.cHeap + c.quotas + heap + tables.Bytes + s.taken.bytes + reserve
		if need <= s.limit.Bytes {
			continue
		}
		w := Warning{Arena: s.limit.Name, Key: s.limit.Raise, Used: need, Size: s.limit.Bytes,
			Labels: [3]scope.Usage{{Name: "plan", Bytes: c.size}, {Name: cHeapKey, Bytes: c.cHeap},
				{Name: "go_heap", Bytes: heap}},
			Others: [5]scope.Usage{tables, {Name: "outside", Bytes: s.taken.outside},
				{Name: "other processes", Bytes: s.taken.bytes - s.taken.outside}, {Name: "reserve", Bytes: reserve},
				{Name: "quotas", Bytes: c.quotas}}}
		if !s.taken.isSplit {
			w.Others[2].Name = "outside and other processes"
		}
		warned = append(warned, w)
	}
	return warned
}

// limitEvents reports the kernel's events of a group. The watch calls it.
func (b *Budget) limitEvents(e platform.LimitEvents) {
	f := &b.follow
	b.warnOfLimit(Warning{Arena: "cgroup", Key: "go_heap", Size: f.goHeap().Limit, Events: e}, &f.pressed)
}

// warnOfLimit passes a warning to OnWarn. Without an OnWarn it writes the first one, and each that
// doubles their number, on standard error.
func (b *Budget) warnOfLimit(w Warning, count *uint64) {
	if b.plan.OnWarn != nil {
		b.warn(w)
		return
	}
	if *count++; bits.OnesCount64(*count) == 1 {
		// an error of standard error has no better place
		fmt.Fprintf(warnings, "upfront: budget %q: %s\n", b.plan.Name, w)
	}
}

// limitText returns a warning of limits as text.
func (w Warning) limitText() string {
	if e := w.Events; e.File != "" {
		text := fmt.Sprintf("%s: the group was above memory.high %s, at memory.max %s, and out of memory %s since the "+
			"last warning", e.File, times(int(e.High)), times(int(e.Max)), times(int(e.OOM)))
		if e.Stalled != 0 {
			text += fmt.Sprintf("; its tasks waited for memory in %.2f%% of the last 10 s", e.Stalled)
		}
		return text + "; raise memory.high or memory.max of this group, or lower the plan"
	}
	var parts []string
	for _, u := range slices.Concat(w.Labels[:], w.Others[:]) {
		if u.Bytes != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", u.Name, u.Bytes))
		}
	}
	return fmt.Sprintf("%s is %d bytes, and the process needs %d: %s; %d bytes are missing; nothing is taken from the "+
		"plan: lower it, or raise the limit: %s", w.Arena, w.Size, w.Used, strings.Join(parts, ", "),
		w.Used-min(w.Used, w.Size), w.Key)
}
