package save

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Ring is the last n snapshots of a state, or of several together, each with a number: of a tick,
// most often. A snapshot takes the place of that with its number, else of the one with the lowest.
type Ring struct {
	scope     scope.Scope // that it lies in
	record    *arena_c.Record
	gen       uint64 // of the record while the scope is alive
	parts     []part
	slots     []slot
	spare     []byte   // of state regions: an image on which what comes from outside is looked at
	layout    *layout  // if it is known
	text      []byte   // the layout as a file has it; nil: not yet
	described fileHead // what of a file's header follows from it
	exclusive *budget.Exclusive
	of        uint32 // a sum of the states' subjects
}

// part is a state, and where it lies in an image: two words for each pool, then the bytes.
type part struct {
	*State
	words, from, to int
	tracking        *tracking // nil: all is copied
}

// slot has room for a snapshot.
type slot struct {
	index      int
	image      []byte
	number     uint64
	held       bool
	clean      bool     // what was left in free chunks is cleared
	finalizers []uint64 // that had run, by part
	living     []int    // owned values, by part
	hash       uint64   // if hashed
	hashed     bool
}

// poolWords is the bytes of an image for what a pool's header has: free and retired, little-endian.
const poolWords = 8

var imageMaker = scope.Plain[byte]()

// NewRing gives memory in s for count snapshots of the states, of state regions for one more, and
// ends the state that begins in s: what is made there afterwards is none of it. s is the scope of
// the load of the state, or of a region above, which is loaded later: all states have ended then. A
// full scope unwinds, which names the key to raise. Everything else is a caller's bug and panics.
// Cost: count times the size of the states, Go allocations.
func NewRing(s scope.Scope, count int, states ...*State) *Ring {
	if count < 1 || len(states) == 0 {
		panic(fmt.Sprintf("save: BUG: a ring of %d snapshots of %d states: give one of each at least",
			count, len(states)))
	}
	r := &Ring{scope: s}
	size, outside := 0, true
	var saved []*budget.State
	for _, st := range states {
		if err := st.complete(s); err != nil {
			panic(err)
		}
		p := part{State: st, words: size, from: size + poolWords*len(st.pools)}
		p.to = p.from + int(st.Size())
		size = (p.to + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
		outside = outside && st.saved.IsState()
		r.parts, saved = append(r.parts, p), append(saved, st.saved)
	}
	r.of = subjectsSum(r.parts)
	r.exclusive = budget.NewExclusive("Restore", saved...)
	images := count
	if outside {
		images++
	}
	total := math.MaxInt // more than a scope has
	if images <= total/max(size, 1) {
		total = images * size
	}
	// At once, and from a line on: so a full names a size that is enough.
	imageMaker.SliceAligned(s, 0, arena_c.LineSize)
	all := imageMaker.SliceAligned(s, total, arena_c.LineSize)
	next := func() (image []byte) {
		image, all = all[:size:size], all[size:]
		return image
	}
	for i := range count {
		r.slots = append(r.slots, slot{index: i, image: next(), finalizers: make([]uint64, len(states)),
			living: make([]int, len(states))})
	}
	if outside {
		r.spare = next()
	}
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	r.record, r.gen = h.Record(h.Find(gen)), gen
	for i := range r.parts {
		r.parts[i].tracking = newTracking(r.parts[i].State, count)
		r.parts[i].ring = r
	}
	return r
}

// Size is the bytes of one snapshot.
func (r *Ring) Size() int { return len(r.slots[0].image) }

// Has says whether the ring holds the snapshot of that number, of states that are loaded still: once
// a region of theirs was loaded again or rewound, there is none that Restore would take.
func (r *Ring) Has(number uint64) bool { return r.find(number) != nil && r.check() == nil }

// Take makes a snapshot of the states as they are now. Nobody may write them meanwhile. An error
// says that a region's load isn't over, or that it was loaded again or rewound; in checked builds
// also that what was made before Begin was written since. Cost: a copy of the states, of a tracked
// region (budget.RegionPlan.Track) of what was written, and a system call; else none, and no Go
// allocation.
func (r *Ring) Take(number uint64) error {
	if err := r.check(); err != nil {
		return err
	}
	for i := range r.parts {
		if err := r.parts[i].still.check(r.parts[i].State); err != nil {
			return err
		}
	}
	to := r.place(number)
	for i := range r.parts {
		p := &r.parts[i]
		p.take(to.image, to.index)
		to.finalizers[i] = p.saved.Stack().Finalizers()
		to.living[i] = p.living()
	}
	to.number, to.held = number, true
	return nil
}

// Restore puts the snapshot of that number in place: all states are as they were when it was taken.
// It waits until ctx ends for workers that have one of the regions pinned; what it refuses changes
// nothing: a number that the ring doesn't hold, a region that was loaded again, objects with a
// finalizer that began or ended since, by their type, and owned values of the state that ended.
// Cost: a copy of the states; no Go allocation, no system call, but for what Rebuild's functions
// do. The error of one of these comes last: the states are in place then.
func (r *Ring) Restore(ctx context.Context, number uint64) error {
	from, err := r.get(number)
	if err != nil {
		return err
	}
	if err := r.exclusive.Begin(ctx); err != nil {
		return err
	}
	defer r.exclusive.End()
	for i := range r.parts {
		if err := r.parts[i].objects(from, from.finalizers[i]); err != nil {
			return err
		}
		if err := r.parts[i].ownedEnded(from, from.living[i]); err != nil {
			return err
		}
	}
	for i := range r.parts {
		r.parts[i].restore(from.image, from.index)
	}
	for i := range r.parts {
		for _, fn := range r.parts[i].rebuild {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// check says why there is no ring, or nothing that its snapshots are of.
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

// alive says whether the memory of the ring is there still. What its scope was refused meanwhile is
// nothing of the ring's, as Err would have it.
func (r *Ring) alive() bool { return r.record.Gen == r.gen }

func (r *Ring) find(number uint64) *slot {
	for i := range r.slots {
		if s := &r.slots[i]; s.held && s.number == number {
			return s
		}
	}
	return nil
}

// get is find, or why there is none.
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
	return nil, fmt.Errorf("save: snapshot %d of region %s isn't held: the ring has %d places, with "+
		"%s; give NewRing more", number, r.parts[0].saved.Name(), len(r.slots),
		strings.Trim(fmt.Sprint(held), "[]"))
}

// place is where the snapshot of that number will be: nothing is held there any more.
func (r *Ring) place(number uint64) *slot {
	to := r.find(number)
	for i := range r.slots {
		s := &r.slots[i]
		switch {
		case to != nil && to.held && to.number == number:
		case to == nil, !s.held && to.held, s.held == to.held && s.number < to.number:
			to = s
		}
	}
	to.held, to.clean, to.hashed = false, false, false
	return to
}

// hold makes the spare image, which has been looked at, the snapshot of that number.
func (r *Ring) hold(number uint64) *slot {
	to := r.place(number)
	to.image, r.spare = r.spare, to.image
	to.number, to.held, to.clean = number, true, true
	for i := range r.parts {
		r.parts[i].tracking.replaced(to.index)
	}
	return to
}

// take copies the state into an image.
func (p *part) take(image []byte, slot int) {
	from := p.bytes()
	arena_c.Gather(startOf(from), uint64(len(from)))
	p.tracking.scan()
	p.tracking.copy(image[p.from:p.to], from, slot)
	words := image[p.words:p.from]
	for i := range p.pools {
		h := p.pools[i].header
		binary.LittleEndian.PutUint32(words[poolWords*i:], uint32(h.Free))
		binary.LittleEndian.PutUint32(words[poolWords*i+4:], h.Retired)
	}
}

// clean clears what was left in chunks that are free: it differs from build to build; and what says
// what happens at Close: it differs from plan to plan.
func (p *part) clean(image []byte, slot int) {
	bytes := image[p.from:p.to]
	for _, node := range p.nodes {
		clear(bytes[node.At-p.mark:][:node.Size])
	}
	for i := range p.pools {
		pool := &p.pools[i]
		states, at := pool.states(bytes), pool.first
		for k := len(states) - 1; k >= 0 && states[k] != arena_c.ChunkFresh; k-- {
			if states[k] != arena_c.ChunkLive {
				chunk := bytes[at : at+pool.header.Stride]
				p.tracking.clears(slot, at, chunk)
				clear(chunk)
			}
			at += pool.header.Stride
		}
	}
}

// restore puts the state of an image in place.
func (p *part) restore(image []byte, slot int) {
	words, from, to := image[p.words:p.from], image[p.from:p.to], p.bytes()
	for i := range p.pools {
		pool := &p.pools[i]
		pool.header.Remark(pool.states(from))
		pool.header.Free = uint64(binary.LittleEndian.Uint32(words[poolWords*i:]))
		pool.header.Retired = binary.LittleEndian.Uint32(words[poolWords*i+4:])
	}
	p.tracking.scan()
	p.tracking.copy(to, from, slot)
	chain := p.chain
	for _, node := range p.nodes {
		chain = chain[copy(to[node.At-p.mark:][:node.Size], chain):]
	}
	arena_c.Scatter(startOf(to), uint64(len(to)))
}

// holds says whether a chunk of such a state has an object: also one whose finalizer is at work.
func holds(state byte) bool { return state == arena_c.ChunkLive || state == arena_c.ChunkLeaving }

// objects refuses a pool whose objects have a finalizer, if one began or ended since.
func (p *part) objects(from *slot, finalizers uint64) error {
	for i := range p.pools {
		pool := &p.pools[i]
		object := p.saved.Stack().PoolObject(pool.header)
		if object == "" {
			continue
		}
		now, then := pool.states(p.bytes()), pool.states(from.image[p.from:p.to])
		changed := 0
		for k := range now {
			if now[k] != then[k] && (holds(now[k]) || holds(then[k])) {
				changed++
			}
		}
		if ran := p.saved.Stack().Finalizers() - finalizers; changed != 0 || ran != 0 {
			return fmt.Errorf("save: Restore of snapshot %d of region %s: of a pool with a %s %d objects "+
				"began or ended since, and %d finalizers ran, which can't be undone; have a Pool, or make "+
				"it after NewRing",
				from.number, p.saved.Name(), object, changed, ran)
		}
	}
	return nil
}
