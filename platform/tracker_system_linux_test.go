package platform_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

func trackFiles(t *testing.T) (fds []int) {
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		to, err := os.Readlink(link)
		ours := strings.Contains(to, "[userfaultfd]") || strings.HasSuffix(to, "/pagemap")
		if err == nil && ours {
			var fd int
			_, err := fmt.Sscan(filepath.Base(link), &fd)
			require.NoError(t, err)
			fds = append(fds, fd)
		}
	}
	return fds
}

func TestCloseGivesAllBack(t *testing.T) {
	r := present(t, 16)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	fds := trackFiles(t)
	require.Len(t, fds, 2)
	for _, fd := range fds {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		assert.NotZero(t, flags&unix.FD_CLOEXEC)
	}
	assert.True(t, smapsFlag(t, r, "uw"), "watched")
	b[1]++
	require.NoError(t, exec.Command("true").Run()) // it shares no tracked page
	exactly(t, k, r.Size(), 0)
	require.NoError(t, k.Close())
	assert.Empty(t, trackFiles(t))
	assert.False(t, smapsFlag(t, r, "uw"))
	assert.EqualError(t, k.Close(), "platform: BUG: close of a tracker already closed")
	_, _, err := k.Dirty()
	assert.EqualError(t, err, "platform: BUG: dirty pages of a tracker already closed")
	_, _, err = k.Peek()
	assert.EqualError(t, err, "platform: BUG: dirty pages of a tracker already closed")
	b[1]++ // no fault follows

	before, _, _ := platform.Mappings()
	for range 200 {
		k, err := platform.Track(r.Base(), r.Size())
		require.NoError(t, err)
		b[0]++
		exactly(t, k, r.Size(), 0)
		require.NoError(t, k.Close())
	}
	after, _, _ := platform.Mappings()
	assert.Less(t, after, before+100)
	assert.Empty(t, trackFiles(t))
}

func TestReleaseOfATrackedRange(t *testing.T) {
	platform.ForgetSpares()
	page := os.Getpagesize()
	r := present(t, 16)
	k := track(t, r.Base(), r.Size())
	contents(r)[3*page]++
	require.NoError(t, r.Release())
	_, _, err := k.Dirty()
	assert.ErrorIs(t, err, syscall.EPERM)
	assert.EqualError(t, err, fmt.Sprintf("platform: dirty pages of %d bytes: "+
		"PAGEMAP_SCAN: operation not permitted: a part of the range was mapped again", r.Size()))
	again := present(t, 16)
	require.Equal(t, r.Base(), again.Base())
	_, _, err = k.Dirty()
	assert.ErrorIs(t, err, syscall.EPERM, "the next owner's pages are nobody's concern")
	next, err := platform.Track(again.Base(), again.Size())
	require.NoError(t, err)
	contents(again)[5*page]++
	require.NoError(t, k.Close())
	exactly(t, next, again.Size(), 5)
	require.NoError(t, next.Close())
	assert.Empty(t, trackFiles(t))
}

func TestTrackMisused(t *testing.T) {
	page := uint64(os.Getpagesize())
	r := reserve(t, edge, 0)
	for _, c := range []struct{ offset, size uint64 }{
		{1, page}, {0, page - 1}, {0, 0}, {8, edge - 8},
	} {
		_, err := platform.Track(unsafe.Add(r.Base(), c.offset), c.size)
		assert.ErrorContains(t, err, fmt.Sprintf("platform: BUG: track %d bytes at 0x", c.size))
		assert.ErrorContains(t, err, fmt.Sprintf(": not multiples of the page, %d bytes", page))
	}
	assert.Empty(t, trackFiles(t))
}

func TestTrackInARaceBuild(t *testing.T) {
	if !platform.GoBacked {
		t.Skip("only a race build has such ranges: go test -race ./platform runs it")
	}
	_, err := platform.Track(commit(t, edge, 0).Base(), edge)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.EqualError(t, err, "platform: track 65536 bytes: unsupported operation: "+
		"in a race build the memory is the Go heap's")
}

func TestDirtyAllocatesNothing(t *testing.T) {
	r := present(t, 64)
	k := track(t, r.Base(), r.Size())
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		contents(r)[0]++
		for _, next := range []nextRuns{k.Peek, k.Dirty} {
			if runs, _, err := next(); err != nil || len(runs) == 0 {
				panic(fmt.Sprint(runs, err))
			}
		}
	}))
}

