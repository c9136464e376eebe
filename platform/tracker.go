package platform

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// Tracker finds the pages of a range that were written to since the last round. It must not be
// copied. One goroutine at a time calls its methods; any goroutine may write to the range.
type Tracker struct {
	watch  watch
	size   uint64
	next   uint64 // the offset where the scan goes on
	closed bool
	all    atomic.Bool // see MarkAll
	runs   [runsMost]PageRun
}

// PageRun is Size bytes from Offset of a range, both multiples of the page size.
type PageRun struct{ Offset, Size uint64 }

// runsMost is the maximum of runs that one call returns: as many as the kernel gathers at once with
// pages of 4 KiB, so that a longer list saves nothing.
const runsMost = 512

// Track starts to track size bytes from start, both multiples of the page size. Dirty then reports
// the writes from now on. The bytes are committed memory, and must stay mapped until Close. If
// another Tracker tracks a part of them, Track fails with syscall.EBUSY. Make the pages present
// first ([Reservation.Prefault]), because an absent page may count as written in each round until
// its first use.
//
// Track costs a few system calls, a scan of the range, 20 KiB of the Go heap, two file descriptors,
// and up to two mappings ([Mappings]). From then on the first write to a page after each Dirty
// costs a minor page fault, about a microsecond. The first write to a huge page splits it into
// small pages for good.
//
// Track needs userfaultfd and Linux 6.7 on amd64, or 6.10 on arm64. Without them, in race builds,
// and on other systems and processors, the error wraps errors.ErrUnsupported. It names the missing
// part, and the setting if one helps. The caller can then compare the pages instead.
//
//go:noinline
func Track(start unsafe.Pointer, size uint64) (*Tracker, error) {
	page := uint64(os.Getpagesize())
	if uint64(uintptr(start))%page != 0 || size == 0 || size%page != 0 {
		return nil, fmt.Errorf("platform: BUG: track %d bytes at %p: "+
			"not multiples of the page, %d bytes", size, start, page)
	}
	t := &Tracker{size: size} // on the heap, since Track isn't inlined: the system gets its address
	err := injected(doTrack)
	if err == nil {
		err = t.watch.open(start, size)
	}
	if err != nil {
		return nil, fmt.Errorf("platform: track %d bytes: %w", size, err)
	}
	for more := true; more; { // earlier writes don't count
		if _, more, err = t.scan(true); err != nil {
			err = errors.Join(err, t.watch.close())
			return nil, fmt.Errorf("platform: track %d bytes: %w", size, err)
		}
	}
	return t, nil
}

// Dirty returns the pages that were written to since the last round, in ascending order. In the
// same step it watches these pages again, so each later write belongs to the next round, and no
// write is lost. A round is one call, or several calls while more is true; each call continues
// where the last one stopped. The runs belong to the tracker and are valid until the next call.
//
// The system's writes also count: those of a read from a file into the range, and the pages that
// Prefault, Lock, or Unprotect of locked pages makes present. A swapped page counts as written. A
// page that [Reservation.Discard] or madvise emptied isn't reported before its next use
// ([Tracker.MarkAll]).
//
// Dirty is one system call, or several after MarkAll, and allocates nothing. It costs about 0.7 µs
// for a MiB of small pages, and 0.1 µs for a run. It fails if a part of the range was mapped again,
// as by Release, because the writes there are unknown.
func (t *Tracker) Dirty() (runs []PageRun, more bool, err error) { return t.round(true) }

// Peek is Dirty, except that it doesn't watch the reported pages again. Writes to these pages cost
// no page fault, and the next round reports the pages in any case. If each frame writes mostly to
// the pages of the last frame, an occasional Dirty with Peek in between costs half as much as a
// Dirty in each frame. One round is all Dirty or all Peek.
func (t *Tracker) Peek() (runs []PageRun, more bool, err error) { return t.round(false) }

func (t *Tracker) round(anew bool) (runs []PageRun, more bool, err error) {
	if t.closed {
		return nil, false, errors.New("platform: BUG: dirty pages of a tracker already closed")
	}
	all := t.next == 0 && t.all.Swap(false)
	if runs, more, err = t.scan(anew); all {
		for ; more && err == nil; _, more, err = t.scan(anew) {
		}
		t.runs[0] = PageRun{0, t.size}
		runs = t.runs[:1]
	}
	if err != nil {
		return nil, false, fmt.Errorf("platform: dirty pages of %d bytes: %w", t.size, err)
	}
	return runs, more, nil
}

// MarkAll makes the next round report the whole range as written. It is for bytes that changed
// without a write, as by [Reservation.Discard]. Any goroutine may call it.
func (t *Tracker) MarkAll() { t.all.Store(true) }

func (t *Tracker) scan(anew bool) (runs []PageRun, more bool, err error) {
	n, next, err := t.watch.scan(&t.runs, t.next, t.size, anew)
	if next == t.size || err != nil {
		next = 0
	}
	t.next = next
	return t.runs[:n], next != 0, err
}

// Close ends the tracking and frees its resources. The range keeps its contents. It may be released
// before Close. A second Close returns an error and changes nothing.
func (t *Tracker) Close() error {
	if t.closed {
		return errors.New("platform: BUG: close of a tracker already closed")
	}
	t.closed = true
	if err := t.watch.close(); err != nil {
		return fmt.Errorf("platform: close a tracker of %d bytes: %w", t.size, err)
	}
	return nil
}
