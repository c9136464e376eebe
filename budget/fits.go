package budget

import (
	"fmt"
	"runtime/metrics"

	"github.com/upfront-mem/upfront/platform"
)

// readLimits is platform.Limits; tests put others in its place.
var readLimits = platform.Limits

// fits says which limit of the process is too small for the budget and the Go share. kept says that the budget gets the
// range of one that was closed.
func (p Plan) fits(l layout, kept bool, limits []platform.Limit) error {
	heap := p.goShare()
	for _, limit := range limits {
		rest := p.leftBy(limit, l, kept)
		if need := l.size + heap; need > rest {
			return fmt.Errorf("the plan needs %s (budget %s, Go heap %s), and %s leaves %s of %s; lower the plan or raise the limit: %s",
				sizeText(need), sizeText(l.size), sizeText(heap), limit.Name, sizeText(rest), sizeText(limit.Bytes), limit.Raise)
		}
	}
	return nil
}

// goShare is what the plan needs of the Go heap: what it gives, or at least its tables there.
func (p Plan) goShare() uint64 { return max(p.GoHeap, p.goTables()) }

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
		own += l.tables
	}
	limit.Used -= min(limit.Used, own)
	return limit.Rest()
}

// goMemory is what the Go runtime has from the system, in bytes: mapped, and of this what it hasn't given back. Tests put
// other figures in its place.
var goMemory = func() (mapped, present uint64) {
	read := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(read)
	mapped = read[0].Value.Uint64()
	return mapped, mapped - min(mapped, read[1].Value.Uint64())
}

// keepsBase says whether the process keeps a range for the plan at its base.
func (p Plan) keepsBase(l layout) bool {
	return p.Base != 0 && p.Base <= uint64(^uintptr(0)) && platform.Keeps(uintptr(p.Base), l.size, l.tables)
}
