package budget

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
)

const (
	metricTotal    = "/memory/classes/total:bytes"
	metricReleased = "/memory/classes/heap/released:bytes"
	metricCycles   = "/gc/cycles/total:gc-cycles"
	metricLive     = "/gc/heap/live:bytes"
	metricAllocs   = "/gc/heap/allocs:bytes"
	metricFree     = "/memory/classes/heap/free:bytes"
	metricObjects  = "/memory/classes/heap/objects:bytes"
)

// readMetrics reads metrics of the runtime, without stopping the world.
func readMetrics(names ...string) []metrics.Sample {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	return samples
}

// goShare is the budget that sets the runtime's memory limit; there is one limit, so only one
// budget may.
var goShare struct {
	sync.Mutex
	owner string
	taken bool
}

// sites returns the bytes that checked builds add to the tables on the Go heap.
func (p Plan) sites() uint64 {
	_, sites := p.tableBytes()
	return sites
}

// takeGoShare makes the plan's GoHeap the runtime's memory limit and turns GOGC off. restore undoes
// both. With GOGC, a Go heap that is tiny next to an off-heap budget would be collected again and
// again. A lower limit that is in force stays, and heap, for the report, says so.
func (f *follower) takeGoShare(l layout) (restore func(), err error) {
	plan, heap := l.plan, &f.heap
	if plan.GoHeap == 0 {
		return func() {}, nil
	}
	if tables := plan.goTables(); tables > plan.GoHeap {
		return nil, fmt.Errorf("budget %q: go_heap is %s, but the tables of the plan's arenas need %s of it; "+
			"raise go_heap, or lower limits or slots", plan.Name, sizeInPlan(plan.GoHeap), sizeInPlan(tables))
	}
	goShare.Lock()
	defer goShare.Unlock()
	if goShare.taken {
		return nil, fmt.Errorf("budget %q: go_heap: budget %q, which is open, has set the limit of the Go heap; "+
			"set go_heap to 0 here", plan.Name, goShare.owner)
	}
	goShare.owner, goShare.taken = plan.Name, true
	oldLimit := debug.SetMemoryLimit(-1)
	heap.Limit = plan.GoHeap
	if inForce := uint64(oldLimit); inForce < plan.GoHeap {
		heap.Limit = inForce
		heap.From = "a lower limit of the operator (GOMEMLIMIT, debug.SetMemoryLimit); the plan allows " +
			cmp.Or(heap.From, SizeText(plan.GoHeap))
	}
	f.operator = uint64(oldLimit)
	f.beside = plan.sites()
	if platform.GoBacked {
		f.beside += l.size
	}
	f.inForce = int64(heap.Limit + f.beside)
	debug.SetMemoryLimit(f.inForce)
	oldPercent := debug.SetGCPercent(-1)
	return func() {
		goShare.Lock()
		defer goShare.Unlock()
		debug.SetMemoryLimit(oldLimit)
		debug.SetGCPercent(oldPercent)
		goShare.taken = false
	}, nil
}

// goTables returns the estimated bytes of the arenas' tables on the Go heap, rounded up to 64 KiB.
func (p Plan) goTables() uint64 {
	tables, _ := p.tableBytes()
	return planRound(tables)
}

// tableBytes estimates the bytes of all arenas' tables on the Go heap, and in sites the bytes that
// checked builds add.
func (p Plan) tableBytes() (tables, sites uint64) {
	p = p.withLimits()
	for i, part := range p.sized() {
		l := part.own.or(p.Limits)
		warns := i < len(p.Regions) && p.Regions[i].Warn != 0
		each, more := stack.Config{Owned: l.Owned, Names: l.Labels}.TableBytes(uint64(l.Scopes), warns)
		tables, sites = tables+part.count*each, sites+part.count*more
	}
	for _, q := range p.Quotas {
		tables += uint64(q.waiters()+q.Tenants) * waiterBytes
	}
	for _, r := range p.Regions {
		tables += planCount(r.Waiters) * waiterBytes
	}
	return tables, sites
}

// waiterBytes is the Go memory of a waiter and its channel, and about that of a tenant.
const waiterBytes = 300

// goShare returns the plan's share of the Go heap, or at least its tables there. For a Rest it
// returns the least share that Open accepts.
func (p Plan) goShare() uint64 {
	if p.GoHeap == Rest {
		return p.goLeast()
	}
	return max(p.GoHeap, p.goTables())
}

// goLeast returns the least share of the Go heap that a Rest may be.
func (p Plan) goLeast() uint64 { return max(planHeapMin, p.goTables()) }

// restReserve is the part of a limit that a Go heap with the Rest leaves free. It pays for all
// memory that the process takes after Open and that no plan counts: the used part of the threads'
// stacks, C's own blocks, the kernel's buffers, and the runtime's excess over its soft limit.
const restReserve = 16 * MiB

// limitShare is the share of the Go heap that one limit leaves.
type limitShare struct {
	limit platform.Limit
	share uint64
	taken takenBytes
	// stale reports that the use of a limit couldn't be read when the share was computed.
	stale bool
}

// takenBytes is the bytes of a limit that other processes and memory outside the plan take.
type takenBytes struct {
	bytes   uint64
	outside uint64 // the part of bytes that is the process's own
	isSplit bool   // outside is known
}

