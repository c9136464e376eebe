package save

import (
	"bytes"
	"math/bits"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// A tracked region's snapshots copy only pages that differ from the slot's image. Each image has
// one bit for each page; the tracker reports written pages, and a written page differs from every
// image. Say a ring has two slots with snapshots. A tick writes page 3, so both images are out of
// date there, and Take into slot 0 copies page 3. The next tick writes page 7, and Take into slot 1
// copies the pages 3 and 7.

// dirtyPage is the size in bytes of a page that has a bit. The system's pages may be larger.
const dirtyPage = 4096

// dirty has a bit for each page that differs from an image. Bit 0 is the page of the state's first
// byte.
type dirty []uint64

func (d dirty) all() {
	for i := range d {
		d[i] = ^uint64(0)
	}
}

// add marks the pages [from, to) that exist.
func (d dirty) add(from, to int) {
	for at := max(from, 0); at < min(to, 64*len(d)); at++ {
		d[at/64] |= 1 << (at % 64)
	}
}

// next returns the first run of marked pages from at on, or from == to if none follows.
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

// tracking is the page scan of a state in a tracked region.
type tracking struct {
	tracker *platform.Tracker // nil if pages are compared instead
	edge    uint64            // bytes from the first page to the mark
	base    uint64            // bytes from the region's first byte to the first page
	images  []dirty           // by slot
	files   []dirty           // of the two images of a checkpoint's file
	rounds  int
}

func newTracking(st *State, slots int) *tracking {
	tracker, tracked := st.saved.Tracker, st.saved.Track
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

// scan marks the pages written since the tracker last forgot them. A forgotten page costs a fault
// at its next write, so scan lets the tracker forget pages only once in a turn of the ring. Few
// pages are then marked without need, since an image is a turn old when its slot is used again.
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
		if more = goesOn; err != nil { // any page may have been written
			for _, images := range [2][]dirty{t.images, t.files} {
				for i := range images {
					images[i].all()
				}
			}
			return
		}
		for _, run := range runs {
			from := int((int64(run.Offset) - int64(t.base)) / dirtyPage)
			to := int((int64(run.Offset+run.Size) - int64(t.base)) / dirtyPage)
			for _, images := range [2][]dirty{t.images, t.files} {
				for i := range images {
					images[i].add(from, to)
				}
			}
		}
	}
}

// copy copies the pages that may differ between the state and a slot's image, in either direction,
// without packed heaps.
func (p *part) copy(image []byte, slot int, restores bool) {
	t, state := p.tracking, p.bytes()
	if t == nil {
		p.copyUsed(image, state, restores)
		return
	}
	if t.tracker == nil {
		for at := 0; at < len(state); at += dirtyPage {
			p.move(image, state, at, at+dirtyPage, restores)
		}
		return
	}
	d := t.images[slot]
	for a, b := d.next(0); a < b; a, b = d.next(b) {
		p.move(image, state, a*dirtyPage-int(t.edge), b*dirtyPage-int(t.edge), restores)
	}
	if restores { // until the next scan, bits count from the new state
		t.restored(d)
	}
	clear(d)
}

// leastSkipped is the least bytes of untouched chunks for which copyUsed divides its copy.
const leastSkipped = 256

// copyUsed copies all bytes that may differ between the state and an image. In a state region a
// pool's chunks that were never taken are zeros, in the state and in each image: a load begins with
// zeros, NewRing clears the images, and an image from outside with other bytes there is refused. So
// copyUsed leaves out the chunks that are untouched on both sides.
func (p *part) copyUsed(image, state []byte, restores bool) {
	at := 0
	for i := range p.pools {
		if pool := &p.pools[i]; p.saved.IsState {
			touched := max(touched(pool.states(state)), touched(p.states(image, pool)))
			from := int(pool.first + touched*pool.header.Stride)
			to := int(pool.first + uint64(pool.header.Count)*pool.header.Stride)
			if to-from >= leastSkipped {
				p.move(image, state, at, from, restores)
				at = to
			}
		}
	}
	p.move(image, state, at, len(state), restores)
}

