package stack

import "math"

// lentDropped is a number that no lending has. It marks a dropped stack.
const lentDropped = math.MaxUint64

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
