package platform

import "os"

// GoBacked tells whether ranges are parts of the Go heap, as they are in race builds: they then
// count towards the runtime's memory limit, and Protect does nothing.
const GoBacked = goBacked

// PageSize is the system's page in bytes: 4 KiB on most machines, 16 or 64 KiB on some arm64.
func PageSize() int { return os.Getpagesize() }

// Limits lists the bounds that are set, the one with the smallest rest first; what is unlimited is left out. A group
// within groups has a row for each that is limited, and Raise names its file. RLIMIT_MEMLOCK is not among them: see
// LockLimit. On Windows there are "commit limit" and "physical memory", on darwin the latter; elsewhere the list is empty.
//
// It never fails: what cannot be read, or makes no sense, is left out. It reads a few dozen small files: not for a
// frame.
func Limits() []Limit { return systemLimits() }

// LockLimit is how many bytes the process may lock (Reservation.Lock), what it has locked already included: the soft
// limit RLIMIT_MEMLOCK. unlimited is true when there is none, or the right CAP_IPC_LOCK lifts it; bytes then is the
// largest number. Like the kernel it takes the right of the calling thread, and only in the first user namespace: root
// in a container without privileges has a limit. On Windows it is the least working set of the process. It is 0 where nothing
// can be locked.
func LockLimit() (bytes uint64, unlimited bool) { return systemLockLimit() }

// Faults counts the process's page faults since its start: minor ones were served from memory, major ones from a disk.
// They are the whole process's, the Go runtime's included. ok is false where it is not measured. It
// allocates nothing, save in builds that check pointers (-asan).
func Faults() (minor, major uint64, ok bool) { return faults() }

// ResidentPeak is the most memory, in bytes, that the process ever had present at once (VmHWM on Linux). ok is false
// where it is not measured. It reads a file: not for a frame.
func ResidentPeak() (bytes uint64, ok bool) { return residentPeak() }
