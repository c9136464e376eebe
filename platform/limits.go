package platform

import (
	"cmp"
	"slices"
)

// Limit is something that bounds how much memory this process may have.
type Limit struct {
	// Name is one of "cgroup memory.max", "cgroup v1 memory.limit_in_bytes", "RLIMIT_DATA", "RLIMIT_AS" and "physical
	// memory".
	Name string
	// Bytes is the bound.
	Bytes uint64
	// Used is what counts against the bound already, in bytes, by this process or, for a group and the machine, by
	// all of them; files that the system only caches, and drops when memory is wanted, do not count. It is 0 where the
	// system does not tell, and may be more than the bound.
	Used uint64
	// Raise says to people how the bound is raised.
	Raise string
}

// Rest is what the bound leaves, in bytes.
func (l Limit) Rest() uint64 { return l.Bytes - min(l.Bytes, l.Used) }

func physicalMemory(size, used uint64) Limit {
	return Limit{"physical memory", size, used, "a machine with more memory, or fewer programs on it"}
}

func sortByRest(all []Limit) {
	slices.SortStableFunc(all, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Rest(), b.Rest()), cmp.Compare(a.Bytes, b.Bytes))
	})
}