// touched returns the number of a pool's chunks that were ever taken. They are the pool's first
// chunks, and the last ones of states.
func touched(states []byte) uint64 {
	low, high := 0, len(states) // states before low are fresh, those from high on aren't
	for low < high {
		if middle := int(uint(low+high) / 2); states[middle] == arena_c.ChunkFresh {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return uint64(len(states) - low)
}

// move copies those of the state's bytes [begin, end) that are outside of packed heaps. In a
// tracked region without a tracker it doesn't write equal bytes.
func (p *part) move(image, state []byte, begin, end int, restores bool) {
	for i := range p.solids {
		s := &p.solids[i]
		from, to := max(begin, s.from), min(end, s.to)
		if from >= to {
			continue
		}
		dst, src := image[s.pos+from-s.from:][:to-from], state[from:to]
		if restores {
			dst, src = src, dst
		}
		if t := p.tracking; t == nil || t.tracker != nil || !bytes.Equal(dst, src) {
			copy(dst, src)
		}
	}
}

// or marks the pages of other.
func (d dirty) or(other dirty) {
	for i := range d {
		d[i] |= other[i]
	}
}

// restored marks pages of the state that a restore wrote, in all images.
func (t *tracking) restored(pages dirty) {
	for _, images := range [2][]dirty{t.images, t.files} {
		for i := range images {
			images[i].or(pages)
		}
	}
}

// attach begins to track the images of a checkpoint's file.
func (t *tracking) attach() {
	if t == nil || t.tracker == nil {
		return
	}
	t.files = []dirty{make(dirty, len(t.images[0])), make(dirty, len(t.images[0]))}
}

// copyTo copies the image of a slot to an image of a checkpoint's file. An image that isn't fresh
// has an earlier snapshot of the ring, so copyTo copies only pages that may differ. A page that
// differs between two images differs from the state in one of them. Say the slot's image differs
// from the state in page 3, and the file's in page 7. Then copyTo copies both pages, and the file's
// image differs from the state in page 3.
func (r *Ring) copyTo(file []byte, half int, from *slot, fresh bool) {
	if fresh {
		copy(file, from.bytes())
	} else {
		for i := range r.parts {
			r.parts[i].copyTo(file, half, from)
		}
		copy(file[r.fixed:], from.bytes()[r.fixed:])
	}
	for i := range r.parts {
		if t := r.parts[i].tracking; t != nil && t.tracker != nil {
			copy(t.files[half], t.images[from.index])
		}
	}
}

func (p *part) copyTo(file []byte, half int, from *slot) {
	copy(file[p.at:][:poolWords*len(p.pools)], from.image[p.at:])
	t, size := p.tracking, int(p.Size())
	switch {
	case t == nil:
		p.between(file, from.image, 0, size, false)
	case t.tracker == nil:
		for at := 0; at < size; at += dirtyPage {
			p.between(file, from.image, at, at+dirtyPage, true)
		}
	default:
		d := t.files[half]
		d.or(t.images[from.index])
		for a, b := d.next(0); a < b; a, b = d.next(b) {
			p.between(file, from.image, a*dirtyPage-int(t.edge), b*dirtyPage-int(t.edge), false)
		}
	}
}

// between copies those of the state's bytes [begin, end) that are outside of packed heaps from one
// image to another. If compares is true, it doesn't write equal bytes.
func (p *part) between(dst, src []byte, begin, end int, compares bool) {
	for i := range p.solids {
		s := &p.solids[i]
		from, to := max(begin, s.from), min(end, s.to)
		if from >= to {
			continue
		}
		from, to = s.pos+from-s.from, s.pos+to-s.from
		if !compares || !bytes.Equal(dst[from:to], src[from:to]) {
			copy(dst[from:to], src[from:to])
		}
	}
}

// clears marks the pages of bytes that are cleared only in the image; from is their offset in the
// state.
func (t *tracking) clears(slot int, from uint64, bytes []byte) {
	if t != nil && t.tracker != nil && !isZero(bytes) {
		end := t.edge + from + uint64(len(bytes))
		t.images[slot].add(int(t.edge+from)/dirtyPage, int(end-1)/dirtyPage+1)
	}
}

// replaced marks all pages of a slot whose image came from outside, or was cleared.
func (t *tracking) replaced(slot int) {
	if t != nil && t.tracker != nil {
		t.images[slot].all()
	}
}
