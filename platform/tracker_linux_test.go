package platform_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
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
	"github.com/upfront-mem/upfront/tests/step"
)

// track tracks a range until the end of the test, or skips the test where that isn't possible.
func track(t testing.TB, start unsafe.Pointer, size uint64) *platform.Tracker {
	k, err := platform.Track(start, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("where the kernel tracks writes (userfaultfd of Linux 6.7), go test ./platform runs it:", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func present(t testing.TB, pages int) *platform.Reservation {
	r := commit(t, uint64(pages*os.Getpagesize()), 0)
	granted, err := r.Prefault()
	require.NoError(t, err)
	require.True(t, granted)
	return r
}

// dirty runs one round and returns the page numbers, and the number of calls.
func dirty(t testing.TB, k *platform.Tracker, size uint64) (pages []int, calls int) {
	return round(t, k.Dirty, size)
}

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

// moved returns how many pages the system has moved or swapped so far, in all processes.
func moved(t testing.TB) (pages int) {
	text, err := os.ReadFile("/proc/vmstat")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "pgmigrate_success", "pgmigrate_fail", "pswpin", "pswpout":
			n, err := strconv.Atoi(count)
			require.NoError(t, err)
			pages += n
		}
	}
	return pages
}

// exactly runs one round, which must report the pages want. The system may move a page just as it
// is scanned, for example to make room for huge pages of a growing heap. Such a page counts as
// written, so a report may have as many more pages as the system has moved since the scan began.
// The result exact is false in this case.
func exactly(t testing.TB, k *platform.Tracker, size uint64, want ...int) (calls int, exact bool) {
	t.Helper()
	return exactlyOf(t, k.Dirty, size, want...)
}

func exactlyOf(t testing.TB, next nextRuns, size uint64, want ...int) (calls int, exact bool) {
	t.Helper()
	before := moved(t)
	found, calls := round(t, next, size)
	if slices.Equal(want, found) {
		return calls, true
	}
	require.Subset(t, found, want)
	more := len(found) - len(want)
	now := moved(t)
	for range 100 { // a move is counted at its end
		if now-before >= more {
			break
		}
		time.Sleep(10 * time.Millisecond)
		now = moved(t)
	}
	require.GreaterOrEqual(t, now-before, more, "%v is reported, and %v was written", found, want)
	t.Logf("%d pages too many; the system moved %d", more, now-before)
	return calls, false
}

// failing is a test that ends its goroutine when it fails.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper()                           {}
func (f *failing) Errorf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }
func (f *failing) FailNow()                          { runtime.Goexit() }

// TestExactlyFindsAPageTooMany is the control of exactly: a page that the test doesn't expect, and
// one that isn't reported.
func TestExactlyFindsAPageTooMany(t *testing.T) {
	page := os.Getpagesize()
	r := present(t, 4)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	for want, text := range map[int]string{1: "[1 2] is reported, and [1] was written", 3: "does not contain"} {
		b[1*page]++
		b[2*page]++
		f := &failing{TB: t}
		onAThread(func() { exactly(f, k, r.Size(), want) })
		if f.text == "" { // at 1, the system moved another page
			continue
		}
		assert.Contains(t, f.text, text)
	}
}

// TestDirtyIsExact writes, reads, clears and copies at random, and compares the reports with the
// pages written to.
func TestDirtyIsExact(t *testing.T) {
	const pages = 1000
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	exactly(t, k, r.Size()) // all writes were before Track

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
	exactly(t, k, r.Size()) // a round reports a page once
}

// TestDirtyGoesOnWhereItStopped has more runs than a call returns, as many, and one less.
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
		calls, exact := exactly(t, k, r.Size(), want...)
		assert.GreaterOrEqual(t, calls, (runs+most-1)/most)
		if exact {
			assert.LessOrEqual(t, calls, runs/most+1)
		}
	}
	last := []int{}
	for i := range most { // the last run ends where the range does
		b[(pages-1-2*i)*page]++
		last = append(last, pages-1-2*i)
	}
	slices.Reverse(last)
	if calls, exact := exactly(t, k, r.Size(), last...); exact {
		assert.LessOrEqual(t, calls, 2)
	}

	for i := range most + 1 {
		b[2*i*page]++
	}
	first, more, err := k.Dirty()
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, first, most)
	b[0]++              // passed already: in the next round
	b[(pages-1)*page]++ // still ahead: in this round
	if calls, exact := exactly(t, k, r.Size(), 2*most, pages-1); exact {
		assert.Equal(t, 1, calls)
	}
	exactly(t, k, r.Size(), 0)
}

