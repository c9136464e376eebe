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

// Limits lists the bounds that are set, the one with the smallest rest first; what is unlimited is left out. A group
// within groups has a row for each that is limited, and Raise names its file. RLIMIT_MEMLOCK is not among them: see
// LockLimit. On Windows there are "commit limit" and "physical memory", on darwin the latter; elsewhere the list is empty.
//
// It never fails: what cannot be read, or makes no sense, is left out. It reads a few dozen small files: not for a
// frame.
func Limits() []Limit { return limits() }

// LockLimit is how many bytes the process may lock (Reservation.Lock), what it has locked already included: the soft
// limit RLIMIT_MEMLOCK. unlimited is true when there is none, or the right CAP_IPC_LOCK lifts it; bytes then is the
// largest number. Like the kernel it takes the right of the calling thread, and only in the first user namespace: root
// in a container without privileges has a limit. On Windows it is the least working set of the process. It is 0 where nothing
// can be locked.
func LockLimit() (bytes uint64, unlimited bool) { return lockLimit() }

func sortByRest(all []Limit) {
	slices.SortStableFunc(all, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Rest(), b.Rest()), cmp.Compare(a.Bytes, b.Bytes))
	})
}
