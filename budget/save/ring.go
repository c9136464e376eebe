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

// Ring holds the last n snapshots of one or several states, each with a number, usually that of a
// tick. A new snapshot replaces the one with the same number. Else it takes an empty place, or
// replaces the one with the lowest number.
type Ring struct {
	scope     scope.Scope // owns the ring's memory
	record    *arena_c.Record
	gen       uint64 // the record's when the ring was made; another one after the scope's end
	parts     []part
	slots     []slot
	spare     []byte   // for images from outside, until they are checked
	layout    *layout  // nil if not known
	text      []byte   // the layout as JSON, for files; nil until a file is made
	described fileHead // the part of a file's header that the layout determines
	exclusive *budget.Exclusive
	of        uint32 // checksum of the subjects
}

// part is a state and its range of an image: two words for each pool, then the bytes.
type part struct {
	*State
	words, from, to int
	tracking        *tracking // nil if all bytes are copied
}

type slot struct {
	index      int
	image      []byte
	number     uint64
	held       bool
	clean      bool     // free chunks are cleared
	finalizers []uint64 // how many had run, by part
	living     []int    // live owned values, by part
	hash       uint64   // valid if hashed
	hashed     bool
}

// poolWords is the size of a pool's two words in an image: its counts of free and retired chunks.
const poolWords = 8

var imageMaker = scope.Plain[byte]()

// NewRing allocates in s a ring of count snapshots of the states, and one more image if all their
// regions are state regions. It ends the states: later allocations don't belong to them. s is the
// scope of the state's load, or of a later load of a region higher in the plan. If s has no room,
// NewRing unwinds with an error that names the knob to raise. It panics with other errors, such as
// a finalizer or a forbidden type in a state region. An image takes the size of each state and 8
// bytes for each of its pools, rounded up to a line. NewRing makes Go allocations.
func NewRing(s scope.Scope, count int, states ...*State) *Ring {
	if count < 1 || len(states) == 0 {
		panic(fmt.Sprintf("save: BUG: a ring of %d snapshots of %d states: NewRing needs one of each at least",
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
	total := math.MaxInt // more than any scope has
	if images <= total/max(size, 1) {
		total = images * size
	}
	// The empty slice aligns s to a line first: a full scope then reports a size that is enough.
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

// Size returns the size of one snapshot in bytes.
func (r *Ring) Size() int { return len(r.slots[0].image) }

// Has reports whether the ring holds the snapshot with that number. It returns false if the ring's
// scope ended, or a region was loaded again or rewound since.
func (r *Ring) Has(number uint64) bool { return r.find(number) != nil && r.check() == nil }

// Take makes a snapshot of the states as they are now. No goroutine may write them meanwhile. It
// fails if a region's load isn't over, if a region was loaded again or rewound, or if the ring's
// scope ended; in checked builds also if memory from before Begin was written. Take copies the
// states; of a tracked region (budget.RegionPlan.Track) it copies only changed pages, and makes a
// system call. It makes no Go allocation.
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

// Restore puts the snapshot with that number in place: all states are as they were when it was
// taken. It waits, until ctx ends, for workers that have one of the regions pinned. It fails and
// changes nothing in these cases:
//
//   - The ring doesn't hold the number, or its scope ended.
//   - A region was loaded again or rewound, or one is being loaded.
//   - ctx ended.
//   - An object with a finalizer began or ended since; the error names its type.
//   - An owned value of the state ended since.
//
// Functions of [State.Rebuild] run last. If one fails, Restore returns its error, and the states
// are in place. Restore copies the states; of a tracked region it copies only changed pages, and
// makes a system call. Apart from Rebuild's functions it makes no Go allocation.
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
		"NewRing; it holds: %[4]s", number, r.parts[0].saved.Name(), len(r.slots),
		strings.Trim(fmt.Sprint(held), "[]"))
}

// place empties the slot for a new snapshot with that number, and returns it.
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

func (r *Ring) hold(number uint64) *slot {
	to := r.place(number)
	to.image, r.spare = r.spare, to.image
	to.number, to.held, to.clean = number, true, true
	for i := range r.parts {
		r.parts[i].tracking.replaced(to.index)
	}
	return to
}

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

// clean clears free chunks, which differ between builds, and the chain's nodes, which differ
// between plans.
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

// holds reports whether a chunk has an object, also one with a running finalizer.
func holds(state byte) bool { return state == arena_c.ChunkLive || state == arena_c.ChunkLeaving }

// objects returns an error if an object with a finalizer began or ended since the snapshot.
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
			return fmt.Errorf("save: Restore of snapshot %d of region %s: in a pool with a %s, %d objects "+
				"began or ended since, and %d finalizers ran, which can't be undone; use a Pool "+
				"without finalizer, or make the pool after NewRing",
				from.number, p.saved.Name(), object, changed, ran)
		}
	}
	return nil
}
