package platform

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// Tracker tells which pages of a range were written to since it was asked last. It must not be
// copied. Its methods belong to one goroutine at a time; who writes to the range needs to know
// nothing of it.
type Tracker struct {
	watch  watch
	size   uint64
	next   uint64 // the offset where the scan goes on
	closed bool
	runs   [runsMost]PageRun
}

// PageRun is Size bytes from Offset of a range, both multiples of the page.
type PageRun struct{ Offset, Size uint64 }

// runsMost is how many runs one call gives at most: as many as the kernel gathers at once of pages
// of 4 KiB, so that a longer list saves nothing.
const runsMost = 512

// Track begins to track size bytes from start, both multiples of the page: Dirty then tells what is
// written from here on. The bytes are committed memory, and stay mapped until Close; nobody else
// tracks a part of them (syscall.EBUSY). Their pages should be present ([Reservation.Prefault]):
// one that isn't may count as written in each round, up to the one of its first use.
//
// It costs a few system calls, a scan of the range, 20 KiB of the Go heap, two file descriptors,
// and up to two mappings ([Mappings]). From then on a page's first write after each Dirty is a
// minor page fault, about a microsecond. The first write to a huge page makes small pages of it,
// which it stays.
//
// What the system lacks or forbids is an error that wraps errors.ErrUnsupported and says what it
// is, and what to set where that helps: it takes userfaultfd and Linux 6.7, on arm64 6.10. Race
// builds, other systems and other processors have none. Whoever gets that error compares the pages
// instead.
//
//go:noinline
func Track(start unsafe.Pointer, size uint64) (*Tracker, error) {
	page := uint64(os.Getpagesize())
	if uint64(uintptr(start))%page != 0 || size == 0 || size%page != 0 {
		return nil, fmt.Errorf("platform: BUG: track %d bytes at %p: "+
			"not multiples of the page, %d bytes", size, start, page)
	}
	t := &Tracker{size: size} // on the heap, as Track isn't inlined: the system gets its address
	err := injected(doTrack)
	if err == nil {
		err = t.watch.open(start, size)
	}
	if err != nil {
		return nil, fmt.Errorf("platform: track %d bytes: %w", size, err)
	}
	for more := true; more; { // what was written so far doesn't count
		if _, more, err = t.scan(true); err != nil {
			err = errors.Join(err, t.watch.close())
			return nil, fmt.Errorf("platform: track %d bytes: %w", size, err)
		}
	}
	return t, nil
}

// Dirty gives the pages that were written to since the last round, in ascending order, and watches
// them anew, both in one step: a later write belongs to the next round, and no write is in none. A
// round is one call or, as long as more is true, several, of which each goes on where the last one
// stopped. The runs are the tracker's own, and good until the next call.
//
// Writes of the system count too, as of a file that is read into the range, or when Prefault, Lock
// or, with locked pages, Unprotect make pages present. What is swapped out counts as written. What
// madvise empties may be seen at its next use only.
//
// It is one system call and allocates nothing. It costs about 0.7 µs for a MiB of small pages, and
// 0.1 µs for a run. It fails when a part of the range was mapped anew, as by Release: then nobody
// knows what was written.
func (t *Tracker) Dirty() (runs []PageRun, more bool, err error) { return t.round(true) }

// Peek is Dirty, except that it leaves the pages that it tells as they are: writes to them cost no
// page fault, and the next round tells them again, written to or not. Where one frame writes mostly
// to the pages of the last one, a Dirty now and then, with Peek between, costs half of Dirty each
// time. A round is either's alone.
func (t *Tracker) Peek() (runs []PageRun, more bool, err error) { return t.round(false) }

func (t *Tracker) round(anew bool) (runs []PageRun, more bool, err error) {
	if t.closed {
		return nil, false, errors.New("platform: BUG: dirty pages of a tracker already closed")
	}
	if runs, more, err = t.scan(anew); err != nil {
		return nil, false, fmt.Errorf("platform: dirty pages of %d bytes: %w", t.size, err)
	}
	return runs, more, nil
}

func (t *Tracker) scan(anew bool) (runs []PageRun, more bool, err error) {
	n, next, err := t.watch.scan(&t.runs, t.next, t.size, anew)
	if next == t.size || err != nil {
		next = 0
	}
	t.next = next
	return t.runs[:n], next != 0, err
}

// Close ends the tracking, gives back what Track took, and leaves the range's contents alone. It
// may come after the range's Release. A second Close is refused and changes nothing.
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