// TestDirtyLosesNoWrite copies dirty pages while other goroutines write to each page once, so that
// no later write hides a lost one: at the end the copy equals the range.
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
	between := 0 // rounds with dirty pages before the last write
	for range 10_000 {
		if between >= step.Pick(20, 200, 2000) {
			break
		}
		order := random.Perm(pages)
		var left atomic.Int32
		left.Store(pages)
		for w := range writers {
			go func() {
				for i := w; i < pages; i += writers {
					atomic.AddUint64((*uint64)(unsafe.Pointer(&b[order[i]*page])), 1)
					if left.Add(-1)%64 == 0 {
						runtime.Gosched() // for a single processor
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
	runtime.LockOSThread() // the faults of other threads are the collector's
	defer runtime.UnlockOSThread()
	write := func() (faults int64) {
		var before, after unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &before))
		for _, p := range want {
			b[p*page]++
		}
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &after))
		return int64(after.Minflt - before.Minflt)
	}
	for i := range pages / 2 {
		want = append(want, 2*i)
	}
	assert.GreaterOrEqual(t, write(), int64(len(want)))
	for range 3 {
		calls, _ := exactlyOf(t, k.Peek, r.Size(), want...)
		assert.Greater(t, calls, 1)
		assert.Less(t, write(), int64(len(want)/2), "of the Go runtime, and none of the pages")
	}
	b[5*page]++
	found, _ := round(t, k.Peek, r.Size())
	assert.Contains(t, found, 5)
	want = slices.Insert(want, 3, 5)
	exactly(t, k, r.Size(), want...)
	exactlyOf(t, k.Peek, r.Size()) // Dirty reported all
	assert.GreaterOrEqual(t, write(), int64(len(want)), "control: of each page")
	exactly(t, k, r.Size(), want...)
}

// TestDirtyCountsTheSystemsWrites checks that with UFFD_USER_MODE_ONLY a fault in the kernel
// doesn't become an error.
func TestDirtyCountsTheSystemsWrites(t *testing.T) {
	page := os.Getpagesize()
	r := present(t, 8)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	_, err = out.Write(b[5*page : 5*page+10]) // the system reads
	require.NoError(t, err)
	n, err := in.Read(b[2*page-5 : 3*page]) // the system writes, over an edge
	require.NoError(t, err)
	assert.Equal(t, 10, n)
	exactly(t, k, r.Size(), 1, 2)
}

// TestDirtyOfAPartOfARange checks that pages around the part aren't reported, and that another
// Tracker may have them.
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
	exactly(t, other, uint64(4*page)) // the refused Track disturbs no other
}

// TestDirtyOfAbsentPages checks that each written page is reported, and that reports are exact once
// all pages were used.
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

	// An emptied page is reported at its next write at the latest.
	require.NoError(t, unix.Madvise(b[9*page:10*page], unix.MADV_DONTNEED))
	b[9*page]++
	exactly(t, k, r.Size(), 9)
}

// TestMarkAll: the next round reports the whole range, and watches it again.
func TestMarkAll(t *testing.T) {
	const pages = 4 * 512
	page := os.Getpagesize()
	r := present(t, pages)
	b := contents(r)
	k := track(t, r.Base(), r.Size())
	exactly(t, k, r.Size())
	k.MarkAll()
	b[5*page]++
	found, calls := dirty(t, k, r.Size())
	assert.Len(t, found, pages)
	assert.Equal(t, 1, calls)
	exactly(t, k, r.Size())

	for i := range pages / 2 { // more than one call reports
		b[2*i*page]++
	}
	_, more, err := k.Dirty()
	require.NoError(t, err)
	require.True(t, more)
	k.MarkAll() // in the middle of a round: the next one
	found, _ = dirty(t, k, r.Size())
	assert.Less(t, len(found), pages)
	b[7*page]++
	found, _ = round(t, k.Peek, r.Size())
	assert.Len(t, found, pages)
	exactly(t, k, r.Size(), 7)

	require.NoError(t, r.Discard(0, r.Size()))
	k.MarkAll()
	found, _ = dirty(t, k, r.Size())
	assert.Len(t, found, pages)
}
