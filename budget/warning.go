package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Warning reports that the use of a part of the plan reached its share ([RegionPlan.Warn],
// [CHeapPlan.Warn], [QuotaPlan.Warn]). A Warning has no pointers into the arena, so a program may
// keep it.
//
// The use of a region includes its temporaries ([scope.Scope.Temp]), and the values of a
// [scope.Builder] once the Builder is done. Of a heap or buddy of package arena, such as SQLite's,
// the use includes only the blocks in use. A region or slot warns when its use reaches the share.
// It warns again only after its use has fallen below nine tenths of the share: with 80 %, below 72
// %.
//
// An allocation doesn't compare the use with the share. The region's use is compared before a scope
// of the region opens or closes, before temporaries open, when a constructor has failed, and when a
// load ends. Between these moments the use only grows, so no crossing is missed; Used may be more
// than the share. A Report also compares, but OnWarn is called at the next of these moments. A
// scope that C opens and closes between two comparisons is noticed only if it set a new peak since
// the region was emptied. Used is then that peak; Labels are as of the comparison.
//
// While a loaded region has a heap, a goroutine of the library compares the region's use about 20
// times a second, unless OnWarn or a load takes longer, and calls OnWarn itself. If the use rises
// and falls between two comparisons, the crossing is noticed only if it was the heap's highest use.
// Labels then has labels first and scopes after them, as of the end of the load; a heap counts as a
// whole.
//
// The use of C's heap is compared by each call of malloc or free that takes the heap's lock. Freed
// blocks that the heap keeps for the next request don't count. In a Warning of C's heap, Size is
// without reserve and runtime, and Labels is empty. A goroutine of package malloc calls OnWarn
// within 100 ms. After Close it calls OnWarn at most once more.
//
// The use of a quota is its reserved bytes, and Labels are the tenants with the most. The goroutine
// that reserves, grows or releases calls OnWarn, without a lock of the quota.
//
// If the plan has a GoHeap, two more warnings have no Share. If a limit of the process falls below
// the bytes that the plan, C's heap and the Go heap need, Arena is the limit's name ("cgroup
// memory.max"), Key the ways to raise it, Size its new bound, and Used the bytes that are needed.
// Labels are then the plan, C's heap and the Go heap: its live objects with a margin if GoHeap is
// the Rest. Others has the other parts of Used. A limit that is higher by Used - Size bytes is
// enough. Nothing is taken from the plan. If the kernel counts events of memory in a cgroup of the
// process, Arena is "cgroup", Events has the counts, and Size is the limit of the Go heap. A
// goroutine of the library calls OnWarn, for events at most once a second for each cgroup. Without
// an OnWarn, the first of these warnings and each one that doubles their number are a line on
// standard error.
type Warning struct {
	Arena string // as in reports: "level", "room 3", "c_heap"
	Key   string // of the size in the plan: "regions[2].size"
	Used  uint64 // bytes
	Size  uint64 // bytes
	Share Percent
	// Labels are the three largest holders of the arena, the largest first: labels, open scopes
	// without the bytes of their labels, and temporaries. Peak and Allocated aren't set.
	Labels [3]scope.Usage
	// Events are the kernel's events since the last warning of the cgroup. File is "" in other
	// warnings.
	Events platform.LimitEvents
	// Others has the rest of Used if Arena is a limit: page tables or threads, the memory
	// [Outside], other processes, the reserve of the Rest, and the quotas of memory that no other
	// part has. Only Name and Bytes are set.
	Others [5]scope.Usage
}

// String returns the warning as one line of text, like that of a [scope.FullError].
func (w Warning) String() string {
	if w.Share == 0 {
		return w.limitText()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s holds %d of %d bytes, and warns at %d%%", w.Arena, w.Used, w.Size, w.Share)
	between := "; held by "
	for _, u := range w.Labels {
		if u.Bytes != 0 {
			fmt.Fprintf(&b, "%s%q (%d bytes)", between, u.Name, u.Bytes)
			between = ", "
		}
	}
	fmt.Fprintf(&b, "; its size is %s in the plan", w.Key)
	return b.String()
}

// watchUse lets regions warn that have a share for it.
func (b *Budget) watchUse() {
	for _, r := range b.regions {
		if share := b.plan.Regions[r.level].Warn; share != 0 {
			r.stack.WarnAt(int(share), b.crossed, func(*stack.Stack) { b.heaps.add(b, r) })
		}
	}
}

// crossed warns of a region. The goroutine that uses the region calls it.
func (b *Budget) crossed(st *stack.Stack, c stack.Crossing) {
	b.warn(Warning{Arena: arenaName(st), Key: st.Key, Used: c.Used, Size: c.Size, Share: Percent(c.Share),
		Labels: c.Top})
}

// warn passes a warning to Plan.OnWarn. Callers hold no lock: OnWarn may take its time, or panic.
func (b *Budget) warn(w Warning) {
	if b.plan.OnWarn != nil {
		b.plan.OnWarn(w)
	}
}

// heapLooks compares the use of regions that warn and have heaps, which changes without a scope.
type heapLooks struct {
	mu      sync.Mutex
	regions []*region     // with heaps
	closed  chan struct{} // closed by Close
	runs    bool
}

// add adds a region in which a heap was made. Any goroutine may call it.
func (w *heapLooks) add(b *Budget, r *region) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.regions, r) {
		w.regions = append(w.regions, r)
	}
	if !w.runs {
		w.runs, w.closed = true, make(chan struct{})
		go w.run(b, w.closed)
	}
}

