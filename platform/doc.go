// Package platform is the supply of memory: pages from the operating system, and what the system says
// about them. Programs have their memory from package budget, which asks here.
//
// Ten names to know: [Reserve] and [ReserveAt] give a [Reservation], whose life is Commit, Prefault or
// Lock, Protect, and Release; [Limits] and [LockLimit] say what the system will refuse; [Faults] and
// [ResidentPeak] measure; [SafeBase] is where ReserveAt finds room; [InjectFault] is for tests.
//
// It hands out whole ranges of pages and knows nothing of what lies in them. It cannot give addresses
// back: a range once reserved stays reserved until the process ends. It cannot promise more than the
// system does: a page that Prefault made present may be swapped out unless Lock holds it, and huge pages
// are a wish. And it is proved on Linux only: see Systems.
//
// # The life of a range
//
//	Reserve, ReserveAt ---> Commit ---> HugePages, Prefault, Lock
//	   ^                      |  ^
//	   |                      v  |  Protect, Unprotect
//	   |                    in use
//	   |                      |
//	   +------- kept <---- Release
//
// [Reserve] takes addresses, no memory. [Reservation.Commit] makes the whole range readable and writable; the system may
// refuse it. [Reservation.Prefault] makes every page present, so that no later access costs a page fault;
// [Reservation.Lock] does so and keeps them. [Reservation.Release] gives the memory back, and puts the addresses on a list
// of this process. The next Reserve that fits takes them from there, so that a program that opens and closes for ever
// stays within the address space of its widest moment.
//
// [ReserveAt] chooses the address; the same pointers in every run are its use. [SafeBase] says where is room for them, and
// why. A range so placed waits on the list for the next ReserveAt with its base.
//
// The first bytes of a range, as many as its owner says in Reserve, are its head. A head outlives Release: it stays
// readable and writable, and the next owner finds its contents there. Control tables with generation counters belong in
// it: a stale handle reads a table that says "dead", and may note there that it was refused, instead of crashing; and a
// generation is never counted twice.
//
// # Cost
//
// Reserve, Commit and Release are a few system calls each; Prefault and Lock cost about the time it takes to clear the
// range: go test ./platform -run - -bench . prints both. Missing reads one byte of answer per page. Limits, HugePages and
// ReserveAt read files under /proc and /sys. None of them belongs into a frame.
//
// # Failure
//
// Whatever the system refuses comes back as an error that names the operation, the bytes, and the system's reason, for
// which errors.Is works (unix.ENOMEM); [Limits] and [LockLimit] tell beforehand what will be refused, and how to raise it.
// Whatever fails, nothing stays mapped but what its owner has or the list keeps. An argument or an order of calls that
// is wrong whatever the system says is the caller's bug; the error begins with "platform: BUG:" and nothing has
// changed. [InjectFault] makes any of these requests fail, for tests.
//
// # Goroutines
//
// All functions may be called from any goroutine. The methods of one Reservation belong to one goroutine at a time,
// except Base, Size and Missing, which may run beside anything.
//
// # Systems
//
// Everything is run on Linux: on amd64, and under an emulator on arm64 and armv7. For Windows and darwin there is all but
// ReserveAt, HugePages and Missing, and on Windows Faults and ResidentPeak. It is compiled and vetted, and nothing of it has
// run on either system; what ran under Wine, cross/README.md says. Elsewhere every Reserve answers an error that wraps
// errors.ErrUnsupported.
//
//	             Linux                      Windows                      darwin
//	Reserve      mmap, PROT_NONE            VirtualAlloc, MEM_RESERVE    as Linux
//	Commit       mprotect                   VirtualAlloc, MEM_COMMIT     as Linux; the system never refuses
//	Protect      mprotect                   VirtualProtect               as Linux
//	Release      mprotect, MADV_DONTNEED    decommit                     mmap over it, no access
//	Prefault     MADV_POPULATE_WRITE        each page is touched         each page is touched
//	Lock         mlock, RLIMIT_MEMLOCK      VirtualLock, working set     mlock, RLIMIT_MEMLOCK
//
// Windows reserves multiples of 64 KiB: a smaller range wastes addresses up to the next one. What an alignment beyond that
// costs stays reserved there.
//
// # Builds
//
// With -race the memory is a part of the Go heap ([GoBacked] is true), because the race detector sees nothing else:
// Protect takes no access away, Release clears instead of giving back, Lock, HugePages and ReserveAt are unsupported,
// and a range beyond 64 GiB or beyond the machine's memory is refused. With -asan, whoever poisoned bytes of a range
// lifts the poison before Release: poison belongs to addresses, and these come back.
//
// # Why
//
// Why does a range stay reserved after Release? Somebody may have kept a pointer into it. Were the addresses given back,
// the Go heap, C's malloc or a thread's stack could land there, and a write through that pointer would be somebody
// else's damage. So it meets a page without access, which is a fault at once, or the next owner's range. The price:
// addresses, and memory for the head only; where the system does not overcommit (vm.overcommit_memory=2) the range stays
// charged until it is taken again.
package platform
