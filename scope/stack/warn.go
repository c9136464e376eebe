package stack

import (
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
)

// warner compares the use of some memory with a share of the memory's size. It reports a crossing
// once, when the use reaches the share. It reports the next crossing only after the use has fallen
// below the share by a tenth: with a share of 80 %, below 72 %. The zero warner reports no
// crossing. One goroutine at a time uses a warner.
type warner struct {
	share int // percent of the size, 0 to 99; 0: none

	over bool   // since the last crossing the use hasn't fallen by a tenth
	peak uint64 // as of the last call
}

// crossed compares the use with the share, and returns the bytes of a new crossing, or 0. used and
// size are the present numbers of bytes. peak is the highest use since a moment of the caller's
// choice. A new highest use counts even if the use has fallen since. Cost: a few ns, no Go
// allocation.
func (w *warner) crossed(used, peak, size uint64) (bytes uint64) {
	most := used
	if peak > w.peak {
		most = max(used, peak)
	}
	w.peak = peak
	share, over := uint64(w.share)*size, w.over
	w.over = share != 0 && 1000*used >= 9*share && (over || 100*most >= share)
	if over || share == 0 || 100*most < share {
		return 0
	}
	return most
}

// Crossing describes the moment when the use of an arena reached the share of [Stack.WarnAt].
type Crossing struct {
	Used, Size uint64   // bytes
	Share      int      // percent of Size
	Top        [3]Usage // the scopes, labels and temporaries with the most bytes, the largest first
}

// warning is the part of the ledger that warns: its comparison, and the crossing that has to be
// reported.
type warning struct {
	mu sync.Mutex // guards the comparison, count and last: LookAside runs on any goroutine
	warner
	count int // of crossings
	last  uint64

	heaps    bool // the arena has had a heap
	due      bool // the crossing isn't reported so far
	crossing Crossing
	tell     func(*Stack, Crossing)
	heap     func(*Stack)
}

// compare compares a use with the share, and counts a crossing.
func (w *warning) compare(used, peak, size uint64) (bytes uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes = w.crossed(used, peak, size); bytes != 0 {
		w.count, w.last = w.count+1, bytes
	}
	return bytes
}

// WarnAt calls tell each time that the use of the arena, temporaries included, reaches a share of
// its size in percent (see warner). It is for the owner of a region, whose scopes are counted by
// name: CountScopes was called.
//
// Of a Heap or Buddy of package arena, only the blocks in use count. Their use changes at any time,
// without the ledger. So when a Heap or Buddy is made, heap is called, on the goroutine that made
// it. From then on the owner calls LookAside now and then.
//
// The ledger compares whenever it looks: before a scope opens or closes, before temporaries open,
// when a constructor has failed, and when it is read. Between two looks the arena only grows, so no
// crossing is missed, with one exception. If C opens and closes a scope between two looks, the
// scope counts only if its use was a new peak since the arena was emptied, and the arena has had no
// heap.
//
// The goroutine that uses the arena calls tell, never in the middle of a change of the arena. It
// calls tell before a scope or temporaries open, after a Close, after a Do, after a constructor
// that failed, and in TellWarning. So a panic of tell passes through the call and leaves the arena
// consistent. Crossings that follow before tell is called aren't reported separately.
func (st *Stack) WarnAt(share int, tell func(*Stack, Crossing), heap func(*Stack)) {
	st.warn = &warning{warner: warner{share: share}, tell: tell, heap: heap}
}

// lookAtUse compares the arena's use with its share.
func (st *Stack) lookAtUse() {
	w := st.warn
	if w == nil {
		return
	}
	used, peak := st.row.Used(), st.row.Peak()
	free, risen, heaps := st.inHeaps()
	if w.heaps = w.heaps || heaps; w.heaps { // the arena's peak has all of each heap
		used -= min(used, free)
		peak = used + risen
	}
	bytes := w.compare(used, peak, st.row.Size())
	if bytes == 0 || w.due {
		return
	}
	w.due = true
	w.crossing = Crossing{Used: bytes, Size: st.row.Size(), Share: w.share}
	st.holders(&w.crossing.Top)
}

// inHeaps returns the free bytes of the arena's heaps and buddies, and how much higher the use of
// one has been: the peaks of two may be of different moments. It returns false if there are none.
// Any goroutine may call it.
func (st *Stack) inHeaps() (free, risen uint64, ok bool) {
	r := &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		if in := st.use(&r.list[i]); in.Size != 0 {
			free, risen, ok = free+in.Size-in.Used, max(risen, in.Peak-in.Used), true
		}
	}
	return free, risen, ok
}

// use returns the size, use and peak of a heap or buddy, else the zero Inner. Its words are read in
// C, because C's threads change them. pre: the lock of the rooms is held.
func (st *Stack) use(room *Room) (in Inner) {
	header, ok := st.header(room)
	if !ok {
		return in
	}
	switch room.Kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		in = Inner{Size: x.End - x.First, Used: arena_c.Now(&x.Used),
			Peak: max(arena_c.Now(&x.Phase), arena_c.Now(&x.Past))}
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		in = Inner{Size: x.End - x.First, Used: arena_c.Now(&x.Used), Peak: arena_c.Now(&x.Peak)}
	}
	in.Used = min(in.Used, in.Size)
	in.Peak = max(in.Peak, in.Used)
	return in
}

// HasHeaps reports whether the arena has heaps or buddies. Any goroutine may call it.
func (st *Stack) HasHeaps() bool {
	_, _, ok := st.inHeaps()
	return ok
}

// LookAside compares the use with the share like the ledger, and returns a new crossing without its
// Top. used is the arena's use, which must stay the same but for its heaps. Any goroutine may call
// it while the arena isn't emptied.
func (st *Stack) LookAside(used uint64) (c Crossing, crossed bool) {
	free, risen, heaps := st.inHeaps()
	if !heaps {
		return c, false
	}
	w := st.warn
	used -= min(used, free)
	bytes := w.compare(used, used+risen, st.row.Size())
	return Crossing{Used: bytes, Size: st.row.Size(), Share: w.share}, bytes != 0
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
	w := st.warn
	if w == nil {
		return 0, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.last
}