// end ends the watch, for Close.
func (w *heapLooks) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs {
		close(w.closed)
		w.runs = false
	}
}

// run compares until there are no heaps, or Close.
func (w *heapLooks) run(b *Budget, closed chan struct{}) {
	const pause = 50 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-closed:
			return
		case <-tick.C:
		}
		for _, r := range w.list() {
			if warning, crossed := b.lookAtHeaps(r); crossed {
				b.warn(warning)
			}
		}
		if w.isOver(closed) {
			return
		}
	}
}

func (w *heapLooks) list() []*region {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.regions)
}

// isOver removes the regions without heaps, and reports whether none is left.
func (w *heapLooks) isOver(closed chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != closed || !w.runs {
		return true
	}
	w.regions = slices.DeleteFunc(w.regions, func(r *region) bool { return !r.stack.HasHeaps() })
	w.runs = len(w.regions) != 0
	return !w.runs
}

// lookAtHeaps compares the use of a loaded region that no load touches.
func (b *Budget) lookAtHeaps(r *region) (w Warning, crossed bool) {
	b.mu.Lock() // no load begins meanwhile
	defer b.mu.Unlock()
	if b.closed.Load() || r.busy != nil || r.phase() != loaded {
		return w, false
	}
	b.published.loads.Lock()
	defer b.published.loads.Unlock()
	f := &b.published.regions[r.index]
	c, crossed := r.stack.LookAside(f.Used)
	if !crossed {
		return w, false
	}
	f.Warnings, f.LastWarning = r.stack.Warnings()
	f.gauge.Mark(seam.Warn)
	w = Warning{Arena: r.name, Key: r.stack.Key, Used: c.Used, Size: c.Size, Share: Percent(c.Share)}
	holders := w.Labels[:0]
	// a scope's bytes include those of its labels
	for _, list := range [][]scope.Usage{f.Labels, f.Scopes} {
		for _, u := range slices.SortedStableFunc(slices.Values(list),
			func(a, b scope.Usage) int { return cmp.Compare(b.Bytes, a.Bytes) }) {
			if len(holders) < len(w.Labels) && u.Bytes != 0 {
				holders = append(holders, scope.Usage{Name: u.Name, Bytes: u.Bytes})
			}
		}
	}
	return w, true
}
