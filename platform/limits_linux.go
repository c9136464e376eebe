package platform

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// teller is what the system says about itself; tests put trees of their own in its place.
type teller struct {
	files  fs.FS // the root directory
	rlimit func(resource int) (soft uint64, ok bool)
	memory func() (size uint64, ok bool)
}

func system() teller {
	return teller{os.DirFS("/"), rlimit, memorySize}
}

func limits() []Limit { return system().limits() }

func lockLimit() (bytes uint64, unlimited bool) { return system().lockLimit() }

func rlimit(resource int) (soft uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}

// unlimited tells whether a bound is none: no machine has so much, or no pointer of this target reaches that far.
// Version 1 of cgroups writes the largest signed number, rounded down to its page.
func unlimited(bound uint64) bool { return bound >= 1<<62 || bound > math.MaxUint }

func (t teller) limits() []Limit {
	all := t.cgroups()
	all = append(all, t.rlimits()...)
	all = append(all, t.physical()...)
	sortByRest(all)
	return all
}

func (t teller) rlimits() (all []Limit) {
	status, _ := fs.ReadFile(t.files, "proc/self/status")
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
		used, _ := kilobytes(status, kind.used)
		all = append(all, Limit{kind.name, soft, used, kind.raise})
	}
	return all
}

// physical is the machine's memory. Swap is left out: it is no place for pages that are to be present.
func (t teller) physical() []Limit {
	const name, raise = "physical memory", "a machine with more memory, or fewer programs on it"
	info, _ := fs.ReadFile(t.files, "proc/meminfo")
	total, ok := kilobytes(info, "MemTotal:")
	if !ok {
		if total, ok = t.memory(); !ok {
			return nil
		}
		return []Limit{{name, total, 0, raise}}
	}
	available, ok := kilobytes(info, "MemAvailable:")
	if !ok {
		available = total
	}
	return []Limit{{name, total, total - min(total, available), raise}}
}

// kilobytes finds a line as "VmData:  1234 kB" and gives its size in bytes.
func kilobytes(text []byte, key string) (size uint64, ok bool) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[0]) != key || string(fields[2]) != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(string(fields[1]), 10, 53)
		return kib << 10, err == nil
	}
	return 0, false
}

func (t teller) lockLimit() (bytes uint64, noLimit bool) {
	soft, ok := t.rlimit(unix.RLIMIT_MEMLOCK)
	if ok && unlimited(soft) || t.mayLock() {
		return math.MaxUint64, true
	}
	return soft, false
}

// mayLock tells whether the limit does not hold for the calling thread, as the kernel's capable(CAP_IPC_LOCK) does.
func (t teller) mayLock() bool {
	const firstNamespace = "user:[4026531837]" // PROC_USER_INIT_INO, the same on every machine
	status, err := fs.ReadFile(t.files, "proc/thread-self/status")
	if err != nil {
		if status, err = fs.ReadFile(t.files, "proc/self/status"); err != nil {
			return false
		}
	}
	// A kernel without namespaces has no such file.
	if namespace, err := fs.ReadLink(t.files, "proc/self/ns/user"); err == nil && namespace != firstNamespace {
		return false
	}
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) != 2 || string(fields[0]) != "CapEff:" {
			continue
		}
		rights, err := strconv.ParseUint(string(fields[1]), 16, 64)
		return err == nil && rights>>unix.CAP_IPC_LOCK&1 != 0
	}
	return false
}

// lockRefusal says what to do about a lock of size bytes that failed, if the limit is why.
func (t teller) lockRefusal(size uint64) string {
	limit, noLimit := t.lockLimit()
	status, _ := fs.ReadFile(t.files, "proc/self/status")
	locked, _ := kilobytes(status, "VmLck:")
	if noLimit || locked <= limit && size <= limit-locked {
		return ""
	}
	need := locked + size
	return fmt.Sprintf("RLIMIT_MEMLOCK allows %d bytes, %d are locked already, %d are needed in all: "+
		"raise it (ulimit -l %d, docker run --ulimit memlock=%d, systemd LimitMEMLOCK=%d) or grant CAP_IPC_LOCK",
		limit, locked, need, (need+1023)/1024, need, need)
}
