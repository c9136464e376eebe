package save

import (
	"bytes"
	"math/bits"

	"github.com/upfront-mem/upfront/platform"
)

// Of a tracked region only the pages are copied that an image hasn't as they are. Each image has a
// bit for each of them: the tracker tells which were written, and then they differ from every
// image.

// dirtyPage is what a bit is about. The system's pages may be larger.
const dirtyPage = 4096

// dirty are the pages of one state that differ from an image, as bits: from the page that the mark
// lies in.
type dirty []uint64

// all says that any page may differ.
func (d dirty) all() {
	for i := range d {
		d[i] = ^uint64(0)
	}
}

// add adds the pages [from, to), as far as there are.
func (d dirty) add(from, to int) {
	for at := max(from, 0); at < min(to, 64*len(d)); at++ {
		d[at/64] |= 1 << (at % 64)
	}
}

// next is the first run of pages from one on that differ; from == to: none does.
func (d dirty) next(at int) (from, to int) {
	for from = at; from < 64*len(d); from = (from/64 + 1) * 64 {
		if rest := d[from/64] >> (from % 64); rest != 0 {
			from += bits.TrailingZeros64(rest)
			break
		}
	}
	if from >= 64*len(d) {
		return from, from
	}
	for to = from; to < 64*len(d); {
		if n := bits.TrailingZeros64(^(d[to/64] >> (to % 64))); n < 64-to%64 {
			return from, to + n
		}
		to = (to/64 + 1) * 64
	}
	return from, to
}

// tracking is what a ring knows of a part whose region is tracked.
type tracking struct {
	tracker *platform.Tracker // nil: pages are compared
	edge    uint64            // from the first page to the mark
	base    uint64            // and from the region's first byte to the first page
	images  []dirty           // by slot
	rounds  int
}

func newTracking(st *State, slots int) *tracking {
	tracker, tracked := st.saved.Tracker()
	if !tracked {
		return nil
	}
	t := &tracking{tracker: tracker}
	if tracker != nil {
		at := st.mark - st.header().Start
		t.edge, t.base = at%dirtyPage, at-at%dirtyPage
		for range slots {
			d := make(dirty, (t.edge+st.Size())/dirtyPage/64+2)
			d.all()
			t.images = append(t.images, d)
		}
	}
	return t
}

// scan adds what was written since. What is written in most ticks would cost a page fault in each
// of them, so the tracker forgets what it told only once a turn of the ring: an image is that old
// anyway when its place is taken again.
func (t *tracking) scan() {
	if t == nil || t.tracker == nil {
		return
	}
	ask := t.tracker.Peek
	if t.rounds++; t.rounds%len(t.images) == 0 {
		ask = t.tracker.Dirty
	}
	for more := true; more; {
		runs, goesOn, err := ask()
		if more = goesOn; err != nil { // nobody knows
			for i := range t.images {
				t.images[i].all()
			}
			return
		}
		for _, run := range runs {
			from := int((int64(run.Offset) - int64(t.base)) / dirtyPage)
			to := int((int64(run.Offset+run.Size) - int64(t.base)) / dirtyPage)
			for i := range t.images {
				t.images[i].add(from, to)
			}
		}
	}
}

// copy copies what may differ between the state and the image of a slot, to either. What is written
// to the state is tracked as what anybody writes.
func (t *tracking) copy(to, from []byte, slot int) {
	if t == nil {
		copy(to, from)
		return
	}
	if t.tracker == nil {
		for at := 0; at < len(from); at += dirtyPage {
			end := min(at+dirtyPage, len(from))
			if !bytes.Equal(to[at:end], from[at:end]) {
				copy(to[at:end], from[at:end])
			}
		}
		return
	}
	d := t.images[slot]
	for a, b := d.next(0); a < b; a, b = d.next(b) {
		begin := max(a*dirtyPage-int(t.edge), 0)
		end := min(b*dirtyPage-int(t.edge), len(from))
		if begin < end {
			copy(to[begin:end], from[begin:end])
		}
	}
	clear(d)
}

// clears says that bytes of an image, from an offset of the state on, are cleared. Nobody writes to
// the state there.
func (t *tracking) clears(slot int, from uint64, bytes []byte) {
	if t != nil && t.tracker != nil && !isZero(bytes) {
		end := t.edge + from + uint64(len(bytes))
		t.images[slot].add(int(t.edge+from)/dirtyPage, int(end-1)/dirtyPage+1)
	}
}

// replaced says that a slot has another image, from outside.
func (t *tracking) replaced(slot int) {
	if t != nil && t.tracker != nil {
		t.images[slot].all()
	}
}
