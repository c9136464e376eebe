package platform_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// inChild runs the test in a child process. It returns true in the child and false in the parent.
func inChild(t *testing.T) bool {
	const name = "UPFRONT_PLATFORM_CHILD"
	if os.Getenv(name) == t.Name() {
		return true
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), name+"="+t.Name())
	output, err := command.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the emulator starts no programs; on a machine of this target, go test ./platform runs it:", err)
	}
	require.NoError(t, err, "%s", output)
	if _, why, skipped := strings.Cut(string(output), "--- SKIP"); skipped {
		t.Skip("there: ", why)
	}
	return false
}

// ignoresAdvice reports whether an emulator accepts any advice about memory and does nothing.
func ignoresAdvice(t *testing.T) bool {
	return unix.Madvise(contents(commit(t, edge, 0)), 9999) == nil
}

// statusBytes returns a line of /proc/self/status, which has kB, in bytes.
func statusBytes(t testing.TB, key string) (size int) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "\n"+key+":")
	require.True(t, found)
	_, err = fmt.Sscan(rest, &size)
	require.NoError(t, err)
	return size * kib
}

func TestLock(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, 8*edge, edge)
	if platform.GoBacked {
		err := r.Lock()
		assert.ErrorIs(t, err, errors.ErrUnsupported)
		assert.EqualError(t, err, "platform: lock 524288 bytes: unsupported operation: in a race build the memory "+
			"is the Go heap's")
		return
	}
	before := statusBytes(t, "VmLck")
	step.Machine(t, step.LockedMemory(r.Size()))
	contents(r)[3*edge] = 7
	require.NoError(t, r.Lock())
	assert.Equal(t, 8*edge, statusBytes(t, "VmLck")-before)
	if pages, ok := r.Missing(); ok {
		assert.Zero(t, pages)
	}
	assert.Equal(t, byte(7), contents(r)[3*edge])
	require.NoError(t, r.Lock(), "a second time")
	assert.Equal(t, 8*edge, statusBytes(t, "VmLck")-before)
	require.NoError(t, r.Protect(edge, edge))
	require.NoError(t, r.Release())
	assert.Equal(t, before, statusBytes(t, "VmLck"), "the head, too")

	again := commit(t, 8*edge, edge)
	require.Equal(t, r.Base(), again.Base())
	assert.Zero(t, contents(again)[3*edge])
	assert.Equal(t, before, statusBytes(t, "VmLck"), "the next owner has not asked")
}

// TestLockRefused drops the right to lock, which belongs to a thread, and sets a limit, which
// belongs to the process.
func TestLockRefused(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race nothing is locked: go test ./platform runs it")
	}
	if !inChild(t) {
		return
	}
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &rights[0]))
	rights[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	require.NoError(t, unix.Capset(&header, &rights[0]))
	limit := unix.Rlimit{}
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit))
	if limit.Max < 2*edge {
		t.Skip("RLIMIT_MEMLOCK is too low: after ulimit -l unlimited, go test ./platform runs it")
	}
	limit.Cur = 2 * edge
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit))
	bytes, unlimited := platform.LockLimit()
	assert.EqualValues(t, 2*edge, bytes)
	assert.False(t, unlimited)

	small := commit(t, edge, 0)
	require.NoError(t, small.Lock())
	r := commit(t, 3*edge, 0)
	err := r.Lock()
	require.ErrorIs(t, err, unix.ENOMEM)
	assert.EqualError(t, err, "platform: lock 196608 bytes: cannot allocate memory: RLIMIT_MEMLOCK allows 131072 "+
		"bytes, 65536 are locked already, 262144 are needed in all: raise it "+
		"(ulimit -l 256, docker run --ulimit memlock=262144, systemd LimitMEMLOCK=262144) or grant CAP_IPC_LOCK")
	assert.Equal(t, edge, statusBytes(t, "VmLck"), "nothing more is locked")
	require.NoError(t, r.Release())
	require.NoError(t, small.Release())
	assert.Zero(t, statusBytes(t, "VmLck"))

	limit.Cur = 0
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit))
	err = commit(t, edge, 0).Lock()
	assert.ErrorIs(t, err, unix.EPERM, "that is what the system says to a limit of 0")
	assert.ErrorContains(t, err, "RLIMIT_MEMLOCK allows 0 bytes, 0 are locked already, 65536 are needed in all: "+
		"raise it (ulimit -l 64,")
}

// smapsFlag reports whether the mapping at the range's base has a flag: "hg" for huge pages, "nh"
// for no huge pages.
func smapsFlag(t *testing.T, r *platform.Reservation, flag string) bool {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(r.Base())))
	require.True(t, found)
	_, flags, found := strings.Cut(entry, "VmFlags: ")
	require.True(t, found)
	flags, _, _ = strings.Cut(flags, "\n")
	return strings.Contains(" "+flags+" ", " "+flag+" ")
}

