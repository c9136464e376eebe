package budget

import (
	"os"
	"time"

	"github.com/upfront-mem/upfront/platform"
)

// DuringOpen has each Open call do until restore.
func DuringOpen(do func()) (restore func()) {
	before := readLimits
	readLimits = func() []platform.Limit { do(); return before() }
	return func() { readLimits = before }
}

// SetLimits puts others in the place of the process's limits until restore.
func SetLimits(limits ...platform.Limit) (restore func()) {
	before := readLimits
	readLimits = func() []platform.Limit { return limits }
	return func() { readLimits = before }
}

// SetMappings puts other figures in the place of the process's until restore.
func SetMappings(used, most uint64) (restore func()) {
	before := readMappings
	readMappings = func() (uint64, uint64, bool) { return used, most, true }
	return func() { readMappings = before }
}

// SetGoMemory puts other figures in the place of the Go runtime's until restore.
func SetGoMemory(mapped, present uint64) (restore func()) {
	before := goMemory
	goMemory = func() (uint64, uint64) { return mapped, present }
	return func() { goMemory = before }
}

// Stop holds up each load's begin and end until resume is called. Then those that wait are served
// in turn: a sync.Mutex hands over to the next at once when a waiter has waited for a millisecond
// and finds it locked again.
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

// PublishRegions publishes the figures of all regions.
func (b *Budget) PublishRegions() { b.publishRegions(b.along(nil), "") }

// PartBytes is the bytes of the pages that hold arenas and tables.
func (b *Budget) PartBytes() (bytes uint64) {
	for _, part := range b.parts {
		bytes += part.Size
	}
	return bytes
}

// ResidentOf is what of the budget is resident now, but for room in the head: an earlier budget may
// have used that.
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

// MemoryOf is what a group is asked for the plan's budget, and what addresses it takes.
func MemoryOf(plan Plan) (memory, size uint64) {
	l, _ := plan.resolved().layout()
	if platform.GoBacked {
		return l.size, l.size
	}
	return l.memory(uint64(os.Getpagesize())), l.size
}

// GoTables is what the tables of the plan's arenas take of the Go heap.
func GoTables(plan Plan) uint64 { return plan.goTables() }

// Beside is what a group pays for the plan and the plan doesn't name.
func Beside(plan Plan) uint64 {
	plan = plan.resolved()
	l, _ := plan.layout()
	return plan.beside(l)
}

// SitesOf is what call sites take of the Go heap in checked builds.
func SitesOf(plan Plan) uint64 { return plan.sites() }

// HeadOf is what stays of the plan's tables when its budget is closed.
func HeadOf(plan Plan) (head platform.Head) {
	l, _ := plan.resolved().layout()
	return l.kept()
}

// HoldKept takes all ranges of earlier budgets that an Open of the plan would take, until give.
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

// Closed says whether Close has come to its end.
func (b *Budget) Closed() bool { return b.closed.Load() }

// SetWideFirst has Measure begin with so many bytes, and gives a function that undoes it.
func SetWideFirst(size uint64) (undo func()) {
	was := wideFirst
	wideFirst = size
	return func() { wideFirst = was }
}

// Walk is Budget.Walk of dry arenas.
func (a Arenas) Walk() error {
	_, err := a.b.Walk()
	return err
}
