package platform_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
)

// track tracks a range until the end of the test, or skips it where that isn't possible.
func track(t testing.TB, start unsafe.Pointer, size uint64) *platform.Tracker {
	k, err := platform.Track(start, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("not here: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// present is a committed range, all of whose pages are there.
func present(t testing.TB, pages int) *platform.Reservation {
	r := commit(t, uint64(pages*os.Getpagesize()), 0)
	granted, err := r.Prefault()
	require.NoError(t, err)
	require.True(t, granted)
	return r
}

// dirty goes through one round and gives the numbers of the pages, and how many calls it took.
func dirty(t testing.TB, k *platform.Tracker, size uint64) (pages []int, calls int) {
	return round(t, k.Dirty, size)
}

// nextRuns is Dirty or Peek.
type nextRuns = func() (runs []platform.PageRun, more bool, err error)

func round(t testing.TB, next nextRuns, size uint64) (pages []int, calls int) {
	page := uint64(os.Getpagesize())
	pages = []int{}
	for more, end := true, uint64(0); more; calls++ {
		var runs []platform.PageRun
		var err error
		runs, more, err = next()
		require.NoError(t, err)
		for _, run := range runs {
			require.GreaterOrEqual(t, run.Offset, end, "in order")
			require.Positive(t, run.Size)
			require.Zero(t, run.Offset%page|run.Size%page, "whole pages")
			end = run.Offset + run.Size
			for offset := run.Offset; offset < end; offset += page {
				pages = append(pages, int(offset/page))
			}
		}
		require.LessOrEqual(t, end, size)
		require.Less(t, calls, 1000)
	}
	return pages, calls
}

// moved is how many pages were told that nobody wrote to. The system may swap one out or move it to
// another place just when it is looked at, which counts as written; that is rare.
var moved int

// exactly goes through one round, and holds it to tell the pages that were written to.
func exactly(t testing.TB, k *platform.Tracker, size uint64, want ...int) (calls int) {
	t.Helper()
	found, calls := dirty(t, k, size)
	if slices.Equal(want, found) {
		return calls
	}
	require.Subset(t, found, want)
	moved += len(found) - len(want)
	t.Logf("%d pages too many", len(found)-len(want))
	require.LessOrEqual(t, moved, 4)
	return calls
}

// TestDirtyIsExact writes, reads, clears and copies at random, and knows which pages that meets.
func TestDirtyIsExact(t *testing.T) {
	const pages = 1000
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	exactly(t, k, r.Size()) // nothing since Track, though all was written before

	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		written := make([]bool, pages)
		mark := func(from, size int) {
			for p := from / page; p <= (from+size-1)/page; p++ {
				written[p] = true
			}
		}
		for range random.IntN(200) {
			from, size := random.IntN(len(b)), 1+random.IntN(3*page)
			size = min(size, len(b)-from)
			switch random.IntN(6) {
			case 0:
				b[from] = same(b[from]) // the same value again is a write
				mark(from, 1)
			case 1:
				from &^= 7
				atomic.AddUint64((*uint64)(unsafe.Pointer(&b[from])), 1)
				mark(from, 8)
			case 2:
				clear(b[from : from+size])
				mark(from, size)
			case 3:
				size = copy(b[from:from+size], b[random.IntN(len(b)):]) // reads there
				mark(from, size)
			case 4:
				sink += b[from]
			case 5:
				for _, v := range b[from : from+size] {
					sink += v
				}
			}
		}
		want := []int{}
		for p, yes := range written {
			if yes {
				want = append(want, p)
			}
		}
		exactly(t, k, r.Size(), want...)
	}
	exactly(t, k, r.Size()) // a round ends what it tells
}

// TestDirtyGoesOnWhereItStopped has more runs than a call gives, as many, and one less.
func TestDirtyGoesOnWhereItStopped(t *testing.T) {
	const most, pages = 512, 4*512 + 7
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	for _, runs := range []int{0, 1, 31, 32, 33, most - 1, most, most + 1, 2 * most, pages / 2} {
		want := []int{}
		for i := range runs {
			b[2*i*page]++
			want = append(want, 2*i)
		}
		calls := exactly(t, k, r.Size(), want...)
		assert.GreaterOrEqual(t, calls, (runs+most-1)/most)
		assert.LessOrEqual(t, calls, runs/most+1)
	}
	for i := range most { // the last run ends where the range does
		b[(pages-1-2*i)*page]++
	}
	found, calls := dirty(t, k, r.Size())
	assert.Len(t, found, most)
	assert.LessOrEqual(t, calls, 2)

	for i := range most + 1 {
		b[2*i*page]++
	}
	first, more, err := k.Dirty()
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, first, most)
	b[0]++              // behind: in the next round
	b[(pages-1)*page]++ // before: in this one
	calls = exactly(t, k, r.Size(), 2*most, pages-1)
	assert.Equal(t, 1, calls)
	exactly(t, k, r.Size(), 0)
}

// TestDirtyLosesNoWrite copies what is dirty while others write to each page once, so that nothing
// makes up for a write that is lost: at the end the copy is the range.
func TestDirtyLosesNoWrite(t *testing.T) {
	const pages, writers = 2048, 2
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	copied := slices.Clone(b)
	k := track(t, r.Base(), r.Size())
	update := func() (size uint64) {
		for more := true; more; {
			var runs []platform.PageRun
			var err error
			runs, more, err = k.Dirty()
			require.NoError(t, err)
			for _, run := range runs {
				for at := run.Offset; at < run.Offset+run.Size; at += uint64(page) {
					value := atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[at])))
					*(*uint64)(unsafe.Pointer(&copied[at])) = value
				}
				size += run.Size
			}
		}
		return size
	}
	random := rand.New(rand.NewPCG(7, 7))
	between := 0 // rounds that had something while there was more to come
	for end := time.Now().Add(10 * time.Second); between < 200 && time.Now().Before(end); {
		order := random.Perm(pages)
		var left atomic.Int32
		left.Store(pages)
		for w := range writers {
			go func() {
				for i := w; i < pages; i += writers {
					atomic.AddUint64((*uint64)(unsafe.Pointer(&b[order[i]*page])), 1)
					if left.Add(-1)%64 == 0 {
						runtime.Gosched() // for who has but one processor
					}
				}
			}()
		}
		for left.Load() > 0 {
			if size := update(); size != 0 && left.Load() > 0 {
				between++
			}
			runtime.Gosched()
		}
		update()
		require.True(t, bytes.Equal(b, copied))
	}
	assert.NotZero(t, between)
}

