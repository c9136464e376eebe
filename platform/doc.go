// Package platform takes memory from the operating system in whole ranges, and reports the limits
// and page faults of the process. Package budget takes its memory from this package.
//
//	r, err := platform.Reserve(0, 64<<20, platform.Head{}) // addresses only
//	if err != nil {
//		return err
//	}
//	defer r.Release()
//	if err := r.Commit(); err != nil { // the system may refuse the memory
//		return err
//	}
//	bytes := unsafe.Slice((*byte)(r.Base()), r.Size())
//
// A range passes through these calls:
//
//	Reserve ---> Commit ---> HugePages, Prefault, Lock
//	   ^           |  ^
//	   |           v  |  Protect, Unprotect, Discard
//	   |         in use
//	   |           |
//	 kept <---- Release
//
// # Names to know
//
//   - [Reserve] takes addresses without memory, anywhere or at a base ([SafeBase]).
//   - [Reservation.Commit] makes the range readable and writable. The system may refuse it.
//   - [Reservation.Prefault] makes every page present, so that no later access costs a page fault.
//     [Reservation.Lock] also keeps the pages present.
//   - [Reservation.Discard] returns the memory of some pages to the system. They stay usable, and
//     are zero.
//   - [Reservation.Release] returns the memory to the system and keeps the addresses for the next
//     Reserve of the same class. [Reservation.Return] keeps only the head.
//   - [ReserveSparse] is for checked builds, which place objects far apart.
//   - [Limits] lists the limits of the process, and how to raise them. [WatchLimits] reports their
//     changes. [Keeps] reports whether Reserve would reuse a range.
//   - [Faults], [ResidentPeak] and [Reservation.Missing] measure page faults and present pages.
//   - [Track] finds the pages of a range that are written to.
//   - [InjectFault] makes a request to the system fail, for tests.
//
// Importing package platform/symbolize gives C frames in the Go traceback of a crash:
//
//	import _ "github.com/upfront-mem/upfront/platform/symbolize"
//
// # The head
//
// The first bytes of a range, as many as Head.Size, are its head. The head stays readable and
// writable after Release, and the next owner finds its contents there. Keep control tables with
// generations in the head. A stale handle then finds that its object is dead, instead of crashing,
// and no generation is used twice.
//
// # How many addresses
//
// A range that the system places has a class: its head (size and kind), and its size rounded up to
// a power of two. The rounded size is also the number of addresses that the range takes. For each
// class the process keeps at most as many ranges as were ever owned at once. So a program that
// reserves and releases for ever doesn't grow, with any sizes in any order. Ranges are neither
// split nor merged, because a head stays at its address. A program that uses one class at a time
// keeps less than four times the addresses that it ever used at once. Each further class adds
// addresses. Where addresses are scarce (RLIMIT_AS, 32 bits), a new range is no larger than
// requested, and a class may keep several ranges of growing size. A range with a chosen base is
// kept for that base.
//
// # Cost
//
// Reserve, Commit and Release take a few system calls each. Prefault and Lock take about the time
// needed to clear the range: go test ./platform -run - -bench . prints both. Missing reads one byte
// per page. Limits, HugePages and a Reserve with a base read files under /proc and /sys. Don't make
// these calls in a frame. [Tracker.Dirty] and [Tracker.Peek] are made for frames: a call is one
// system call, except after [Tracker.MarkAll]. Tracking adds a page fault for each page that is
// written to. An aligned range takes [Align] bytes of addresses more than its class.
//
// # Failure
//
// If the system refuses a request, the error names the operation, the bytes and the system's
// reason. errors.Is finds the reason, such as unix.ENOMEM. Only ranges that are owned or kept stay
// mapped. A wrong argument or a wrong order of calls is the caller's bug: the error begins with
// "platform: BUG:" and nothing has changed.
//
// # Goroutines
//
// All functions may be called from any goroutine. The methods of one Reservation belong to one
// goroutine at a time, except Base, Size and Missing, which may be called at any time.
//
// # Systems
//
// README.md lists the targets, and the operations that each lacks. On other systems, except in race
// builds, Reserve returns an error that wraps errors.ErrUnsupported.
//
//	             Linux                      Windows                      darwin
//	Reserve      mmap, PROT_NONE            VirtualAlloc, MEM_RESERVE    as Linux
//	Commit       mprotect                   VirtualAlloc, MEM_COMMIT     as Linux, never refused
//	Protect      mprotect                   VirtualProtect               as Linux
//	Release      mmap over it, no access    decommit                     as Linux
//	Discard      MADV_DONTNEED              decommit, MEM_COMMIT         mmap over it
//	Prefault     MADV_POPULATE_WRITE        each page is touched         each page is touched
//	Lock         mlock, RLIMIT_MEMLOCK      VirtualLock, working set     mlock, RLIMIT_MEMLOCK
//	Track        userfaultfd, pagemap       none                         none
//
// # Builds
//
// With -race the memory is part of the Go heap ([GoBacked] is true), because the race detector sees
// nothing else. Protect then takes no access away, and Release clears the bytes. Lock, HugePages,
// Discard, ReserveSparse, Track and a base are unsupported. A range beyond 64 GiB or beyond the
// machine's memory is refused.
//
// With -asan, a caller that poisoned bytes of a range lifts the poison before Release, because the
// addresses are used again.
//
// # Why a range stays reserved after Release
//
// A stale pointer may still point into the range. If its addresses were free, the Go heap, C's
// malloc or a thread's stack could be placed there, and a write through the pointer would damage
// unrelated data. In a kept range the write faults at once, or hits the range's next owner. A kept
// range costs addresses, and memory only for the head.
package platform
