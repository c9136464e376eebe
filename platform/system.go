package platform

// GoBacked reports whether ranges are parts of the Go heap, as in race builds. Such ranges count
// towards the runtime's memory limit, and Protect does nothing.
const GoBacked = goBacked

// Limits returns the bounds that are set, in the order of the bytes that they leave, the smallest
// first. It leaves out a bound that is unlimited, can't be read or makes no sense, and never fails.
// Each limited group of a hierarchy has its own Limit, whose Raise names the group's file.
// RLIMIT_MEMLOCK isn't listed, because Lock reports it. On Windows the list has "commit limit",
// "physical memory" and the limits of the process's innermost job, whose Used counts only this
// process. On darwin it has only "physical memory". On systems other than these and Linux it is
// empty. Limits reads a few dozen small files, so don't call it in a frame.
func Limits() []Limit { return systemLimits() }

// Mappings returns how many mappings the process has, and how many it may have (vm.max_map_count on
// Linux). A range takes a few mappings, and each change of access within a range adds up to two. ok
// is false where the number isn't measured or isn't bounded. Mappings reads a line per mapping, so
// don't call it in a frame.
func Mappings() (used, most uint64, ok bool) { return mappings() }

// Threads returns how many threads the process has, and how many bytes RLIMIT_DATA and RLIMIT_AS
// count for the stack of one more thread. On Linux these are RLIMIT_STACK bytes, or 2 MiB if
// RLIMIT_STACK is unlimited. The program loader reads RLIMIT_STACK once, so a later change affects
// only this result. ok is false where no limit counts stacks.
func Threads() (count int, stack uint64, ok bool) { return threads() }

// Faults returns the page faults of the whole process since its start, the Go runtime's included.
// Minor faults were served from memory, major faults from a disk. ok is false where faults aren't
// measured. Faults allocates nothing, except in builds that check pointers (-asan).
func Faults() (minor, major uint64, ok bool) { return faults() }

// ResidentPeak returns the highest number of bytes that the process had present at once (VmHWM on
// Linux). ok is false where this isn't measured. ResidentPeak reads a file, so don't call it in a
// frame.
func ResidentPeak() (bytes uint64, ok bool) { return residentPeak() }