// onAThread runs f on a thread of its own, which ends with its changed rights.
func onAThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// TestTrackNeedsNoRight drops all capabilities. vm.unprivileged_userfaultfd is 0 on most machines.
func TestTrackNeedsNoRight(t *testing.T) {
	r := present(t, 4)
	require.NoError(t, track(t, r.Base(), r.Size()).Close())
	onAThread(func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		assert.NoError(t, unix.Capset(&header, &none[0]))
		fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
		if errno == 0 {
			assert.NoError(t, unix.Close(int(fd)))
		}
		t.Log("for all faults, userfaultfd says: ", errno)
		k, err := platform.Track(r.Base(), r.Size())
		if assert.NoError(t, err) {
			contents(r)[0]++
			exactly(t, k, r.Size(), 0)
			assert.NoError(t, k.Close())
		}
	})
}

// refuse makes the system refuse a call of this thread. If argument isn't 0, only a call with this
// second argument is refused.
func refuse(t *testing.T, call, argument uint32, errno syscall.Errno) {
	const data, argument1 = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 24
	const jump, action = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.SECCOMP_RET_ERRNO
	equal := func(value uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: jump, K: value, Jf: otherwise}
	}
	program := []unix.SockFilter{
		{Code: data, K: 0}, equal(call, 4),
		{Code: data, K: argument1}, equal(argument, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: action | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: action | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if argument != 0 {
		program[4].K, program[5].K = action|uint32(errno), unix.SECCOMP_RET_ALLOW
	}
	list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	assert.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	assert.NoError(t, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&list)), 0, 0))
}

// TestTrackRefused makes the system refuse each step as older kernels and filters of containers do.
func TestTrackRefused(t *testing.T) {
	r := present(t, 4)
	require.NoError(t, track(t, r.Base(), r.Size()).Close(), "control: it isn't refused by itself")
	const api, register, scan = 0xC018AA3F, 0xC020AA00, 0xC0606610 // as in C's headers
	const old = "the kernel has no asynchronous write-protection: " +
		"it takes Linux 6.7, and 6.10 on arm64"
	const forbidden = "it needs no privilege, so a filter of system calls forbids it, " +
		"as Docker's own does: " +
		"allow userfaultfd in a profile (docker run --security-opt seccomp=FILE)"
	for _, c := range []struct {
		call, argument uint32
		errno          syscall.Errno
		step, lack     string // no lack: another error than errors.ErrUnsupported
	}{
		{unix.SYS_USERFAULTFD, 0, unix.ENOSYS, "userfaultfd",
			"the kernel is without it (CONFIG_USERFAULTFD)"},
		{unix.SYS_USERFAULTFD, 0, unix.EPERM, "userfaultfd", forbidden},
		{unix.SYS_USERFAULTFD, 0, unix.EACCES, "userfaultfd", forbidden},
		{unix.SYS_USERFAULTFD, 0, unix.EINVAL, "userfaultfd", old},
		{unix.SYS_USERFAULTFD, 0, unix.EMFILE, "userfaultfd", ""},
		{unix.SYS_IOCTL, api, unix.EINVAL, "UFFDIO_API", old},
		{unix.SYS_IOCTL, register, unix.ENOMEM, "UFFDIO_REGISTER", ""},
		{unix.SYS_OPENAT, 0, unix.ENOENT, "open /proc/self/pagemap",
			"no /proc, or a kernel without CONFIG_PROC_PAGE_MONITOR"},
		{unix.SYS_OPENAT, 0, unix.EACCES, "open /proc/self/pagemap",
			"the process may not look at itself (PR_SET_DUMPABLE)"},
		{unix.SYS_OPENAT, 0, unix.EMFILE, "open /proc/self/pagemap", ""},
		{unix.SYS_IOCTL, scan, unix.ENOTTY, "PAGEMAP_SCAN", old},
		{unix.SYS_IOCTL, scan, unix.ENOMEM, "PAGEMAP_SCAN", ""},
	} {
		var err error
		onAThread(func() {
			refuse(t, c.call, c.argument, c.errno)
			_, err = platform.Track(r.Base(), r.Size())
		})
		text := fmt.Sprintf("%s: %s", c.step, c.errno.Error())
		if c.lack != "" {
			text = fmt.Sprintf("unsupported operation: %s: %s", text, c.lack)
		}
		assert.EqualError(t, err, fmt.Sprintf("platform: track %d bytes: %s", r.Size(), text))
		assert.ErrorIs(t, err, c.errno)
		assert.Equal(t, c.lack != "", errors.Is(err, errors.ErrUnsupported), text)
		assert.Empty(t, trackFiles(t), text)
		assert.False(t, smapsFlag(t, r, "uw"), text)
	}
	restore := platform.InjectFault("track", 1)
	_, err := platform.Track(r.Base(), r.Size())
	assert.True(t, restore())
	assert.EqualError(t, err, fmt.Sprintf("platform: track %d bytes: injected fault: %s", r.Size(),
		"cannot allocate memory"))
}

