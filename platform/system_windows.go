package platform

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX, which package windows lacks.
type memoryStatus struct {
	length, load               uint32
	physical, physicalFree     uint64
	commit, commitFree         uint64 // of this process, within the limit of its job
	virtual, virtualFree, none uint64
}

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	length, faults           uint32
	residentPeak, resident   uintptr
	_                        [4]uintptr
	committed, committedPeak uintptr
}

var (
	kernel32           = windows.NewLazySystemDLL("kernel32.dll")
	globalMemoryStatus = kernel32.NewProc("GlobalMemoryStatusEx")
	processMemoryInfo  = kernel32.NewProc("K32GetProcessMemoryInfo")
	queryJob           = kernel32.NewProc("QueryInformationJobObject")
)

func readMemoryStatus() (s memoryStatus, ok bool) {
	s.length = uint32(unsafe.Sizeof(s))
	done, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s)))
	return s, done != 0
}

func readMemoryCounters() (c memoryCounters, ok bool) {
	c.length = uint32(unsafe.Sizeof(c))
	done, _, _ := processMemoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)),
		uintptr(c.length))
	return c, done != 0
}

// systemLimits includes the commit limit: committed pages need space in memory or in the page file,
// so their sum bounds a Commit before memory does.
func systemLimits() []Limit {
	s, ok := readMemoryStatus()
	if !ok {
		return nil
	}
	all := []Limit{
		{"commit limit", s.commit, s.commit - min(s.commit, s.commitFree), "a larger page file, or fewer programs"},
		physicalMemory(s.physical, s.physical-min(s.physical, s.physicalFree)),
	}
	all = append(all, jobLimits()...)
	sortByRest(all)
	return all
}

func jobLimits() []Limit {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	const ownJob = 0
	done, _, _ := queryJob.Call(ownJob, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)),
		unsafe.Sizeof(info), 0)
	if done == 0 {
		return nil // the process has no job
	}
	counters, _ := readMemoryCounters()
	return limitsOfJob(&info, uint64(counters.committed))
}

// limitsOfJob returns the limits of the innermost job. A process can't query the jobs around it.
func limitsOfJob(info *windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION, committed uint64) (all []Limit) {
	for _, kind := range []struct {
		flag        uint32
		name, raise string
		size        uintptr
	}{
		{windows.JOB_OBJECT_LIMIT_JOB_MEMORY, "job memory limit",
			"docker run --memory, or JobMemoryLimit of the job object", info.JobMemoryLimit},
		{windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY, "job process memory limit", "ProcessMemoryLimit of the job object",
			info.ProcessMemoryLimit},
	} {
		if info.BasicLimitInformation.LimitFlags&kind.flag != 0 && kind.size != 0 {
			all = append(all, Limit{kind.name, uint64(kind.size), committed, kind.raise})
		}
	}
	return all
}

func memorySize() (size uint64, ok bool) {
	s, ok := readMemoryStatus()
	return s.physical, ok
}

func faults() (minor, major uint64, ok bool) { return 0, 0, false }

func residentPeak() (size uint64, ok bool) {
	c, ok := readMemoryCounters()
	return uint64(c.residentPeak), ok
}
