package platform

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

var system = teller{os.DirFS("/"), rlimit, memorySize}

// missing asks for the presence of the pages, a chunk at a time into bytes on the stack: it runs
// around measured ticks and must not allocate.
//
// An emulator that shows larger pages than its host's may return an answer for the host's pages,
// which has more bytes. So the array for a chunk has one byte per 4 KiB, and a mark after the
// expected bytes detects an overrun.
//
// base is a number, because free pages of the Go heap are no place for a pointer: a collection that
// finds one ends the process.
func missing(base uintptr, size uint64) (pages int, ok bool) {
	const pageMin, mark = 4 << 10, 0xAA
	var present [4096]byte // one byte per page; the lowest bit counts
	page := uint64(os.Getpagesize())
	chunk := uint64(len(present)) * pageMin
	for offset := uint64(0); offset < size; offset += chunk {
		part := min(chunk, size-offset)
		asked := present[:part/page]
		marked := len(asked) < len(present)
		if marked {
			present[len(asked)] = mark
		}
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, base+uintptr(offset), uintptr(part),
			uintptr(unsafe.Pointer(&present)))
		if errno != 0 || marked && present[len(asked)] != mark {
			return 0, false
		}
		for _, b := range asked {
			pages += int(^b & 1)
		}
	}
	return pages, true
}

func faults() (minor, major uint64, ok bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, false
	}
	return uint64(usage.Minflt), uint64(usage.Majflt), true
}

// residentPeak reads VmHWM. The peak of getrusage survives exec, so a small program would report
// its big parent's.
func residentPeak() (size uint64, ok bool) { return system.kilobytes("proc/self/status", "VmHWM:") }

func memorySize() (size uint64, ok bool) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, false
	}
	return uint64(info.Totalram) * uint64(info.Unit), true
}

func rlimit(resource int) (soft uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}

func systemLimits() []Limit { return system.limits() }

func threads() (count int, stack uint64, ok bool) { return system.threads() }

func mappings() (used, most uint64, ok bool) { return system.mappings() }
