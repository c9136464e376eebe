package platform

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (t teller) limits() []Limit {
	all := t.cgroups()
	all = append(all, t.rlimits()...)
	all = append(all, t.physical()...)
	sortByRest(all)
	return all
}

func (t teller) rlimits() (all []Limit) {
	for _, kind := range []struct {
		name     string
		resource int
		used     string
		raise    string
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, "VmData:", "ulimit -d (in KiB), systemd LimitDATA"},
		{"RLIMIT_AS", unix.RLIMIT_AS, "VmSize:", "ulimit -v (in KiB), systemd LimitAS"},
	} {
		soft, ok := t.rlimit(kind.resource)
		if !ok || unlimited(soft) {
			continue
		}
		used, _ := t.kilobytes("proc/self/status", kind.used)
		all = append(all, Limit{kind.name, soft, used, kind.raise})
	}
	return all
}

// physical returns the machine's memory. It leaves swap out, which can't hold pages that must be
// present.
func (t teller) physical() []Limit {
	total, ok := t.kilobytes("proc/meminfo", "MemTotal:")
	if !ok {
		if total, ok = t.memory(); !ok {
			return nil
		}
		return []Limit{physicalMemory(total, 0)}
	}
	available, ok := t.kilobytes("proc/meminfo", "MemAvailable:")
	if !ok {
		available = total
	}
	return []Limit{physicalMemory(total, total-min(total, available))}
}

func (t teller) mappings() (used, most uint64, ok bool) {
	used = uint64(strings.Count(t.text("proc/self/maps"), "\n"))
	most, ok = t.number("proc/sys/vm/max_map_count")
	return used, most, ok && used != 0
}

func (t teller) lockLimit() (bytes uint64, noLimit bool) {
	soft, ok := t.rlimit(unix.RLIMIT_MEMLOCK)
	if ok && unlimited(soft) || t.mayLock() {
		return math.MaxUint64, true
	}
	return soft, false
}

// mayLock reports whether the calling thread is free of the limit, as the kernel's
// capable(CAP_IPC_LOCK) does.
func (t teller) mayLock() bool {
	const firstNamespace = "user:[4026531837]" // PROC_USER_INIT_INO, the same on every machine
	// A kernel without namespaces lacks this file.
	if namespace, err := fs.ReadLink(t.files, "proc/self/ns/user"); err == nil && namespace != firstNamespace {
		return false
	}
	words := t.words("proc/thread-self/status", "CapEff:")
	if words == nil {
		words = t.words("proc/self/status", "CapEff:")
	}
	if len(words) != 1 {
		return false
	}
	rights, err := strconv.ParseUint(words[0], 16, 64)
	return err == nil && rights>>unix.CAP_IPC_LOCK&1 != 0
}

// threads reads the limit of stacks as the C library does.
func (t teller) threads() (count int, stack uint64, ok bool) {
	const otherwise = 2 << 20 // ARCH_STACK_DEFAULT_SIZE of glibc
	words := t.words("proc/self/status", "Threads:")
	stack, known := t.rlimit(unix.RLIMIT_STACK)
	if len(words) != 1 || !known {
		return 0, 0, false
	}
	if unlimited(stack) {
		stack = otherwise
	}
	count, err := strconv.Atoi(words[0])
	return count, stack, err == nil
}

// lockRefusal returns advice about a lock of size bytes that failed, "" if the limit isn't the
// reason.
func (t teller) lockRefusal(size uint64) string {
	limit, noLimit := t.lockLimit()
	locked, _ := t.kilobytes("proc/self/status", "VmLck:")
	if noLimit || locked <= limit && size <= limit-locked {
		return ""
	}
	need := locked + size
	return fmt.Sprintf("RLIMIT_MEMLOCK allows %d bytes, %d are locked already, %d are needed in all: "+
		"raise it (ulimit -l %d, docker run --ulimit memlock=%d, systemd LimitMEMLOCK=%d) or grant CAP_IPC_LOCK",
		limit, locked, need, (need+1023)/1024, need, need)
}
