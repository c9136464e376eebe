package scope

// Warner compares the use of some memory with a share of its size. It reports a crossing once, and
// the next one only after the use has fallen below the share by a tenth: with a share of 80 %,
// below 72 %. The zero Warner reports none. One goroutine at a time uses a Warner.
type Warner struct {
	Share int // percent of the size, 0 to 99; 0: none

	over bool   // since the last crossing the use hasn't fallen by a tenth
	peak uint64 // as of the last call
}

// Crossed compares the use with the share, and returns the bytes of a new crossing, or 0. used and
// size are the bytes of now. peak is the highest use since any moment: a new highest use counts
// even if the use has fallen since. Cost: a few ns, no Go allocation.
func (w *Warner) Crossed(used, peak, size uint64) (bytes uint64) {
	most := used
	if peak > w.peak {
		most = max(used, peak)
	}
	w.peak = peak
	share, over := uint64(w.Share)*size, w.over
	w.over = share != 0 && 1000*used >= 9*share && (over || 100*most >= share)
	if over || share == 0 || 100*most < share {
		return 0
	}
	return most
}

// Crossing is the event that the use of an arena reached its share (WarnAt).
type Crossing struct {
	Used, Size uint64   // bytes
	Share      int      // percent of Size
	Top        [3]Usage // the holders of most bytes, the largest first
}

// warning is the part of the ledger that warns: its comparison, and the crossing that has to be
// reported.
type warning struct {
	Warner
	count    int // of crossings
	last     uint64
	due      bool // the crossing isn't reported so far
	crossing Crossing
	tell     func(*Stack, Crossing)
}

// WarnAt calls tell each time that the use of the arena, temporaries included, reaches a share of
// its size in percent (see [Warner]). It is for the owner of a region, whose scopes are counted by
// name: CountScopes was called.
//
// The ledger compares whenever it looks: before a scope opens or closes, before temporaries open,
// when a constructor has failed, and when the figures are read. Between two looks the arena only
// grows, so no crossing is missed; except that a scope that C opens and closes between two looks
// counts only if the arena was never so full since it was emptied.
//
// The goroutine that uses the arena calls tell, outside all changes of the arena: before a scope or
// temporaries open, after a Close, a Do or a constructor that failed, and in TellWarning. So a
// panic of tell passes through the call and leaves the arena consistent. A crossing that isn't
// reported so far includes later ones.
func (st *Stack) WarnAt(share int, tell func(*Stack, Crossing)) {
	st.warn = &warning{Warner: Warner{Share: share}, tell: tell}
}

// lookAtUse compares the arena's use with its share.
func (st *Stack) lookAtUse() {
	w := st.warn
	if w == nil {
		return
	}
	bytes := w.Crossed(st.row.Used(), st.row.Peak(), st.row.Size())
	if bytes == 0 || w.due {
		return
	}
	w.count, w.last, w.due = w.count+1, bytes, true
	w.crossing = Crossing{Used: bytes, Size: st.row.Size(), Share: w.Share}
	st.holders(&w.crossing.Top)
}

// TellWarning reports the crossing that isn't reported so far, if there is one. The owner calls it
// at the latest when a load has ended.
func (st *Stack) TellWarning() {
	if w := st.warn; w != nil && w.due {
		w.due = false
		w.tell(st, w.crossing)
	}
}

// Warnings returns the number of crossings since the arena was made, and the bytes that were in use
// at the last one.
func (st *Stack) Warnings() (count int, last uint64) {
	if st.warn == nil {
		return 0, 0
	}
	return st.warn.count, st.warn.last
}
