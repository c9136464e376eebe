package budget

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

const (
	metricTotal    = "/memory/classes/total:bytes"
	metricReleased = "/memory/classes/heap/released:bytes"
	metricCycles   = "/gc/cycles/total:gc-cycles"
)

// readMetrics reads figures of the runtime, without stopping the world.
func readMetrics(names ...string) []metrics.Sample {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	return samples
}

func collections() uint64 { return readMetrics(metricCycles)[0].Value.Uint64() }

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

// takeGoShare makes the plan's share the runtime's memory limit and turns GOGC off. restore undoes
// both. With GOGC, a Go heap that is tiny next to an off-heap budget would be collected again and
// again.
func takeGoShare(l layout) (restore func(), err error) {
	plan := l.plan
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
		return nil, fmt.Errorf("budget %q: go_heap: budget %q, which is open, has set the limit of the Go heap; set go_heap to 0 here",
			plan.Name, goShare.owner)
	}
	goShare.owner, goShare.taken = plan.Name, true
	limit := plan.GoHeap
	if platform.GoBacked {
		limit += l.size
	}
	limit += plan.sites()
	oldLimit := debug.SetMemoryLimit(int64(limit))
	oldPercent := debug.SetGCPercent(-1)
	return func() {
		goShare.Lock()
		defer goShare.Unlock()
		debug.SetMemoryLimit(oldLimit)
		debug.SetGCPercent(oldPercent)
		goShare.taken = false
	}, nil
}

// goTables returns the estimated bytes of the arenas' tables on the Go heap, rounded up to an edge.
func (p Plan) goTables() uint64 {
	tables, _ := p.tableBytes()
	return planRound(tables)
}

// tableBytes returns the bytes of all arenas' tables on the Go heap, and in sites the bytes that
// checked builds add.
func (p Plan) tableBytes() (tables, sites uint64) {
	usual := p.Limits.orDefault()
	for _, part := range p.sized() {
		l := part.own.or(usual)
		st := scope.Stack{Owned: l.Owned, Names: l.Labels}
		each, more := st.TableBytes(uint64(l.Scopes))
		tables, sites = tables+part.count*each, sites+part.count*more
	}
	return tables, sites
}

// goShare returns the plan's share of the Go heap, or at least its tables there.
func (p Plan) goShare() uint64 {
	if p.GoHeap == Rest {
		return p.goTables()
	}
	return max(p.GoHeap, p.goTables())
}

// goMemory returns the bytes that the Go runtime has mapped, and how many it hasn't returned to the
// system. Tests replace it.
var goMemory = func() (mapped, present uint64) {
	s := readMetrics(metricTotal, metricReleased)
	mapped = s[0].Value.Uint64()
	return mapped, mapped - min(mapped, s[1].Value.Uint64())
}