func TestPeekTellsAgain(t *testing.T) {
	const pages = 4 * 512
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	want := []int{}
	write := func() (faults uint64) {
		before, _, _ := platform.Faults()
		for _, p := range want {
			b[p*page]++
		}
		after, _, _ := platform.Faults()
		return after - before
	}
	for i := range pages / 2 {
		want = append(want, 2*i)
	}
	assert.GreaterOrEqual(t, write(), uint64(len(want)))
	for range 3 {
		found, calls := round(t, k.Peek, r.Size())
		require.Subset(t, found, want)
		assert.Less(t, len(found), len(want)+4)
		assert.Greater(t, calls, 1)
		assert.Less(t, write(), uint64(len(want)/2), "of the Go runtime, and none of the pages")
	}
	b[5*page]++
	found, _ := round(t, k.Peek, r.Size())
	assert.Contains(t, found, 5)
	want = slices.Insert(want, 3, 5)
	exactly(t, k, r.Size(), want...)
	found, _ = round(t, k.Peek, r.Size())
	assert.Less(t, len(found), 4, "Dirty told all")
	assert.GreaterOrEqual(t, write(), uint64(len(want)), "control: of each page")
	exactly(t, k, r.Size(), want...)
}

// TestDirtyCountsTheSystemsWrites: with UFFD_USER_MODE_ONLY a fault in the kernel must not become
// an error.
func TestDirtyCountsTheSystemsWrites(t *testing.T) {
	page := os.Getpagesize()
	r := present(t, 8)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	_, err = out.Write(b[5*page : 5*page+10]) // which reads
	require.NoError(t, err)
	n, err := in.Read(b[2*page-5 : 3*page]) // which writes, over an edge
	require.NoError(t, err)
	assert.Equal(t, 10, n)
	exactly(t, k, r.Size(), 1, 2)
}

