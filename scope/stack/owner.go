package stack

import (
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Busy reports whether finalizers of the arena are running, and whether a Do, a Label or a
// constructor is running.
func (st *Stack) Busy() (closing, inside bool) {
	return (st.h.Odd|st.row.Temp.Odd)&arena_c.Closing != 0, st.inside != 0
}

// Freeze ends allocation in the topmost scope, whose objects stay until it closes. Call Left first.
func (st *Stack) Freeze() {
	st.look()
	_ = st.take(st.h, st.h.Depth)
	st.h.Freeze()
}

// Keeps reports whether the size bytes at p outlive the load. They do if they are outside the
// arena, or below the cursor of the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	h := st.h
	at := h.Offset(p)
	return at-h.Start >= st.row.Size() || at < h.Cursor || size == 0 && at == h.Cursor
}

// Clear fills an empty arena with zeros: all its bytes, or only the bytes that the arena has used
// since it was made or last forgot its peaks.
func (st *Stack) Clear(all bool) {
	if all {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), st.h.Start), uintptr(st.row.Size()))
		return
	}
	st.clearUsed(st.h.Start, st.row.End)
}

// clearUsed fills the bytes of a free range that the arena has used, from either end, with zeros.
// The other bytes stay untouched, so that they cost no page.
func (st *Stack) clearUsed(from, end uint64) {
	used := max(st.peakEver, st.row.Peak())
	low := min(st.h.Start+used, end)        // no near allocation was above it
	high := max(st.row.End-used, from, low) // and no far one below this
	if from < low {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), from), uintptr(low-from))
	}
	if high < end {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), high), uintptr(end-high))
	}
}

// Row returns the headers of the arena and its pools.
func (st *Stack) Row() *arena_c.Row { return st.row }

// Left returns the errors that a function leaves in the open scopes. The first is a misuse, if the
// function left scopes open from a depth up. The second is the refusal that wasn't reported yet, of
// the lowest scope that has one. Left marks the refusal as reported.
func (st *Stack) Left(depth int) error {
	return joined(st.leftOpen(depth), st.takeSince(Depths{}))
}

// CloseTemp closes all temporaries. It returns the errors of the temporaries. It also returns the
// errors of constructors in the topmost scope that panicked, if no call has returned these errors.
func (st *Stack) CloseTemp() error {
	err := st.closeFrom(&st.row.Temp, 1)
	n := &st.notes[st.h.Depth]
	err, n.unreported = joined(err, n.unreported), nil
	return err
}

// PlaceOf returns the canonical offset of p from the arena's first byte.
func (st *Stack) PlaceOf(p unsafe.Pointer) uint64 { return st.h.Offset(p) - st.h.Start }

// MarkAt returns the offset from the arena's first byte where the scope at a depth began.
// pre: depth < Depth.
func (st *Stack) MarkAt(depth int) uint64 { return st.h.Record(uint64(depth)+1).Mark - st.h.Start }

// Empty closes all scopes, as CloseTo does, and returns the errors. For messages it notes the
// operation, such as "Load", the region on which the operation was called, such as "room 3", and
// the place of the call. If the operation failed, live blocks in arenas don't count as leaks.
func (st *Stack) Empty(what, region string, site arena_c.Site, failed bool) error {
	if st.h.Depth != 0 {
		st.emptied.set(emptied{what, region, failed, time.Now(), site, st.h.Next})
	}
	if failed {
		return st.fail(0)
	}
	return st.CloseTo(0)
}

// TableBytes estimates the bytes of the Go heap that an arena's tables take for a number of nested
// scopes. tables includes a report's copy of the tables (UsageLines) and, if the arena warns, the
// state of WarnAt. sites are the bytes that checked builds take in addition, for the places that
// opened scopes and registered values.
func (c Config) TableBytes(scopes uint64, warns bool) (tables, sites uint64) {
	notes, values := 2*(scopes+1), uint64(c.Owned)
	sites = (notes + values) * uint64(unsafe.Sizeof(arena_c.Site{}))
	tables = uint64(unsafe.Sizeof(Stack{})) + notes*uint64(unsafe.Sizeof(note{})) +
		scopes*uint64(unsafe.Sizeof(seenScope{})) + values*uint64(unsafe.Sizeof(owned{})) +
		(uint64(c.Names)+1)*uint64(unsafe.Sizeof(label{})+5*unsafe.Sizeof(Usage{}))
	if warns {
		tables += uint64(unsafe.Sizeof(warning{}))
	}
	return tables - sites, sites
}

// Lending returns the number of the present lending of a scratch arena. It is 0 for other arenas.
func (st *Stack) Lending() uint64 { return min(st.lent.Load(), lentDropped-1) }

// EndLending ends the lending. From now on all handles of it refuse.
func (st *Stack) EndLending() {
	if st.h.Depth == 0 {
		st.row.Over()
	}
	st.lent.Add(1)
}

// Borrowed panics if the lending of that number has ended. The text begins with an operation. The
// number is atomic, because a worker that kept the handle may be another goroutine than the new
// borrower.
func (st *Stack) Borrowed(lent uint64, what string) {
	if st.lent.Load() != lent {
		panic(st.givenBack(what))
	}
}

// Dropped reports whether the budget is closed. The arena's headers may then be a newer budget's.
func (st *Stack) Dropped() bool { return st.dropped }
