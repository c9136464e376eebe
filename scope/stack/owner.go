package stack

import (
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

// Finalizers returns the number of finalizers that have run in the arena.
func (st *Stack) Finalizers() uint64 {
	if st.caches == nil {
		return st.finalizers
	}
	return st.finalizers + st.caches.finalizers.Load()
}

// PoolObject returns the finalizer of a pool's objects, "finalizer of T", or "" if they have none.
func (*Stack) PoolObject(p *arena_c.Pool) string { return classes.name[p.Kind%classesMax] }

// Left returns the errors that a function leaves in the open scopes. The first is a misuse, if the
// function left scopes open from a depth up. The second is the refusal that wasn't reported yet, of
// the lowest scope that has one. Left marks the refusal as reported.
func (st *Stack) Left(depth int) error {
	return joined(st.leftOpen(depth), st.takeSince(depths{}))
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
