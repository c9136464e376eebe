package platform

import "golang.org/x/sys/unix"

func systemLimits() []Limit {
	size, ok := memorySize()
	if !ok {
		return nil
	}
	return []Limit{physicalMemory(size, 0)}
}

func memorySize() (size uint64, ok bool) {
	size, err := unix.SysctlUint64("hw.memsize")
	return size, err == nil
}

func faults() (minor, major uint64, ok bool) {
	usage, ok := usage()
	return uint64(usage.Minflt), uint64(usage.Majflt), ok
}

// residentPeak reads Maxrss, which has bytes here and kB elsewhere.
func residentPeak() (size uint64, ok bool) {
	usage, ok := usage()
	return uint64(usage.Maxrss), ok
}

func usage() (usage unix.Rusage, ok bool) {
	err := unix.Getrusage(unix.RUSAGE_SELF, &usage)
	return usage, err == nil
}
