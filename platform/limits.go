package platform

import (
	"cmp"
	"slices"
)

// Limit is one bound on the memory of this process.
type Limit struct {
	// Name is "cgroup memory.max", "cgroup memory.high", "cgroup v1 memory.limit_in_bytes",
	// "RLIMIT_DATA", "RLIMIT_AS", "physical memory" or, on Windows, "commit limit", "job memory
	// limit" or "job process memory limit". A group may use more than its memory.high, and is
	// slowed down then.
	Name string
	// Bytes is the bound.
	Bytes uint64
	// Used is the number of bytes that already count against the bound. If the bound is for a
	// cgroup or the machine, the bytes of all its processes count. Bytes that the system takes back
	// when memory is needed don't count: files that it caches and, in a cgroup, the freed parts of
	// huge pages. Used is 0 where the system doesn't report it. It may exceed Bytes.
	Used uint64
	// Raise names the ways in which a person can raise the bound.
	Raise string
}

// Rest returns the bytes that the bound leaves, 0 if Used exceeds it.
func (l Limit) Rest() uint64 { return l.Bytes - min(l.Bytes, l.Used) }

func physicalMemory(size, used uint64) Limit {
	return Limit{"physical memory", size, used, "a machine with more memory, or fewer programs on it"}
}

func sortByRest(all []Limit) {
	slices.SortStableFunc(all, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Rest(), b.Rest()), cmp.Compare(a.Bytes, b.Bytes))
	})
}
