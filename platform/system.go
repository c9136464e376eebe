package platform

// GoBacked tells whether ranges are parts of the Go heap, as they are in race builds: they then
// count towards the runtime's memory limit, and Protect does nothing.
const GoBacked = goBacked

// Limits lists the bounds that are set, the one with the smallest rest first; what is unlimited is left out. A group
// within groups has a row for each that is limited, and Raise names its file. RLIMIT_MEMLOCK is not among them:
// Lock names it. On Windows there are "commit limit" and "physical memory", on darwin the latter; elsewhere the list is empty.
//
// It never fails: what cannot be read, or makes no sense, is left out. It reads a few dozen small files: not for a
// frame.
func Limits() []Limit { return systemLimits() }

// Mappings is how many mappings the process has, and how many it may have (vm.max_map_count on Linux): a range is a few,
// and each change of access within a range makes up to two more. ok is false where it is not measured, or nothing bounds
// it. It reads a line per mapping: not for a frame.
func Mappings() (used, most uint64, ok bool) { return mappings() }

// Faults counts the process's page faults since its start: minor ones were served from memory, major ones from a disk.
// They are the whole process's, the Go runtime's included. ok is false where it is not measured. It
// allocates nothing, save in builds that check pointers (-asan).
func Faults() (minor, major uint64, ok bool) { return faults() }

// ResidentPeak is the most memory, in bytes, that the process ever had present at once (VmHWM on Linux). ok is false
// where it is not measured. It reads a file: not for a frame.
func ResidentPeak() (bytes uint64, ok bool) { return residentPeak() }