// TestDirtyIsOneSystemCall traces itself. The Go runtime's own calls don't count.
func TestDirtyIsOneSystemCall(t *testing.T) {
	const name, calls, begin, end = "UPFRONT_PLATFORM_TRACED", 50, "rounds begin", "rounds end"
	page := os.Getpagesize()
	r := present(t, 64)
	k := track(t, r.Base(), r.Size())
	if os.Getenv(name) != "" {
		runtime.LockOSThread()
		_, _ = unix.Write(-1, []byte(begin))
		for i := range calls {
			contents(r)[i*page]++
			if _, more, err := k.Peek(); more || err != nil {
				panic(fmt.Sprint(more, err))
			}
			if _, more, err := k.Dirty(); more || err != nil {
				panic(fmt.Sprint(more, err))
			}
		}
		_, _ = unix.Write(-1, []byte(end))
		return
	}
	step.Needs(t, step.Check)
	tool, err := exec.LookPath("strace")
	if err != nil {
		step.Lacks(t, "strace", "strace")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	command := exec.Command(tool, "-f", "-o", trace, os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), name+"=1")
	output, err := command.CombinedOutput()
	if err != nil && strings.Contains(string(output), "PTRACE_TRACEME") {
		step.Lacks(t, "strace's right to trace", "")
	}
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	made, inside, thread := map[string]int{}, false, ""
	call := regexp.MustCompile(`^(\d+) +(\w+)\((.*)`)
	for line := range strings.Lines(string(text)) {
		m := call.FindStringSubmatch(line)
		switch {
		case m == nil:
		case strings.Contains(m[3], begin):
			inside, thread = true, m[1]
		case m[1] != thread:
		case strings.Contains(m[3], end):
			inside = false
		case inside:
			made[m[2]]++
		}
	}
	require.NotEmpty(t, thread)
	t.Log(made)
	assert.Equal(t, 2*calls, made["ioctl"])
	for _, other := range []string{"ioctl", "futex", "rt_sigreturn", "madvise", "mmap", "munmap",
		"sched_yield", "nanosleep", "tgkill", "getpid", "epoll_pwait", "rt_sigprocmask", "gettid",
		"timer_settime"} {
		delete(made, other)
	}
	assert.Empty(t, made)
}

// BenchmarkTrack writes to 5 % of 64 MiB and measures the writes with their faults, Dirty
// and copies of the dirty pages, next to a copy of all. The pages are random in each round, or
// always the same; every round is a Dirty, or one of eight.
func BenchmarkTrack(b *testing.B) {
	const size = 64 * mib
	page := os.Getpagesize()
	r := present(b, size/page)
	from, to := contents(r), contents(present(b, size/page))
	k := track(b, r.Base(), r.Size())
	for _, c := range []struct {
		name   string
		random bool
		dirty  int
	}{{"random", true, 1}, {"same", false, 1}, {"same,peek", false, 8}} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			pages := random.Perm(size / page)[:size/page/20]
			var whole, writes, rest time.Duration
			for i := 0; b.Loop(); i++ {
				if c.random {
					pages = random.Perm(size / page)[:size/page/20]
				}
				start := time.Now()
				copy(to, from)
				whole += time.Since(start)
				start = time.Now()
				for _, p := range pages {
					from[p*page]++
				}
				writes += time.Since(start)
				start = time.Now()
				next, copied := k.Peek, 0
				if i%c.dirty == 0 {
					next = k.Dirty
				}
				for more := true; more; {
					var runs []platform.PageRun
					runs, more, _ = next()
					for _, run := range runs {
						copied += copy(to[run.Offset:], from[run.Offset:run.Offset+run.Size])
					}
				}
				rest += time.Since(start)
				if copied < len(pages)*page {
					b.Fatal(copied, " bytes were copied of ", len(pages)*page)
				}
			}
			b.ReportMetric(0, "ns/op") // the sum means nothing
			for unit, of := range map[string]time.Duration{
				"memcpy-µs": whole, "writes-µs": writes, "dirty+copy-µs": rest,
			} {
				b.ReportMetric(float64(of.Microseconds())/float64(b.N), unit)
			}
			b.ReportMetric(float64(writes+rest)/float64(whole), "of-memcpy")
		})
	}
}
