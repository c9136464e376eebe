package budget

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/upfront-mem/upfront/platform"
)

// goShare is the budget that governs the collector: the runtime has one limit, so one budget may set it.
var goShare struct {
	sync.Mutex
	owner string
	taken bool
}

// sites is what checked builds keep beside the tables on the Go heap.
func (p Plan) sites() uint64 {
	_, sites := p.tableBytes()
	return p.arenaCount() * sites
}

// takeGoShare makes the plan's share the runtime's memory limit and lets nothing else start a collection. Without it, a
// heap that is tiny beside an off-heap budget would be collected again and again.
func takeGoShare(plan Plan) (restore func(), err error) {
	if plan.GoHeap == 0 {
		return func() {}, nil
	}
	if tables := plan.goTables(); tables > plan.GoHeap {
		return nil, fmt.Errorf("budget %q: go_heap: is %s, and the tables of the plan's arenas on the Go heap take %s of it; "+
			"raise go_heap, or lower limits or slots", plan.Name, sizeText(plan.GoHeap), sizeText(tables))
	}
	goShare.Lock()
	defer goShare.Unlock()
	if goShare.taken {
		return nil, fmt.Errorf("budget %q: go_heap: budget %q governs the Go heap already; only one open budget can, give this one 0",
			plan.Name, goShare.owner)
	}
	goShare.owner, goShare.taken = plan.Name, true
	limit := plan.GoHeap
	if platform.GoBacked {
		l, _ := plan.layout() // its fault is layOut's to tell
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
