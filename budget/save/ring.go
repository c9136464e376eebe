package save

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
)

// Ring holds up to n snapshots of one or several states. Each snapshot has a number, usually the
// number of a tick. A new snapshot replaces the snapshot with the same number. If there is none and
// the ring is full, the new snapshot replaces the one with the lowest number.
type Ring struct {
	scope     scope.Scope // owns the ring's memory
	record    *arena_c.Record
	gen       uint64 // the record's when the ring was made; another one after the scope's end
	parts     []part
	slots     []slot
	count     int     // maximum number of snapshots
	pieces    []piece // of a flat image
	fixed     int     // bytes of an image outside of packed heaps
	flatSize  int     // of a flat image
	most      int     // bytes of the largest image
	flat      []byte  // for the flat image of a snapshot from outside, if heaps are packed
	isZero    bool    // flat has zeros in its heaps
	seed      maphash.Seed
	layout    *layout  // nil if not known
	loaded    []byte   // the image of the state as the load made it; nil without State.Version
	text      []byte   // the layout as JSON, for files; nil until a file is made
	described fileHead // the part of a file's header that the layout determines
	exclusive seam.Exclusive
	of        uint32 // checksum of the subjects
	// checkpoint is the latest of Attach, or nil.
	checkpoint *Checkpoint
}

// part is a state and its range of a flat image: two words for each pool, then the bytes.
type part struct {
	*State
	words, from, to int
	at              int       // of the words in a slot's image
	solids          []solid   // the bytes outside of packed heaps
	tracking        *tracking // nil if all bytes are copied
}

// solid is a range of a state outside of packed heaps, which begins at pos in a slot's image.
type solid struct{ from, to, pos int }

type slot struct {
	index      int
	image      []byte
	used       int // bytes of the image that the snapshot takes
	number     uint64
	held       bool
	clean      bool     // free chunks are cleared
	finalizers []uint64 // how many had run, by part
	living     []int    // live owned values, by part
	moment     uint64   // of the samples of the states' heaps (arena_c); 0: unknown
	taken      bool     // by Take
	left       bool     // taken before a Restore went back to a lower number
	hash       uint64   // valid if hashed
	hashed     bool
}

func (s *slot) bytes() []byte { return s.image[:s.used] }

// poolWords is the size of a pool's two words in an image: its counts of free and retired chunks.
const poolWords = 8

