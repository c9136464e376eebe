package budget

import (
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
	// warnings gets the warnings of a plan without OnWarn.
	warnings io.Writer = os.Stderr
)

// follower keeps the limit of the Go heap as the limits of the process move. It belongs to the one
// budget that has set the limit of the Go heap.
type follower struct {
	stop func()
	// As of Open. Reconfigure changes the budget's own.
	plan   Plan
	layout layout
	isRest bool

	work   sync.Mutex // held by one move, or settling, at a time
	shares []limitShare
	begun  bool     // shares are those of the first look
	unread []string // files of limits that can't be read
	// Counts of warnings without an OnWarn: of limits, and of the kernel.
	short, pressed uint64

	mu       sync.Mutex // guards the fields below
	heap     GoHeap     // without Used and Collections
	operator uint64     // the runtime's limit before Open
	beside   uint64     // bytes of the runtime's limit that aren't the Go heap's share
	inForce  int64      // the runtime's limit, unless the program has set another
	settles  *time.Timer
	ended    bool
}

// rest reports whether the plan's GoHeap is a Rest.
func (f *follower) rest() bool { return f.isRest }

// goHeap returns the report's part that moves.
func (f *follower) goHeap() GoHeap {
	f.mu.Lock()
	defer f.mu.Unlock()
	heap := f.heap
	heap.Moves = slices.Clone(heap.Moves)
	return heap
}

// followLimits begins to follow the limits of the process, if the plan limits the Go heap. Where
// the system has no watch, the limits stay as of Open.
func (b *Budget) followLimits(l layout) {
	if b.plan.GoHeap == 0 {
		return
	}
	f := &b.follow
	f.plan, f.layout, f.isRest = b.Plan(), l, l.goRest
	stop, err := watchLimits(b.limitsMoved, b.limitEvents)
	if err != nil {
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
	first := !f.isRest && !f.begun
	f.begun = true
	shares, changes, changed := b.sharesOf(limits)
	f.shares = shares
	if first || changes == "" {
		return nil
	}
	if f.isRest {
		return b.setRest(changes)
	}
	f.note(changes + ": go_heap is a number, and stays " + SizeText(f.plan.GoHeap))
	for _, of := range changed {
		c := f.plan.claimOf(of, f.layout)
		taken := b.taken(of)
		if need := c.size + c.cHeap + c.beside + f.plan.GoHeap + taken; need > of.Bytes {
			warned = append(warned, b.shortOf(of, need-of.Bytes, f.plan.GoHeap))
		}
	}
	return warned
}

// sharesOf returns the share of each limit, and the changes since the last call as text. A limit
// that stays keeps its share, also if other processes use more. changed has the limits with a new
// bound.
func (b *Budget) sharesOf(limits []platform.Limit) (shares []limitShare, text string, changed []platform.Limit) {
	f := &b.follow
	var changes []string
	same := func(a, b platform.Limit) bool { return a.Name == b.Name && a.Raise == b.Raise }
	for _, limit := range limits {
		at := slices.IndexFunc(f.shares, func(s limitShare) bool { return same(s.limit, limit) })
		if at >= 0 && f.shares[at].limit.Bytes == limit.Bytes {
			shares = append(shares, f.shares[at])
			continue
		}
		before := "none"
		if at >= 0 {
			before = SizeText(f.shares[at].limit.Bytes)
		}
		changes = append(changes, fmt.Sprintf("%s %s -> %s", limit.Name, before, SizeText(limit.Bytes)))
		changed = append(changed, limit)
		share := limitShare{limit: limit}
		if f.isRest {
			left := limit.Bytes - min(limit.Bytes, b.taken(limit))
			share.share = restOf(limit, left, f.plan.claimOf(limit, f.layout))
		}
		shares = append(shares, share)
	}
	for _, s := range f.shares {
		if !slices.ContainsFunc(limits, func(l platform.Limit) bool { return same(l, s.limit) }) {
			changes = append(changes, fmt.Sprintf("%s %s -> none", s.limit.Name, SizeText(s.limit.Bytes)))
		}
	}
	return shares, strings.Join(changes, ", "), changed
}

// taken returns the bytes of a limit that other processes and memory outside the plan take: its use
// without the resident parts of the plan, of the Go heap and of C's heap. It is at least the
// [Outside] of now.
func (b *Budget) taken(limit platform.Limit) uint64 {
	f := &b.follow
	mapped, present := goMemory()
	c := f.plan.cHeapInUse()
	if countsAddresses(limit) {
		own := mapped + c.Size
		if !platform.GoBacked {
			own += f.layout.size
		}
		return limit.Used - min(limit.Used, own)
	}
	own := present + presentOf(c)
	if missing, ok := b.memory.Missing(); ok && !platform.GoBacked {
		own += b.Size() - min(b.Size(), uint64(missing)*uint64(os.Getpagesize()))
	}
	taken := limit.Used - min(limit.Used, own)
	if o := measureOutside(b); o.Unknown == "" {
		taken = max(taken, o.Bytes)
	}
	return taken
}

// presentOf returns the resident bytes of C's heap: the resident bytes of the process with and
// without it. If the system doesn't count them, presentOf returns the bytes in use.
func presentOf(c arena_c.ProcessCounts) uint64 {
	if c.Base == 0 {
		return c.Used + c.RuntimeUsed
	}
	page := uint64(os.Getpagesize())
	heap := []platform.Mapping{{Base: c.Base, Size: (c.Size + page - 1) &^ (page - 1)}}
	with, _, err := appendAnonymous(nil, nil)
	without, _, err2 := appendAnonymous(nil, heap)
	if err != nil || err2 != nil {
		return c.Used + c.RuntimeUsed
	}
	present := func(list []platform.Mapping) (bytes uint64) {
		for _, m := range list {
			bytes += m.Present
		}
		return bytes
	}
	all := present(with)
	return min(c.Size, all-min(all, present(without)))
}

// setRest makes the rest of the limits the limit of the Go heap, but never less than the live heap
// with a margin: the collector would run all the time, and free nothing.
func (b *Budget) setRest(changes string) (warned []Warning) {
	f := &b.follow
	rest, bound := f.plan.leastRest(f.shares)
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
		warned = append(warned, b.shortOf(bound, after-rest.Limit, after))
		b.settleLater()
	}
	return warned
}

