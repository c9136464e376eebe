//go:build amd64 && !race && !asan && !checked && !upfront_cgo

package save_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

var failingPlan = budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
	{Name: "level", Size: 256 * budget.KiB, State: true, Track: true, Trim: budget.TrimEmpty},
	{Name: "temp", Size: 64 * budget.KiB}}, Frame: budget.FramePlan{Buffers: 1, Size: budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 1, Size: budget.KiB}, GoHeap: budget.Rest,
	Pages: budget.Pages{Guards: budget.Wished, Huge: budget.Wished, Prefault: budget.Wished}}

// failingLife takes a budget from Open to Close, with snapshots, a saved file and checkpoints. It
// returns the lines of the report about refusals, and the first error.
func failingLife(dir string) (lines []string, err error) {
	ctx := context.Background()
	step := func(name string, errs ...error) bool {
		if e := errors.Join(errs...); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, e))
		}
		return err == nil
	}
	b, e := budget.Open(failingPlan)
	if !step("Open", e) {
		return nil, err
	}
	defer func() {
		lines = append(lines, b.Report().NotGranted...)
		step("Close", b.Close())
	}()
	p := &pond{}
	level := b.Region("level")
	_, e = budget.Load(ctx, level, func(s scope.Scope) (*pond, error) {
		p.state, p.room = save.Begin(level, s, roomMaker)
		p.flies = flyMaker.Pool(s, fliesMost)
		p.ring = save.NewRing(s, 3, p.state)
		return p, nil
	})
	if !step("Load", e) {
		return nil, err
	}
	fly := p.flies.Get()
	if !step("Take", p.ring.Take(1)) {
		return nil, err
	}
	fly.At = 9
	if !step("Take", p.ring.Take(2)) {
		return nil, err
	}
	fly.At = 7
	if !step("Restore", p.ring.Restore(ctx, 1)) {
		return nil, err
	}
	if fly.At != 0 {
		step("Restore", errors.New("another state"))
		return nil, err
	}
	name := filepath.Join(dir, "pond")
	for slots := 1; slots <= 2; slots++ { // in a new file, and moved to a larger one
		c, e := save.OpenCheckpoints(name, save.CheckpointPlan{Slots: slots, Size: 32 << 10, Own: 8})
		if !step(fmt.Sprint("OpenCheckpoints ", slots), e) {
			return nil, err
		}
		mine, e := c.Attach(0, p.ring)
		if e == nil {
			e = mine.Write(1, []byte("frogs"))
		}
		if e == nil {
			e = c.Sync()
		}
		if !step(fmt.Sprint("Checkpoint ", slots), e, c.Close()) {
			return nil, err
		}
	}
	f, e := os.Create(filepath.Join(dir, "file"))
	if e == nil {
		e = errors.Join(p.ring.Write(f, 2), f.Close())
	}
	if !step("file", e) {
		return nil, err
	}
	text, e := os.ReadFile(f.Name())
	if e == nil {
		_, e = p.ring.Read(bytes.NewReader(text))
	}
	if !step("file", e, os.Remove(f.Name()), os.Remove(name)) {
		return nil, err
	}
	_, e = b.Region("temp").Trim(ctx)
	if !step("Trim", e) {
		return nil, err
	}
	if !step("Rewind", level.Rewind(ctx)) {
		return nil, err
	}
	locked, e := budget.Open(budget.Plan{Name: "locked", Scratch: budget.ScratchPlan{Workers: 1, Size: 1},
		Pages: budget.Pages{Lock: budget.Wished}})
	if !step("Lock", e) {
		return nil, err
	}
	lines = locked.Report().NotGranted
	step("Unlock", locked.Close())
	return lines, err
}

