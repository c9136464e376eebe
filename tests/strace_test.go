//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// The tests of this file and of others with its build line say nothing of the build that they are part of: they read the
// sources, or start programs that they build as a release build. To do so in one build of the tests is enough.

// strace runs a program and gives what it printed and each call of the system that any of its threads made, one a line, in
// their order, with the arguments as numbers; only what write writes is text.
func strace(t *testing.T, name string, args ...string) (stdout []byte, calls []string) {
	t.Helper()
	folder := t.TempDir()
	stdout, err := straceCommand(t, folder, name, args...).Output()
	require.NoError(t, err, string(stdout))
	return stdout, readCalls(t, folder)
}

// straceCommand is that of a program whose calls come into files of a folder, one for each thread.
func straceCommand(t *testing.T, folder, name string, args ...string) *exec.Cmd {
	t.Helper()
	tools(t, "strace")
	options := []string{"-ff", "-ttt", "-o", filepath.Join(folder, "trace"), "-e", "raw=!write", "-s", "200"}
	if text, err := exec.Command("strace", "true").CombinedOutput(); err != nil {
		step.Lacks(t, "strace's right to trace ("+strings.TrimSpace(string(text))+")", "")
	}
	return exec.Command("strace", slices.Concat(options, []string{name}, args)...)
}

// readCalls gives the calls of all threads, in their order.
func readCalls(t *testing.T, folder string) (calls []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		calls = append(calls, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(calls) // each begins with its time
	return calls
}

// between cuts out the lines between the first that has begin in it and the last that has end.
func between(t *testing.T, lines []string, begin, end string) (before, inside, after []string) {
	t.Helper()
	has := func(mark string) func(string) bool {
		return func(line string) bool { return strings.Contains(line, mark) }
	}
	from := slices.IndexFunc(lines, has(begin))
	require.GreaterOrEqual(t, from, 0, begin)
	to := len(lines) - 1
	for to > from && !has(end)(lines[to]) {
		to--
	}
	require.Greater(t, to, from, end)
	return lines[:from], lines[from+1 : to], lines[to+1:]
}

// harmless calls may name any address, as none of them changes what the system does for a page: they fill a buffer, such
// as a lump that is read into a region or a datagram that came, send or write one, or ask whether pages are present
// (Budget.Missing).
var harmless = []string{"read", "pread64", "write", "pwrite64", "recvmmsg", "sendmmsg", "mincore"}

// veiled calls change memory that isn't named in their arguments: a list of ranges lies elsewhere, or all is meant.
var veiled = []string{"mlockall", "munlockall", "process_madvise", "process_vm_writev", "process_mrelease", "move_pages",
	"migrate_pages", "userfaultfd", "ptrace"}

// ranged calls change the memory of a range: an address and a size in bytes.
var ranged = []string{"madvise", "mprotect", "pkey_mprotect", "mmap", "munmap", "mremap", "mlock", "mlock2", "munlock", "msync",
	"mbind", "set_mempolicy_home_node", "remap_file_pages", "map_shadow_stack", "mseal"}

// span is a range of addresses.
type span struct{ base, size uint64 }

func (s span) has(address uint64) bool { return address-s.base < s.size }

// meets says whether it has an address in common with another; what is empty still has a place.
func (s span) meets(other span) bool {
	return s.has(other.base) || other.base < s.base && other.size > s.base-other.base
}

// findings are the calls that name an address inside, or mean one, and aren't harmless: by name and as lines.
func (s span) findings(lines []string) (names, found []string) {
	for _, line := range lines {
		if name, ok := s.finding(line); ok {
			names, found = append(names, name), append(found, line)
		}
	}
	return names, found
}

func (s span) finding(line string) (name string, ok bool) {
	_, text, _ := strings.Cut(line, " ")                                  // after the time
	if strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---") { // an exit, a signal
		return "", false
	}
	name, args, isCall := strings.Cut(text, "(")
	switch {
	case !isCall:
		return "a line that is no call", true
	case slices.Contains(harmless, name):
		return "", false
	case slices.Contains(veiled, name):
		return name, true
	}
	args, _, _ = strings.Cut(args, " <unfinished") // it ended with its thread
	args, _, _ = strings.Cut(args, ")")
	var list []uint64
	for arg := range strings.SplitSeq(args, ", ") {
		if arg == "" {
			continue
		}
		number, err := strconv.ParseUint(arg, 0, 64)
		if err != nil {
			return fmt.Sprintf("%s with %q", name, arg), true
		}
		list = append(list, number)
	}
	if len(list) >= 2 && slices.Contains(ranged, name) && s.meets(span{list[0], list[1]}) {
		return name, true
	}
	return name, slices.ContainsFunc(list, s.has)
}

func TestFindingsInATrace(t *testing.T) {
	s := span{0x7f0000100000, 0x10000}
	for line, want := range map[string]string{
		"9.1 madvise(0x7f000010ffff, 0x1, 0x4) = 0":                           "madvise",
		"9.1 madvise(0x7f0000110000, 0x1000, 0x4) = 0":                        "",
		"9.1 madvise(0x7f00000ff000, 0x1000, 0x4) = 0":                        "",
		"9.1 madvise(0x7f00000ff000, 0x1001, 0x4) = 0":                        "madvise",
		"9.1 munmap(0, 0x7fffffffffff) = -1 (errno 22)":                       "munmap",
		"9.1 mprotect(0x7f0000108000, 0, 0) = 0":                              "mprotect",
		"9.1 mmap(0, 0x1000, 0x3, 0x22, 0xffffffff, 0) = 0x7f0000110000":      "",
		"9.1 mremap(0x7f0000110000, 0x1000, 0x1000, 0x3, 0x7f0000108000) = 1": "mremap",
		"9.1 process_madvise(0x3, 0x55550000, 0x1, 0x4, 0) = 0x1000":          "process_madvise",
		"9.1 ioctl(0x3, 0xc018aa3f, 0x7f0000108000) = 0":                      "ioctl",
		"9.1 mincore(0x7f0000100000, 0x10000, 0x55550000) = 0":                "",
		"9.1 write(3, \"budget madvise(0x7f0000108000, 1)\\n\", 3) = 3":       "",
		"9.1 exit_group(0 <unfinished ...>":                                   "",
		"9.1 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=1} ---":    "",
		"9.1 madvise(NULL, 4096, MADV_DONTNEED) = 0":                          `madvise with "NULL"`,
		"strace: no trace": "a line that is no call",
	} {
		names, lines := s.findings([]string{line})
		if want == "" {
			assert.Empty(t, names, line)
			continue
		}
		assert.Equal(t, []string{want}, names, line)
		assert.Equal(t, []string{line}, lines)
	}
}