// leastLive returns the least limit with which the collector doesn't run all the time.
func (b *Budget) leastLive() uint64 {
	f := &b.follow
	live, others := goLive()
	if platform.GoBacked {
		live -= min(live, f.layout.size)
	}
	return max(f.plan.goLeast(), live+others+max(live/liveMargin, liveMarginMin))
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
	if now := debug.SetMemoryLimit(-1); now != f.inForce {
		f.heap.Limit = uint64(now) - min(uint64(now), f.beside)
		f.heap.From = "a limit that the program has set (debug.SetMemoryLimit); the plan allows " + rest.From
		return before, f.heap.Limit, setTheirs
	}
	after, f.heap.From = max(rest.Limit, least), rest.From
	if after > rest.Limit {
		f.heap.From = fmt.Sprintf("the live heap with a margin; %s leaves %s", rest.From, SizeText(rest.Limit))
	}
	if most := f.plan.GoHeapMax; most != 0 && after > most {
		after, f.heap.From = most, "go_heap_max "+SizeText(most)
	}
	if after > f.operator {
		after = f.operator
		f.heap.From = "a lower limit of the operator (GOMEMLIMIT, debug.SetMemoryLimit); the plan allows " + f.heap.From
	}
	f.heap.Limit = after
	f.inForce = int64(after + f.beside)
	debug.SetMemoryLimit(f.inForce)
	return before, after, setOurs
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
	rest, _ := f.plan.leastRest(f.shares)
	before, after, done := f.set(rest, b.leastLive())
	switch {
	case done != setOurs:
	case after > rest.Limit:
		b.settleLater()
	case after < before:
		f.note(fmt.Sprintf("the live heap is smaller: limit %s -> %s", SizeText(before), SizeText(after)))
	}
}

// note adds a line to GoHeap.Moves.
func (f *follower) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.heap.Moves) == movesMost {
		f.heap.Moves = slices.Delete(f.heap.Moves, 0, 1)
	}
	f.heap.Moves = append(f.heap.Moves, time.Now().UTC().Format("2006-01-02T15:04:05Z ")+line)
}

// shortOf returns the warning of a limit that lacks bytes for the plan and a Go heap.
func (b *Budget) shortOf(limit platform.Limit, missing, heap uint64) Warning {
	f := &b.follow
	c := f.plan.claimOf(limit, f.layout)
	return Warning{Arena: limit.Name, Key: limit.Raise, Used: limit.Bytes + missing, Size: limit.Bytes,
		Labels: [3]scope.Usage{{Name: "plan", Bytes: c.size}, {Name: cHeapKey, Bytes: c.cHeap},
			{Name: "go_heap", Bytes: heap}}}
}

// limitEvents reports the kernel's events of a group. The watch calls it.
func (b *Budget) limitEvents(e platform.LimitEvents) {
	f := &b.follow
	f.mu.Lock()
	sum := &f.heap.Events
	sum.File, sum.Stalled = e.File, e.Stalled
	sum.High, sum.Max, sum.OOM = sum.High+e.High, sum.Max+e.Max, sum.OOM+e.OOM
	limit := f.heap.Limit
	f.mu.Unlock()
	b.warnOfLimit(Warning{Arena: "cgroup", Key: "go_heap", Used: 0, Size: limit, Events: e}, &f.pressed)
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
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %d bytes, and the process needs %d:", w.Arena, w.Size, w.Used)
	others := w.Used
	for _, u := range w.Labels {
		if u.Bytes != 0 {
			fmt.Fprintf(&b, " %s %d,", u.Name, u.Bytes)
			others -= min(others, u.Bytes)
		}
	}
	fmt.Fprintf(&b, " others and reserve %d; %d bytes are missing; nothing is taken from the plan: lower it, or "+
		"raise the limit: %s", others, w.Used-min(w.Used, w.Size), w.Key)
	return b.String()
}
