// Package platform is the supply of memory: pages from the operating system, and what the system
// says about them.
//
//	Reserve ---> Commit ---> HugePages, Prefault, Lock
//	   ^           |  ^
//	   |           v  |  Protect, Unprotect
//	   |         in use
//	   |           |
//	 kept <---- Release
//
// [Reserve] takes addresses, anywhere or at a base ([SafeBase]), no memory. [Reservation.Commit]
// makes the range readable and writable; the system may refuse it. [Reservation.Prefault] makes
// every page present, so that no later access costs a page fault; [Reservation.Lock] does so and
// keeps them. [Reservation.Release] gives the memory back, and keeps the addresses for the next
// Reserve of the class; [Reservation.Return] keeps the head alone. [ReserveSparse] is for what checked
// builds lay out apart.
//
// [Limits] tells beforehand what will be refused, and how to raise it; [Keeps], whether a range
// would be an old one; [Faults], [ResidentPeak] and [Reservation.Missing], what play cost.
// [Track] tells which pages of a range are written to from then on. [InjectFault] makes any request to
// the system fail, for tests.
//
// It cannot allocate: it hands out whole ranges and knows nothing of what lies in them. It cannot give
// addresses back that somebody may still have a pointer to. It cannot promise more than the system
// does: a page that Prefault made present may be swapped out unless Lock holds it, and huge pages are a
// wish. Programs have their memory from package budget, which asks here.
//
// # The head
//
// The first bytes of a range, as many as its owner says in Reserve, are its head. It outlives
// Release: it stays readable and writable, and the next owner finds its contents there. Control
// tables with generations belong in it: a stale handle reads a table that says "dead" instead of
// crashing, and a generation is never counted twice.
//
// # How many addresses
//
// A range that the system places has a class: its head (size and kind), and its size up to the next
// power of two, which is what it takes of the addresses. Of each class the process keeps as many ranges
// as were ever owned at once, and no more: a program that reserves and releases for ever stands still,
// whatever the sizes and their order are. Ranges are neither split nor merged, because a head stays
// where it is. Who uses one class at a time keeps less than four times the addresses of his widest
// moment; each further class comes on top. Where addresses are scarce, as RLIMIT_AS or 32 bits make
// them, a new range is no larger than asked for, and a class may keep several that grow. A range with a
// chosen base is its base's.
//
// # Cost
//
// Reserve, Commit and Release are a few system calls each; Prefault and Lock cost about the time it
// takes to clear the range: go test ./platform -run - -bench . prints both. Missing reads one byte of
// answer per page. Limits, HugePages and a Reserve with a base read files under /proc and /sys. None
// of them belongs into a frame. [Tracker.Dirty] and Peek do: a system call, and a page fault for each
// page written to. An aligned range costs [Align] more addresses than its class has bytes.
//
// # Failure
//
// Whatever the system refuses comes back as an error that names the operation, the bytes, and the
// system's reason, for which errors.Is works (unix.ENOMEM). Nothing stays mapped but what its owner
// has or the list keeps. An argument or an order of calls that is wrong whatever the system says is
// the caller's bug; the error begins with "platform: BUG:" and nothing has changed.
//
// # Goroutines
//
// All functions may be called from any goroutine. The methods of one Reservation belong to one
// goroutine at a time, except Base, Size and Missing, which may run beside anything.
//
// # Systems
//
// Everything is run on Linux: on amd64, and under an emulator, which has no Track, on arm64 and armv7.
// For Windows and darwin there is all but a base, HugePages, Track and Missing, and on Windows
// Faults, ResidentPeak and ReserveSparse. It is compiled and vetted, and nothing of it has run on
// either system; what ran under Wine, cross/README.md says. Elsewhere every Reserve answers an error
// that wraps errors.ErrUnsupported.
//
//	             Linux                      Windows                      darwin
//	Reserve      mmap, PROT_NONE            VirtualAlloc, MEM_RESERVE    as Linux
//	Commit       mprotect                   VirtualAlloc, MEM_COMMIT     as Linux; the system never refuses
//	Protect      mprotect                   VirtualProtect               as Linux
//	Release      mmap over it, no access    decommit                     as Linux
//	Prefault     MADV_POPULATE_WRITE        each page is touched         each page is touched
//	Lock         mlock, RLIMIT_MEMLOCK      VirtualLock, working set     mlock, RLIMIT_MEMLOCK
//	Track        userfaultfd, pagemap       none                         none
//
// # Builds
//
// With -race the memory is a part of the Go heap ([GoBacked] is true), because the race detector
// sees nothing else: Protect takes no access away, Release clears instead of giving back, Lock,
// HugePages, ReserveSparse, Track and a base are unsupported, and a range beyond 64 GiB or beyond the
// machine's memory is refused. With -asan, whoever poisoned bytes of a range lifts the poison before
// Release: poison belongs to addresses, and these come back.
//
// # Why
//
// Why does a range stay reserved after Release? Somebody may have kept a pointer into it. Were the
// addresses given back, the Go heap, C's malloc or a thread's stack could land there, and a write
// through that pointer would be somebody else's damage. So it meets a page without access, which is a
// fault at once, or the next owner's range. The price: addresses, and memory for the head only.
package platform