// failing returns the error of a system call that fails.
func failing(call uint64) unix.Errno {
	switch call {
	case unix.SYS_OPENAT, unix.SYS_DUP3, unix.SYS_INOTIFY_INIT1, unix.SYS_EPOLL_CTL:
		return unix.EMFILE
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FALLOCATE, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
		unix.SYS_INOTIFY_ADD_WATCH:
		return unix.ENOSPC
	case unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MLOCK, unix.SYS_MUNLOCK, unix.SYS_MUNMAP,
		unix.SYS_MINCORE, unix.SYS_USERFAULTFD, unix.SYS_IOCTL:
		return unix.ENOMEM
	}
	return unix.EIO
}

// failingMark is a number that no prctl has. The tracer answers this call.
const failingMark = 0x7506

// callOf names a system call of a thread, with the file, the advice or the access that it is about.
func callOf(thread int, r *unix.PtraceRegs) string {
	name := failingNames[r.Orig_rax]
	if name == "" {
		name = fmt.Sprint("call ", r.Orig_rax)
	}
	text := func(at uint64) string {
		var b [256]byte
		n, _ := unix.PtracePeekData(thread, uintptr(at), b[:])
		text, _, _ := bytes.Cut(b[:n], []byte{0})
		return string(text)
	}
	switch r.Orig_rax {
	case unix.SYS_OPENAT, unix.SYS_READLINKAT, unix.SYS_UNLINKAT, unix.SYS_NEWFSTATAT, unix.SYS_RENAMEAT:
		return name + " " + text(r.Rsi)
	case unix.SYS_STAT, unix.SYS_STATFS:
		return name + " " + text(r.Rdi)
	case unix.SYS_MADVISE, unix.SYS_MPROTECT:
		return fmt.Sprint(name, " ", r.Rdx)
	case unix.SYS_MMAP:
		return fmt.Sprintf("%s %#x", name, r.R10)
	case unix.SYS_IOCTL:
		return fmt.Sprintf("%s %#x", name, r.Rsi)
	case unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_FSTAT, unix.SYS_CLOSE,
		unix.SYS_FCNTL, unix.SYS_FALLOCATE, unix.SYS_FLOCK, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FSTATFS:
		file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, int32(r.Rdi)))
		return name + " " + file
	}
	return name
}

var failingNames = map[uint64]string{unix.SYS_OPENAT: "openat", unix.SYS_READLINKAT: "readlinkat",
	unix.SYS_UNLINKAT: "unlinkat", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_RENAMEAT: "renameat",
	unix.SYS_STAT: "stat", unix.SYS_STATFS: "statfs", unix.SYS_MADVISE: "madvise", unix.SYS_MPROTECT: "mprotect",
	unix.SYS_MMAP: "mmap", unix.SYS_IOCTL: "ioctl", unix.SYS_READ: "read", unix.SYS_WRITE: "write",
	unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64", unix.SYS_FSTAT: "fstat", unix.SYS_CLOSE: "close",
	unix.SYS_FCNTL: "fcntl", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FLOCK: "flock",
	unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FSYNC: "fsync", unix.SYS_FSTATFS: "fstatfs",
	unix.SYS_MUNMAP: "munmap", unix.SYS_MLOCK: "mlock", unix.SYS_MUNLOCK: "munlock", unix.SYS_MINCORE: "mincore",
	unix.SYS_USERFAULTFD: "userfaultfd", unix.SYS_MSYNC: "msync", unix.SYS_GETRUSAGE: "getrusage",
	unix.SYS_SYSINFO: "sysinfo", unix.SYS_PRLIMIT64: "prlimit64", unix.SYS_GETRLIMIT: "getrlimit",
	unix.SYS_EPOLL_CTL: "epoll_ctl", unix.SYS_GETEUID: "geteuid", unix.SYS_INOTIFY_INIT1: "inotify_init1",
	unix.SYS_INOTIFY_ADD_WATCH: "inotify_add_watch", unix.SYS_GETDENTS64: "getdents64",
	unix.SYS_CLOCK_GETTIME: "clock_gettime"}

// failure is a system call of a life that fails: the n-th of its name.
type failure struct {
	call string
	n    int
	with unix.Errno
}

func (f failure) String() string { return fmt.Sprintf("%s, call %d: %v", f.call, f.n, f.with) }