// TestDirtyOfAPartOfARange: what lies around it isn't told, and another Tracker may have it.
func TestDirtyOfAPartOfARange(t *testing.T) {
	page := os.Getpagesize()
	r := present(t, 12)
	b := contents(r)
	k := track(t, unsafe.Add(r.Base(), 4*page), uint64(4*page))
	other := track(t, unsafe.Add(r.Base(), 8*page), uint64(4*page))
	for i := range 12 {
		b[i*page]++
	}
	exactly(t, k, uint64(4*page), 0, 1, 2, 3)
	b[4*page]++
	b[9*page]++
	require.NoError(t, k.Close())
	b[9*page]++
	exactly(t, other, uint64(4*page), 0, 1, 2, 3)

	_, err := platform.Track(unsafe.Add(r.Base(), 4*page), uint64(8*page))
	assert.ErrorIs(t, err, syscall.EBUSY, "a part of it is the other's")
	assert.NotErrorIs(t, err, errors.ErrUnsupported)
	exactly(t, other, uint64(4*page)) // who is refused disturbs nobody
}

// TestDirtyOfAbsentPages: none that was written is missing, and when all were used it is exact.
func TestDirtyOfAbsentPages(t *testing.T) {
	const pages = 1500
	platform.ForgetSpares()
	page := os.Getpagesize()
	r := commit(t, pages*uint64(page), 0)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	for round := range 3 {
		b[(round*700+3)*page]++
		found, _ := dirty(t, k, r.Size())
		assert.Contains(t, found, round*700+3)
	}
	for i := range pages {
		b[i*page]++
	}
	found, _ := dirty(t, k, r.Size())
	assert.Len(t, found, pages)
	b[9*page]++
	sink += b[8*page]
	exactly(t, k, r.Size(), 9)

	// A page that was emptied is seen at its next write at the latest.
	require.NoError(t, unix.Madvise(b[9*page:10*page], unix.MADV_DONTNEED))
	b[9*page]++
	exactly(t, k, r.Size(), 9)
}

func hugeBytes(t *testing.T, r *platform.Reservation) (size int) {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(r.Base())))
	require.True(t, found)
	_, text, found := strings.Cut(entry, "AnonHugePages:")
	require.True(t, found)
	_, err = fmt.Sscan(text, &size)
	require.NoError(t, err)
	return size * kib
}

// TestDirtyOfHugePages: the first write to a huge page splits it, and after that a small page is
// told.
func TestDirtyOfHugePages(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, 16*mib, 0)
	if err := r.HugePages(); err != nil {
		t.Skip("not here: ", err)
	}
	granted, err := r.Prefault()
	require.NoError(t, err)
	require.True(t, granted)
	page := os.Getpagesize()
	before := hugeBytes(t, r)
	k := track(t, r.Base(), r.Size())
	if before == 0 {
		t.Skip("the system gave small pages")
	}
	assert.Equal(t, before, hugeBytes(t, r), "to track splits nothing")
	exactly(t, k, r.Size())
	b := contents(r)
	for i := range b {
		sink += b[i]
	}
	exactly(t, k, r.Size()) // reads
	b[5*mib]++
	exactly(t, k, r.Size(), 5*mib/page)
	after := hugeBytes(t, r)
	t.Logf("%d bytes in huge pages, %d after one write", before, after)
	want := []int{}
	for offset := 0; offset < len(b); offset += mib {
		b[offset+page]++
		want = append(want, offset/page+1)
	}
	exactly(t, k, r.Size(), want...)
	assert.Zero(t, hugeBytes(t, r), "each was written to")
	clear(b)
	found, _ := dirty(t, k, r.Size())
	assert.Len(t, found, len(b)/page)
}

