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

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

func readMemoryStatus() (s memoryStatus, ok bool) {
	s.length = uint32(unsafe.Sizeof(s))
	if globalMemoryStatus.Find() != nil {
		return s, false
	}
	done, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s)))
	return s, done != 0
}

// systemLimits includes the commit limit: committed pages need room in memory or in the page file,
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
	sortByRest(all)
	return all
}

func memorySize() (size uint64, ok bool) {
	s, ok := readMemoryStatus()
	return s.physical, ok
}

func missing(unsafe.Pointer, uint64) (pages int, ok bool) { return 0, false }

func faults() (minor, major uint64, ok bool) { return 0, 0, false }

func residentPeak() (size uint64, ok bool) { return 0, false }

func threads() (count int, stack uint64, ok bool) { return 0, 0, false }

func mappings() (used, most uint64, ok bool) { return 0, 0, false }