func TestHugePages(t *testing.T) {
	platform.ForgetSpares()
	if platform.GoBacked {
		err := commit(t, edge, 0).HugePages()
		assert.ErrorIs(t, err, errors.ErrUnsupported)
		assert.EqualError(t, err, "platform: huge pages for 65536 bytes: unsupported operation: "+
			"in a race build the memory is the Go heap's")
		return
	}
	if ignoresAdvice(t) {
		t.Skip("the emulator ignores madvise: on a machine of this target, go test ./platform runs it")
	}
	const size = 16 * mib
	r, err := platform.Reserve(0, size, platform.Head{Size: 2 * mib})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	assert.Equal(t, hasHuge(), smapsFlag(t, r, "nh"), "nobody has asked")
	if err := r.HugePages(); err != nil {
		assert.ErrorContains(t, err, "platform: huge pages for 16777216 bytes: ")
		t.Skip("with transparent huge pages, go test ./platform runs it:", err)
	}
	assert.True(t, smapsFlag(t, r, "hg"))
	before, _, _ := platform.Faults()
	granted, err := r.Prefault()
	require.NoError(t, err)
	assert.True(t, granted)
	after, _, _ := platform.Faults()
	t.Logf("%d page faults, mode %s", after-before, enabled(t))
	assert.EqualError(t, r.HugePages(), "platform: BUG: huge pages after Prefault or Lock: the pages are there, and "+
		"small")
	require.NoError(t, r.Release())
	assert.EqualError(t, r.HugePages(), "platform: BUG: huge pages of a range already released")

	again, err := platform.Reserve(0, size, platform.Head{Size: 2 * mib})
	require.NoError(t, err)
	defer again.Release()
	require.NoError(t, again.Commit())
	require.Equal(t, r.Base(), again.Base())
	assert.True(t, smapsFlag(t, again, "nh"), "the next owner has not asked")
	assert.NoError(t, again.HugePages())
	assert.True(t, smapsFlag(t, again, "hg"))
}

// hasHuge reports whether the kernel was built with huge pages.
func hasHuge() bool {
	_, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil
}

func enabled(t *testing.T) string {
	text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	require.NoError(t, err)
	return string(text)
}

func TestLockAndHugePagesMisused(t *testing.T) {
	r := reserve(t, 4*edge, 0)
	assert.EqualError(t, r.Lock(), "platform: BUG: lock before Commit")
	require.NoError(t, r.Commit())
	require.NoError(t, r.Protect(0, edge))
	assert.EqualError(t, r.Lock(), "platform: BUG: lock of a range with protected parts: Commit it first")
	require.NoError(t, r.Release())
	assert.EqualError(t, r.Lock(), "platform: BUG: lock of a range already released")
}

func TestLimitsOfThisProcess(t *testing.T) {
	var info unix.Sysinfo_t
	require.NoError(t, unix.Sysinfo(&info))
	find := func(name string) (found platform.Limit, ok bool) {
		all := platform.Limits()
		for i, l := range all {
			assert.NotEmpty(t, l.Raise)
			assert.True(t, i == 0 || all[i-1].Rest() <= l.Rest(), "sorted")
			if l.Name == name {
				found, ok = l, true
			}
		}
		return found, ok
	}
	physical, ok := find("physical memory")
	require.True(t, ok)
	if info.Unit > 1 || physical.Bytes <= math.MaxUint { // else an emulator cuts it to 32 bits
		assert.EqualValues(t, uint64(info.Totalram)*uint64(info.Unit)>>20, physical.Bytes>>20)
	}
	assert.Less(t, physical.Used, physical.Bytes)
	if !inChild(t) {
		return
	}
	for _, c := range []struct {
		name     string
		resource int
		used     string
	}{{"RLIMIT_DATA", unix.RLIMIT_DATA, "VmData"}, {"RLIMIT_AS", unix.RLIMIT_AS, "VmSize"}} {
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(c.resource, &old))
		bytes := min(1<<46, old.Max) // beyond the shadow of asan, which counts
		require.NoError(t, unix.Setrlimit(c.resource, &unix.Rlimit{Cur: bytes, Max: old.Max}))
		before := statusBytes(t, c.used)
		l, ok := find(c.name)
		if !ok {
			t.Skip("the emulator sets no limits: on a machine of this target, go test ./platform runs it")
		}
		after := statusBytes(t, c.used) // the runtime may map memory in between
		assert.Equal(t, bytes, l.Bytes)
		assert.GreaterOrEqual(t, l.Used, uint64(min(before, after)))
		assert.LessOrEqual(t, l.Used, uint64(max(before, after)))
	}
}
