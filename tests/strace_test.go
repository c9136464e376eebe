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

// The tests of this file, and of others with its build line, don't depend on their own build: they
// read sources, or start release builds of programs. They run in one build only.

// strace runs a program and returns its output and the system calls of all its threads, one a line,
// in their order. Arguments are numbers, except the text of write.
func strace(t *testing.T, name string, args ...string) (stdout []byte, calls []string) {
	t.Helper()
	folder := t.TempDir()
	stdout, err := straceCommand(t, folder, name, args...).Output()
	require.NoError(t, err, string(stdout))
	return stdout, readCalls(t, folder)
}

// straceCommand returns the command; the calls are written to a folder, one file for each thread.
func straceCommand(t *testing.T, folder, name string, args ...string) *exec.Cmd {
	t.Helper()
	tools(t, "strace")
	options := []string{"-ff", "-ttt", "-o", filepath.Join(folder, "trace"), "-e", "raw=!write", "-s", "200"}
	if text, err := exec.Command("strace", "true").CombinedOutput(); err != nil {
		step.Lacks(t, "strace's right to trace ("+strings.TrimSpace(string(text))+")", "")
	}
	return exec.Command("strace", slices.Concat(options, []string{name}, args)...)
}

// readCalls returns the calls of all threads, in their order.
func readCalls(t *testing.T, folder string) (calls []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		calls = append(calls, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(calls) // each starts with its time
	return calls
}

// between returns the lines from the first that contains begin to the last that contains end, and
// the lines before and after.
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

// harmless calls may name any address, because they don't change a page's mapping. They fill, send
// or write a buffer, such as a lump or a datagram, or query page residency (Budget.Missing).
var harmless = []string{"read", "pread64", "write", "pwrite64", "recvmmsg", "sendmmsg", "mincore"}

// veiled calls change memory that their arguments don't name: the arguments point to a list of
// ranges, or the call changes all memory.
var veiled = []string{"mlockall", "munlockall", "process_madvise", "process_vm_writev", "process_mrelease",
	"move_pages", "migrate_pages", "userfaultfd", "ptrace"}

// ranged calls change the memory of a range: an address and a size in bytes.
var ranged = []string{"madvise", "mprotect", "pkey_mprotect", "mmap", "munmap", "mremap", "mlock", "mlock2",
	"munlock", "msync", "mbind", "set_mempolicy_home_node", "remap_file_pages", "map_shadow_stack", "mseal"}

// span is a range of addresses.
type span struct{ base, size uint64 }

func (s span) has(address uint64) bool { return address-s.base < s.size }

// overlaps reports whether two spans share an address. An empty span counts as one address.
func (s span) overlaps(other span) bool {
	return s.has(other.base) || other.base < s.base && other.size > s.base-other.base
}

// findings returns the calls that name an address in s, or change all memory, and aren't harmless.
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
	args, _, _ = strings.Cut(args, " <unfinished") // the call ended with its thread
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
	if len(list) >= 2 && slices.Contains(ranged, name) && s.overlaps(span{list[0], list[1]}) {
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
