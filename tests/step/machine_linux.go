package step

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// soft returns a limit of the process. ok is false if the resource is unlimited.
func soft(resource int) (limit uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return 0, false
	}
	return r.Cur, r.Cur != unix.RLIM_INFINITY
}

// files returns the soft limit. The Go runtime raises it to the hard one at the start.
func files() (limit uint64, ok bool) { return soft(unix.RLIMIT_NOFILE) }

func addresses() (limit, used uint64, ok bool) {
	if limit, ok = soft(unix.RLIMIT_AS); !ok {
		return 0, 0, false
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &used)
	}
	return limit, used * uint64(os.Getpagesize()), true
}

func lock(bytes uint64) (limit uint64, err error) {
	limit, _ = soft(unix.RLIMIT_MEMLOCK)
	memory, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return limit, err
	}
	defer func() { _ = unix.Munmap(memory) }()
	return limit, unix.Mlock(memory)
}
