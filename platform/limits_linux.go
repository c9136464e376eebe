package platform

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// teller is what the system says about itself; tests put trees of their own in its place.
type teller struct {
	files  fs.FS // the root directory
	rlimit func(resource int) (soft uint64, ok bool)
	memory func() (size uint64, ok bool)
}

var system = teller{os.DirFS("/"), rlimit, memorySize}

// text is what a file holds; nothing where there is none.
func (t teller) text(file string) string {
	text, _ := fs.ReadFile(t.files, strings.TrimPrefix(file, "/"))
	return string(text)
}

// words are those behind the first, which is key, in a line of the file: "VmData:  1234 kB".
func (t teller) words(file, key string) []string {
	for line := range strings.Lines(t.text(file)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == key {
			return words[1:]
		}
	}
	return nil
}

// kilobytes is the size in bytes that a line has in kB.
func (t teller) kilobytes(file, key string) (size uint64, ok bool) {
	words := t.words(file, key)
	if len(words) != 2 || words[1] != "kB" {
		return 0, false
	}
	kib, err := strconv.ParseUint(words[0], 10, 53)
	return kib << 10, err == nil
}

// number is what a file of one number holds. "max" is none.
func (t teller) number(file string) (value uint64, ok bool) {
	value, err := strconv.ParseUint(strings.TrimSpace(t.text(file)), 10, 64)
	return value, err == nil
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

// physical is the machine's memory. Swap is left out: it is no place for pages that are to be present.
func (t teller) physical() []Limit {
	const name, raise = "physical memory", "a machine with more memory, or fewer programs on it"
	total, ok := t.kilobytes("proc/meminfo", "MemTotal:")
	if !ok {
		if total, ok = t.memory(); !ok {
			return nil
		}
		return []Limit{{name, total, 0, raise}}
	}
	available, ok := t.kilobytes("proc/meminfo", "MemAvailable:")
	if !ok {
		available = total
	}
	return []Limit{{name, total, total - min(total, available), raise}}
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
	// A kernel without namespaces has no such file.
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

// lockRefusal says what to do about a lock of size bytes that failed, if the limit is why.
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