// goRest returns the Go heap of a plan with a Rest: the smallest of the bytes that the limits leave
// after all other shares, and of GoHeapMax. The Go memory in use is part of it. shares has the
// share of each limit.
func (p Plan) goRest(l layout, kept bool, limits []platform.Limit) (heap GoHeap, shares []limitShare, err error) {
	least := p.goLeast()
	if most := p.GoHeapMax; most != 0 && most < least {
		return heap, nil, fmt.Errorf("go_heap_max is %s, but the tables of the plan's arenas need %s of the "+
			"Go heap; raise go_heap_max, or lower limits or slots", sizeInPlan(most), sizeInPlan(least))
	}
	for _, limit := range limits {
		c := p.claimOf(limit, l)
		left := p.leftBy(limit, l, kept)
		share := restOf(limit, left, c)
		if share < least {
			return heap, nil, fmt.Errorf(`go_heap is "rest", and %s of %s leaves %s for it, which needs %s or more: `+
				"of the %s that are free or the Go heap's, the plan takes %s (%s) and %s stay in reserve; "+
				"lower %s in the plan, or raise the limit: %s",
				limit.Name, SizeText(limit.Bytes), SizeText(share-share%KiB), SizeText(least), SizeText(left-left%KiB),
				SizeText(c.size+c.cHeap+c.quotas+c.beside), c.text, SizeText(restReserve), c.lower, limit.Raise)
		}
		shares = append(shares, limitShare{limit: limit, share: share, taken: takenBytes{bytes: limit.Bytes - left}})
	}
	if heap, _ = p.leastRest(shares); heap.From == "" {
		return heap, nil, errors.New(`go_heap is "rest", but this system shows no limit of memory; set go_heap to a size, or ` +
			"go_heap_max")
	}
	return heap, shares, nil
}

// leastRest returns the smallest share, or GoHeapMax if that is less. bound is the limit that
// leaves it, zero if none does.
func (p Plan) leastRest(shares []limitShare) (heap GoHeap, bound platform.Limit) {
	heap = GoHeap{Limit: planHeapMax, Reserve: restReserve}
	if most := p.GoHeapMax; most != 0 {
		heap.Limit, heap.From = most, "go_heap_max "+SizeText(most)
	}
	for _, of := range shares {
		limit, share := of.limit, of.share
		if share < heap.Limit {
			heap.Limit, heap.From = share, fmt.Sprintf("the rest of %s %s", limit.Name, SizeText(limit.Bytes))
			bound = limit
		}
	}
	return heap, bound
}

// isMachines reports whether a limit is the machine's memory.
func isMachines(limit platform.Limit) bool {
	return limit.Name == "physical memory" || limit.Name == "commit limit"
}

// restOf returns the share of the Go heap in the bytes that a limit leaves for the plan.
func restOf(limit platform.Limit, left uint64, c claim) uint64 {
	share := left - min(left, c.size+c.cHeap+c.quotas+c.beside+restReserve)
	switch {
	case limit.Name == "RLIMIT_AS":
		share = goArenas(share)
	case !countsAddresses(limit):
		share -= share / pageEntries // its own page tables
	}
	return share
}

// restNeeds is the reverse of restOf: the bytes that a limit has to leave, after the plan and the
// reserve, for a Go heap.
func restNeeds(limit platform.Limit, heap uint64) uint64 {
	switch mapped, _ := goMemory(); {
	case limit.Name == "RLIMIT_AS" && heap > mapped:
		return mapped + (heap-mapped+goArenaSize-1)/goArenaSize*goArenaSize
	case countsAddresses(limit) || heap == 0:
		return heap
	}
	return heap + (heap-1)/(pageEntries-1)
}

// goArenaSize is the unit in which the runtime reserves addresses for its heap.
const goArenaSize = 64 * MiB

// goArenas returns the part of a share of addresses that the runtime can use: its heap in use, and
// whole units.
func goArenas(share uint64) uint64 {
	mapped, _ := goMemory()
	if share < mapped {
		return share
	}
	return mapped + (share-mapped)/goArenaSize*goArenaSize
}

// readThreads is platform.Threads; tests replace it.
var readThreads = platform.Threads

// moreThreads returns how many threads the runtime may still make, and the bytes of each one's
// stack. The runtime makes a thread for each of GOMAXPROCS, and another while one waits in C or in
// the system: 10 in all with one processor and 21 with 8, in a game of this library. It ends the
// process if it gets none.
func moreThreads() (more int, stack uint64) {
	const others = 11
	count, stack, ok := readThreads()
	if !ok {
		return 0, 0
	}
	processors := runtime.GOMAXPROCS(0)
	return max(0, processors+processors/2+others-count), stack
}

// goLive returns the bytes that the last collection found live, and the bytes of Go memory that
// aren't objects: stacks, the runtime's own tables, and the rest of pages with objects. Tests
// replace it.
var goLive = func() (live, others uint64) {
	s := readMetrics(metricLive, metricTotal, metricReleased, metricFree, metricObjects)
	others = s[1].Value.Uint64()
	for _, part := range s[2:] {
		others -= min(others, part.Value.Uint64())
	}
	return s[0].Value.Uint64(), others
}

// goMemory returns the bytes that the Go runtime has mapped, and how many it hasn't returned to the
// system. Tests replace it.
var goMemory = func() (mapped, present uint64) {
	s := readMetrics(metricTotal, metricReleased)
	mapped = s[0].Value.Uint64()
	return mapped, mapped - min(mapped, s[1].Value.Uint64())
}