// TestEachSystemCallFails fails each system call of a budget's life once, in another process. Then
// the life has an error, or a line in its report, that names the refusal. Or it goes on as before,
// where the call only serves a report. The next life succeeds, and no file stays open.
func TestEachSystemCallFails(t *testing.T) {
	const variable = "UPFRONT_SAVE_FAILING"
	if dir := os.Getenv(variable); dir != "" {
		failingChild(t, dir)
		return
	}
	dir := t.TempDir()
	child := traced(t, "TestEachSystemCallFails", variable+"="+dir)
	child.begins(t)
	most := 1
	if step.Now() == step.Soak {
		most = 3
	}
	var library uint64 // the place of package syscall's instruction; the runtime has others
	var failures []failure
	seen := map[string]int{}
	for round := 0; ; {
		regs, entry := child.enters(t)
		isMark := regs.Orig_rax == unix.SYS_PRCTL && regs.Rdi == failingMark
		answer, isOurs := uint64(0), false
		switch {
		case isMark && regs.Rsi == 0: // a life begins
			library, isOurs = regs.Rip, true
			clear(seen)
			if round > len(failures) {
				answer = 1
			}
		case isMark: // a life ends
			library, isOurs = 0, true
			round++
		case regs.Rip != library:
		default:
			call := callOf(child.thread, &regs)
			seen[call]++
			isTried := seen[call] <= most || strings.Contains(call, "boot_id")
			if f := (failure{call, seen[call], failing(regs.Orig_rax)}); round == 0 && isTried {
				if failingOwn.MatchString(call) || most == 1 && failingLong.MatchString(call) {
					break
				}
				failures = append(failures, f)
				if most > 1 {
					failures = append(failures, failure{call, f.n, unix.EINTR})
				}
				if most > 1 && strings.HasPrefix(call, "openat /") { // no /proc, no /sys
					failures = append(failures, failure{call, f.n, unix.ENOENT})
				}
			} else if round > 0 && failures[round-1].call == call && failures[round-1].n == f.n {
				answer, isOurs = -uint64(failures[round-1].with), true
			}
		}
		child.leaves(t, isOurs, answer, &entry)
		if isMark && answer == 1 {
			break
		} else if isMark && regs.Rsi == 1 { // it runs until it stops itself
			require.NoError(t, unix.PtraceCont(child.thread, 0))
			child.waits(t)
		}
	}
	child.ends(t)
	text, err := os.ReadFile(filepath.Join(dir, "outcomes"))
	require.NoError(t, err)
	outcomes := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, outcomes, len(failures)+1)
	quiet := 0
	for i, f := range failures {
		outcome := outcomes[i+1]
		t.Logf("%v => %s", f, outcome)
		assert.NotContains(t, outcome, "LEAK", "%v", f)
		isRetried := f.with == unix.EINTR
		if outcome == "" {
			quiet++
			isQuiet := failingQuietly.MatchString(f.call) && !strings.Contains(f.call, "boot_id")
			assert.True(t, isRetried || isQuiet, "%v has no error and no line", f)
			continue
		}
		assert.Regexp(t, `(platform|save|budget)[: ]`, outcome, "%v", f)
		if !strings.Contains(f.call, "hugepage") { // a size that can't be read is none
			assert.Contains(t, outcome, f.with.Error(), "%v", f)
		}
		assert.NotContains(t, outcome, "open elsewhere", "%v", f)
		if f.with != unix.ENOSPC && f.call != "madvise 23" { // MADV_POPULATE_WRITE
			assert.NotContains(t, outcome, "make it larger", "%v", f)
		}
	}
	t.Logf("%d failures, %d of them in calls that only reports and fallbacks need", len(failures), quiet)
	assert.Greater(t, len(failures), 50)
}