// NewRing allocates in s a ring of count snapshots of the states. NewRing completes the states:
// later allocations don't belong to them. s is the scope of the state's load. After that load has
// returned, s may be the scope of the load of a region higher in the plan. If s is full, NewRing
// unwinds with an error that names the key to raise. For other errors, such as a finalizer or a
// forbidden type in a state region, NewRing panics. NewRing makes a few Go allocations, together
// about 2.4 KB for a ring of 8.
//
// A ring stores each snapshot in an image. An image takes the size of each state, and 8 bytes for
// each pool of the states, rounded up to a cache line. In place of the size of a heap passed to
// [State.Heap], an image takes at most the call's most and 32 bytes. A ring has count images. It
// has one more image if each state is in a state region, or if there is a State.Heap. If both are
// true, the ring has a further image with all bytes of the heaps, which only [Ring.Apply] and
// [Ring.Read] use. After a [State.Version] it has one more image, unless there is a State.Heap.
func NewRing(s scope.Scope, count int, states ...*State) *Ring {
	if count < 1 || len(states) == 0 {
		panic(fmt.Sprintf("save: BUG: a ring of %d snapshots of %d states: NewRing needs one of each at least",
			count, len(states)))
	}
	r := &Ring{scope: s, count: count, seed: maphash.MakeSeed()}
	heaps, outside := 0, true
	var saved []*seam.State
	var shapes []shape
	for _, st := range states {
		if err := st.complete(s); err != nil {
			panic(err)
		}
		p := part{State: st, words: r.flatSize, from: r.flatSize + poolWords*len(st.pools)}
		p.to = p.from + int(st.Size())
		r.flatSize = (p.to + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
		for i := range st.heaps {
			heaps += packedWords + int(st.heaps[i].most)
		}
		outside = outside && st.saved.IsState
		r.parts, saved, shapes = append(r.parts, p), append(saved, st.saved), append(shapes, st.shape())
	}
	r.of = subjectsSum(r.parts)
	r.exclusive = seam.NewExclusive("Restore", saved...)
	r.pieces, r.fixed = piecesOf(shapes)
	for i := range r.parts {
		r.parts[i].place(r.pieces)
	}
	r.most = r.fixed + heaps
	size := (r.most + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
	images, flat := min(count, math.MaxInt-1), 0 // no scope has so many
	if outside || heaps != 0 {
		images++ // a snapshot that fails halfway replaces none
	}
	if outside && heaps != 0 {
		flat = r.flatSize
	}
	loaded := 0
	if outside && r.convertible() && heaps == 0 {
		loaded = size
	}
	total := math.MaxInt // more than any scope has
	if images <= (total-flat-loaded)/max(size, 1) {
		total = images*size + flat + loaded
	}
	all := s.BytesUnzeroed(total, arena_c.LineSize)
	next := func(size int) (image []byte) {
		image, all = all[:size:size], all[size:]
		return image
	}
	r.slots = make([]slot, images)
	finalizers, living := make([]uint64, images*len(states)), make([]int, images*len(states))
	for i := range r.slots {
		from, to := i*len(states), (i+1)*len(states)
		r.slots[i] = slot{index: i, image: next(size), finalizers: finalizers[from:to:to], living: living[from:to:to]}
		clear(r.slots[i].image[:r.fixed]) // also the bytes up to a cache line
	}
	r.flat = next(flat)
	if loaded != 0 {
		r.loaded = next(loaded)
		clear(r.loaded)
		for i := range r.parts {
			r.parts[i].take(r.loaded, 0)
			r.parts[i].clean(r.loaded, 0)
		}
	}
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	r.record, r.gen = h.Record(h.Find(gen)), gen
	for i := range r.parts {
		r.parts[i].tracking = newTracking(r.parts[i].State, images)
		r.parts[i].ring = r
	}
	return r
}

// Size returns the number of bytes that the ring has for each snapshot. See [Ring.Used].
func (r *Ring) Size() int { return len(r.slots[0].image) }

// Used returns the number of bytes that the snapshot with that number takes, or 0 if the ring
// doesn't hold the snapshot. A snapshot takes fewer bytes than [Ring.Size] if a heap passed to
// [State.Heap] uses less than the call's most.
func (r *Ring) Used(number uint64) int {
	if s := r.find(number); s != nil && r.check() == nil {
		return s.used
	}
	return 0
}

// Has reports whether the ring holds the snapshot with that number. It returns false if the ring's
// scope has ended, or a region was loaded again or rewound.
func (r *Ring) Has(number uint64) bool { return r.find(number) != nil && r.check() == nil }

// Take makes a snapshot of the states as they are now. No goroutine may write the states during the
// call. Take fails and changes nothing in these cases:
//
//   - A region's load isn't over, or the region was loaded again or rewound.
//   - The ring's scope has ended.
//   - A heap passed to [State.Heap] is damaged, or uses more than the call's most.
//   - A value of a cache (scope/cache) in a state region is pinned or being loaded.
//   - In a checked build, memory allocated before Begin was written.
//
// Take copies the states without the free bytes of heaps passed to State.Heap. In a state region it
// leaves out a pool's chunks that were never taken, so a pool of the largest size costs little
// while few of its chunks are in use. For a tracked region (budget.RegionPlan.Track) it asks the
// system for the written pages, or compares the pages; outside of these heaps it copies only pages
// that may have changed. If it succeeds, Take makes no Go allocation.
func (r *Ring) Take(number uint64) error {
	if err := r.check(); err != nil {
		return err
	}
	for i := range r.parts {
		if err := r.parts[i].still.check(r.parts[i].State); err != nil {
			return err
		}
	}
	if err := r.inUse("Take", number, false); err != nil {
		return err
	}
	to, used := r.empty(number), r.fixed
	for i := range r.parts {
		p := &r.parts[i]
		p.take(to.image, to.index)
		var err error
		if used, err = p.packHeaps(to.image, used, p.bytes()); err != nil {
			return fmt.Errorf("save: Take of snapshot %d of region %s of budget %q: %w", number, p.saved.Name,
				p.saved.Budget, err)
		}
		to.finalizers[i] = p.saved.Stack.Finalizers()
		to.living[i] = p.living()
	}
	r.hold(to, number, used)
	to.moment, to.taken = arena_c.SampleMoment(), true
	return nil
}

// Restore restores all states from the snapshot with that number. Until ctx ends, Restore waits for
// workers that have one of the regions pinned. Restore fails and changes nothing in these cases:
//
//   - The ring doesn't hold the snapshot, or its scope has ended.
//   - A region was loaded again or rewound, or is being loaded.
//   - ctx ended.
//   - Since the snapshot, an object with a finalizer began or ended; the error names the object's
//     type.
//   - Since the snapshot, an owned value of the state ended.
//   - A value of a cache (scope/cache) in a state region is pinned or being loaded.
//
// Functions passed to [State.Rebuild] run last. If one fails, Restore returns the function's error,
// and the states stay restored. Restore copies the states. It treats a tracked region as
// [Ring.Take] does. If it succeeds without a wait, Restore makes no Go allocation, apart from
// Rebuild's functions.
//
// Restore removes no snapshot. Those with higher numbers stay until others replace them, though
// play may not reach their states again: compare a hash with another machine's only after play has
// taken the snapshot again, or when no Restore to a lower number can follow.
func (r *Ring) Restore(ctx context.Context, number uint64) error {
	from, err := r.get(number)
	if err != nil {
		return err
	}
	if err := r.exclusive.Begin(ctx); err != nil {
		return err
	}
	defer r.exclusive.End()
	if err := r.inUse("Restore", number, true); err != nil {
		return err
	}
	for i := range r.parts {
		if err := r.parts[i].objects(from, from.finalizers[i]); err != nil {
			return err
		}
		if err := r.parts[i].ownedEnded(from, from.living[i]); err != nil {
			return err
		}
	}
	tail := from.image[r.fixed:from.used]
	for i := range r.parts {
		tail = r.parts[i].restore(from.image, tail, from.index)
	}
	r.rewindSamples(from)
	r.leave(from)
	for i := range r.parts {
		for _, fn := range r.parts[i].rebuild {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// inUse returns an error if values of a container are pinned or in load.
func (r *Ring) inUse(what string, number uint64, replace bool) error {
	for i := range r.parts {
		for _, still := range r.parts[i].stills {
			if err := still(replace); err != nil {
				return fmt.Errorf("save: %s of snapshot %d of region %s of budget %q: %w", what, number,
					r.parts[i].saved.Name, r.parts[i].saved.Budget, err)
			}
		}
	}
	return nil
}

func (r *Ring) check() error {
	for i := range r.parts {
		if err := r.parts[i].saved.Check(); err != nil {
			return err
		}
	}
	if !r.alive() {
		return r.scope.Err()
	}
	return nil
}

// alive reports whether the ring's scope is alive. Scope.Err would also report refused allocations.
func (r *Ring) alive() bool { return r.record.Gen == r.gen }

func (r *Ring) find(number uint64) *slot {
	for i := range r.slots {
		if s := &r.slots[i]; s.held && s.number == number {
			return s
		}
	}
	return nil
}

// leave marks the snapshots that Take made of a future which a Restore has left: play reaches their
// numbers again, in other states. A snapshot from outside may be of the future that will be.
func (r *Ring) leave(restored *slot) {
	restored.left = false
	for i := range r.slots {
		if s := &r.slots[i]; s.taken && s.number > restored.number {
			s.left = true
		}
	}
}

// isNext reports whether the number is higher than those of all snapshots but those left.
func (r *Ring) isNext(number uint64) bool {
	return !slices.ContainsFunc(r.slots, func(s slot) bool { return s.held && !s.left && s.number >= number })
}

func (r *Ring) get(number uint64) (*slot, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if s := r.find(number); s != nil {
		return s, nil
	}
	var held []uint64
	for i := range r.slots {
		if r.slots[i].held {
			held = append(held, r.slots[i].number)
		}
	}
	slices.Sort(held)
	return nil, fmt.Errorf("save: region %[2]s: the ring of %[3]d doesn't hold snapshot %[1]d; make it larger in "+
		"NewRing; it holds: %[4]s", number, r.parts[0].saved.Name, r.count,
		strings.Trim(fmt.Sprint(held), "[]"))
}

// old returns the snapshot that a new snapshot with that number replaces: that with the same
// number, or that with the lowest if the ring is full. It returns nil if none is replaced.
func (r *Ring) old(number uint64) (old *slot) {
	held := 0
	for i := range r.slots {
		s := &r.slots[i]
		switch {
		case !s.held:
			continue
		case s.number == number:
			return s
		case old == nil || s.number < old.number:
			old = s
		}
		held++
	}
	if held < r.count {
		return nil
	}
	return old
}

// empty returns a slot for a new snapshot with that number. Only a ring of exactly count slots may
// drop an old snapshot for it.
func (r *Ring) empty(number uint64) *slot {
	if len(r.slots) == r.count {
		if old := r.old(number); old != nil {
			old.held = false
			return old
		}
	}
	for i := range r.slots {
		if !r.slots[i].held {
			return &r.slots[i]
		}
	}
	panic("unreachable")
}

// hold makes the image in an empty slot a snapshot, which may replace an old one.
func (r *Ring) hold(to *slot, number uint64, used int) {
	if old := r.old(number); old != nil {
		old.held = false
	}
	to.number, to.used, to.held, to.clean, to.hashed, to.moment = number, used, true, false, false, 0
	to.taken, to.left = false, false
}

// rewindSamples brings the samples of the states' heaps in the profile of C's malloc back to a
// restored snapshot. The table of samples doesn't keep those of snapshots that were taken after it.
func (r *Ring) rewindSamples(from *slot) {
	for i := range r.parts {
		state := r.parts[i].bytes()
		arena_c.RewindSamples(startOf(state), uint64(len(state)), from.moment)
	}
	for i := range r.slots {
		if s := &r.slots[i]; s.moment > from.moment {
			s.moment = 0
		}
	}
}

// holdOutside is hold for a snapshot from outside, which passed all checks.
func (r *Ring) holdOutside(to *slot, number uint64, used int) {
	r.hold(to, number, used)
	to.clean = true
	for i := range r.parts {
		r.parts[i].tracking.replaced(to.index)
		to.finalizers[i] = r.parts[i].saved.Stack.Finalizers()
	}
}

// refused clears the image of an empty slot unless a snapshot from outside became that slot's. Take
// writes only the bytes of the states, and in a tracked region only changed pages.
func (r *Ring) refused(to *slot) {
	if to.held {
		return
	}
	clear(to.image)
	for i := range r.parts {
		r.parts[i].tracking.replaced(to.index)
	}
}

// place sets the positions of the part's bytes in a slot's image.
func (p *part) place(pieces []piece) {
	for _, piece := range pieces {
		from, to := max(piece.flat, p.words), min(piece.flat+piece.size, p.to)
		if piece.heap || from >= to {
			continue
		}
		pos := piece.pos + from - piece.flat
		if from == p.words {
			p.at, pos, from = pos, pos+p.from-p.words, p.from
		}
		p.solids = append(p.solids, solid{from - p.from, to - p.from, pos})
	}
}

// in returns size bytes of the state in a slot's image. pre: none of them are in a packed heap.
func (p *part) in(image []byte, from, size uint64) []byte {
	for _, s := range p.solids {
		if from >= uint64(s.from) && from+size <= uint64(s.to) {
			return image[s.pos+int(from)-s.from:][:size]
		}
	}
	panic("save: BUG: bytes of a packed heap are read in an image")
}

// states returns the states of a pool's chunks in a slot's image, as pool.states does.
func (p *part) states(image []byte, pool *pool) []byte {
	count := uint64(pool.header.Count)
	return p.in(image, pool.first-count, count)
}

// take copies the state without its packed heaps.
func (p *part) take(image []byte, slot int) {
	state := p.bytes()
	arena_c.Gather(startOf(state), uint64(len(state)))
	p.tracking.scan()
	p.copy(image, slot, false)
	words := image[p.at:]
	for i := range p.pools {
		h := p.pools[i].header
		binary.LittleEndian.PutUint32(words[poolWords*i:], uint32(h.Free))
		binary.LittleEndian.PutUint32(words[poolWords*i+4:], h.Retired)
	}
}

// clean clears free chunks, which differ between builds, and the chain's nodes, which differ
// between plans.
func (p *part) clean(image []byte, slot int) {
	for _, node := range p.nodes {
		clear(p.in(image, node.At-p.mark, node.Size))
	}
	for i := range p.pools {
		pool := &p.pools[i]
		stride, at := pool.header.Stride, uint64(0)
		states, chunks := p.states(image, pool), p.in(image, pool.first, uint64(pool.header.Count)*stride)
		for k := len(states) - 1; k >= 0 && states[k] != arena_c.ChunkFresh; k-- {
			if states[k] != arena_c.ChunkLive {
				chunk := chunks[at : at+stride]
				p.tracking.clears(slot, pool.first+at, chunk)
				clear(chunk)
			}
			at += stride
		}
	}
}

// restore puts the state back from a slot's image, whose next packed heaps are in tail. It returns
// the heaps of the next part.
func (p *part) restore(image, tail []byte, slot int) (rest []byte) {
	words, to := image[p.at:], p.bytes()
	if len(p.heaps) != 0 {
		arena_c.Gather(startOf(to), uint64(len(to)))
	}
	for i := range p.pools {
		pool := &p.pools[i]
		pool.header.Remark(p.states(image, pool))
		pool.header.Free = uint64(binary.LittleEndian.Uint32(words[poolWords*i:]))
		pool.header.Retired = binary.LittleEndian.Uint32(words[poolWords*i+4:])
	}
	p.tracking.scan()
	p.copy(image, slot, true)
	chain := p.chain
	for _, node := range p.nodes {
		chain = chain[copy(to[node.At-p.mark:][:node.Size], chain):]
	}
	rest = p.unpackHeaps(to, tail)
	arena_c.Scatter(startOf(to), uint64(len(to)))
	return rest
}

// holds reports whether a chunk has an object, including an object whose finalizer runs.
func holds(state byte) bool { return state == arena_c.ChunkLive || state == arena_c.ChunkLeaving }

// objects returns an error if an object with a finalizer began or ended since the snapshot.
func (p *part) objects(from *slot, finalizers uint64) error {
	for i := range p.pools {
		pool := &p.pools[i]
		object := p.saved.Stack.PoolObject(pool.header)
		if object == "" {
			continue
		}
		now, then := pool.states(p.bytes()), p.states(from.image, pool)
		changed := 0
		for k := range now {
			if now[k] != then[k] && (holds(now[k]) || holds(then[k])) {
				changed++
			}
		}
		if ran := p.saved.Stack.Finalizers() - finalizers; changed != 0 || ran != 0 {
			return fmt.Errorf("save: Restore of snapshot %d of region %s: in a pool with a %s, %d objects "+
				"began or ended since, and %d finalizers ran, which can't be undone; use a Pool "+
				"without finalizer, or make the pool after NewRing",
				from.number, p.saved.Name, object, changed, ran)
		}
	}
	return nil
}
