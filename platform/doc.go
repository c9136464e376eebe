// Package platform is the supply of memory: pages from the operating system, and what the system says about them.
//
// It cannot allocate: it hands out whole ranges of pages and knows nothing of what lies in them. It cannot give
// addresses back: a range once reserved stays reserved until the process ends, because pointers into it may still
// exist, and the Go heap must never land where they point. It cannot lock pages: a page that Prefault made present may
// be swapped out later. And it is real on Linux only; elsewhere every Reserve answers an error that wraps
// errors.ErrUnsupported.
//
// # The life of a range
//
//	Reserve ---> Commit ---> Prefault
//	   ^           |  ^
//	   |           v  |  Protect, Unprotect
//	   |         in use
//	   |           |
//	   +- kept <- Release
//
// Reserve takes addresses, no memory. Commit makes the whole range readable and writable; the system may refuse it.
// Prefault makes every page present, so that no later access costs a page fault. Release gives the memory back, and
// puts the addresses on a list of this process. The next Reserve that fits takes them from there, so that a program
// that opens and closes for ever stays within the address space of its widest moment, on targets of 32 and 39 bits too.
//
// The first bytes of a range, as many as its owner says in Reserve, are its head. A head outlives Release: it stays
// readable and writable, and the next owner finds its contents there. Control tables with generation counters belong in
// it: a stale handle reads a table that says "dead", and may note there that it was refused, instead of crashing; and a
// generation is never counted twice.
//
// # Cost
//
// Reserve, Commit and Release are a few system calls each (3 µs together for a range taken again whose pages were never
// present). Prefault costs about the time it takes to clear the range (0.1 to 0.4 s a GiB); Missing reads one byte of
// answer per page. None of them belongs into a frame. A range on the list costs addresses, and memory for its head
// only; where the system does not overcommit (vm.overcommit_memory=2) it stays charged until it is taken again.
//
// # Failure
//
// Whatever the system refuses comes back as an error that names the operation, the bytes, and the system's reason, for
// which errors.Is works (unix.ENOMEM). An argument or an order of calls that is wrong whatever the system says is the
// caller's bug; the error begins with "platform: BUG:" and nothing has changed.
//
// # Goroutines
//
// All functions may be called from any goroutine. The methods of one Reservation belong to one goroutine at a time,
// except Base, Size and Missing, which may run beside anything.
//
// # Builds
//
// With -race the memory is a part of the Go heap (GoBacked is true), because the race detector sees nothing else:
// Protect takes no access away, Release clears instead of giving back, and a range beyond 64 GiB or beyond the
// machine's memory is refused. With -asan, whoever poisoned bytes of a range lifts the poison before Release:
// poison belongs to addresses, and these come back.
package platform