// failingOwn matches calls of the test, and failingLong those that fail only in soak: the calls of
// package os about a file, and files that are read as others are.
var (
	failingOwn  = regexp.MustCompile(`^(openat|fstat|fcntl|read|close|unlinkat) \S*/file$|^unlinkat .*/pond$`)
	failingLong = regexp.MustCompile(`^(fcntl|fstat|close) (/proc/|/sys/)|/sys/.*/(hugepages|[^ ]+/memory)|` +
		`^fcntl |^clock_gettime`)
)

// failingQuietly matches the calls without which a life goes on as before: files of /proc and /sys
// that reports and limits read, an alarm for limits that has a clock in its place, a scan of pages
// that a snapshot compares then, the presence of pages, the advice for small pages, the seals and
// flags of files, and the removal of a file that is mostly not there.
var failingQuietly = regexp.MustCompile(`^(\w+ (/proc/|/sys/)|inotify|\w+ anon_inode:inotify|epoll_ctl|mincore|` +
	`ioctl 0xc0606610|madvise 15$|(getrusage|prlimit64|getrlimit|sysinfo|getdents64|clock_gettime)$|fcntl |unlinkat .*new$)`)

// enters returns the registers of the thread where it enters the next system call.
func (c *tracedChild) enters(t *testing.T) (regs, copied unix.PtraceRegs) {
	require.NoError(t, unix.PtraceSyscall(c.thread, 0))
	c.waits(t)
	require.NoError(t, unix.PtraceGetRegs(c.thread, &regs))
	return regs, regs
}

// leaves lets the thread leave the system call. If isOurs, the call has the answer, and isn't made.
// Only a close is made: Linux closes the file even if it returns an error.
func (c *tracedChild) leaves(t *testing.T, isOurs bool, answer uint64, regs *unix.PtraceRegs) {
	if isOurs && regs.Orig_rax != unix.SYS_CLOSE {
		regs.Orig_rax = 1 << 20 // no such call
		require.NoError(t, unix.PtraceSetRegs(c.thread, regs))
	}
	require.NoError(t, unix.PtraceSyscall(c.thread, 0))
	c.waits(t)
	if isOurs {
		require.NoError(t, unix.PtraceGetRegs(c.thread, regs))
		regs.Rax = answer
		require.NoError(t, unix.PtraceSetRegs(c.thread, regs))
	}
}

// failingChild is the child: it lives until the tracer has failed each call.
func failingChild(t *testing.T, dir string) {
	usual, err := failingLife(dir)
	require.NoError(t, err)
	for i, line := range usual {
		usual[i] = failingDigits.ReplaceAllString(line, "0")
	}
	outcomes, err := os.Create(filepath.Join(dir, "outcomes"))
	require.NoError(t, err)
	files := filesOpen(t)
	isTraced(t)
	for {
		if last, _, _ := unix.Syscall(unix.SYS_PRCTL, failingMark, 0, 0); last == 1 {
			break
		}
		lines, err := failingLife(dir)
		_, _, _ = unix.Syscall(unix.SYS_PRCTL, failingMark, 1, 0)
		remove := func() {
			for _, name := range []string{"pond", "pond.new", "file"} {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
		remove()
		_, next := failingLife(dir)
		require.NoError(t, next, "after %v", err)
		remove()
		var outcome string
		for _, line := range lines {
			if !slices.Contains(usual, failingDigits.ReplaceAllString(line, "0")) {
				outcome += line + "; "
			}
		}
		if err != nil {
			outcome += err.Error()
		}
		now := filesOpen(t)
		for range 10_000 { // the goroutine that watched limits closes its files
			if now <= files {
				break
			}
			time.Sleep(time.Millisecond)
			now = filesOpen(t)
		}
		if now != files {
			outcome = fmt.Sprintf("LEAK of %d files after %s", now-files, outcome)
			files = now
		}
		_, err = fmt.Fprintln(outcomes, strings.ReplaceAll(outcome, "\n", "; "))
		require.NoError(t, err)
		require.NoError(t, unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP))
	}
	require.NoError(t, outcomes.Close())
	fmt.Println("done")
}

var failingDigits = regexp.MustCompile(`\d+`)

func filesOpen(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