func TestDirtyOfLockedAndProtectedPages(t *testing.T) {
	page := os.Getpagesize()
	for _, locked := range []bool{false, true} {
		r := present(t, 16*edge/page)
		if locked {
			if err := r.Lock(); err != nil {
				t.Skip("no right to lock: ", err)
			}
		}
		b := contents(r)
		before := statusBytes(t, "VmLck")
		k := track(t, r.Base(), r.Size())
		b[3*page]++
		require.NoError(t, r.Protect(4*edge, 2*edge))
		assert.False(t, readable(r, 5*edge))
		b[8*edge]++
		exactly(t, k, r.Size(), 3, 8*edge/page)
		require.NoError(t, r.Unprotect(4*edge, 2*edge))
		sink += b[4*edge]
		b[5*edge]++
		if !locked {
			exactly(t, k, r.Size(), 5*edge/page)
		} else { // the system makes present, by writes, what it gives access to
			found, _ := dirty(t, k, r.Size())
			assert.Subset(t, found, []int{5 * edge / page})
			assert.NotContains(t, found, 8*edge/page)
		}
		b[7*edge]++
		sink += b[5*edge]
		exactly(t, k, r.Size(), 7*edge/page)
		require.NoError(t, k.Close())
		assert.Equal(t, before, statusBytes(t, "VmLck"))
		require.NoError(t, r.Release())
	}
}

// trackFiles are the open files of this process that Track opened.
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
	require.NoError(t, exec.Command("true").Run()) // which shares nothing of it
	exactly(t, k, r.Size(), 0)
	require.NoError(t, k.Close())
	assert.Empty(t, trackFiles(t))
	assert.False(t, smapsFlag(t, r, "uw"))
	assert.EqualError(t, k.Close(), "platform: BUG: close of a tracker already closed")
	_, _, err := k.Dirty()
	assert.EqualError(t, err, "platform: BUG: dirty pages of a tracker already closed")
	_, _, err = k.Peek()
	assert.EqualError(t, err, "platform: BUG: dirty pages of a tracker already closed")
	b[1]++ // no fault is in the way

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
		"PAGEMAP_SCAN: operation not permitted: a part of the range was mapped anew", r.Size()))
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
		t.Skip("this is none")
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

// onAThread runs f on a thread of its own, which ends with it, and with what f did to the thread.
func onAThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// TestTrackNeedsNoRight gives all rights up. vm.unprivileged_userfaultfd is 0 on most machines.
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

// refuse has the system refuse a call of this thread, and only with this second argument if it
// isn't 0.
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

// TestTrackRefused has the system refuse each step as older kernels and filters of containers do.
func TestTrackRefused(t *testing.T) {
	r := present(t, 4)
	require.NoError(t, track(t, r.Base(), r.Size()).Close(), "control: it isn't refused by itself")
	const api, register, scan = 0xC018AA3F, 0xC020AA00, 0xC0606610 // as C's headers have them
	const old = "the kernel has no asynchronous write-protection: " +
		"it takes Linux 6.7, and 6.10 on arm64"
	const forbidden = "it takes no right, so a filter of system calls forbids it, " +
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

// TestDirtyIsOneSystemCall traces itself. What the Go runtime does beside it isn't Dirty's.
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
	tool, err := exec.LookPath("strace")
	if err != nil && os.Getenv("REQUIRE_ALL") == "" {
		t.Skip("strace is not installed (package strace)")
	}
	require.NoError(t, err)
	trace := filepath.Join(t.TempDir(), "trace")
	command := exec.Command(tool, "-f", "-o", trace, os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), name+"=1")
	output, err := command.CombinedOutput()
	if err != nil && strings.Contains(string(output), "PTRACE_TRACEME") {
		t.Skip("strace may not trace here")
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

// BenchmarkTrack is 64 MiB of which 5 % are written to: the writes with their faults, Dirty, and
// copies of these pages, beside a copy of all. The pages are random in each round, or the same in
// all; of the rounds all are Dirty's, or one of eight.
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
			b.ReportMetric(0, "ns/op") // of all together says nothing
			for unit, of := range map[string]time.Duration{
				"memcpy-µs": whole, "writes-µs": writes, "dirty+copy-µs": rest,
			} {
				b.ReportMetric(float64(of.Microseconds())/float64(b.N), unit)
			}
			b.ReportMetric(float64(writes+rest)/float64(whole), "of-memcpy")
		})
	}
}
