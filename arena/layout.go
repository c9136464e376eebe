package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Layout is what lies in the block of an arena now: its parts by offset from the block's first byte, which cover it, or a
// pool's chunks.
type Layout struct {
	Kind  string // "heap", "buddy", "ring", "pool"
	Size  uint64 // of the block, in bytes
	Parts []Part
	Pool  *PoolLayout
}

// Part is a piece of a block. Sizes are bytes.
type Part struct {
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
	Kind   string `json:"kind"`            // "header", "live", "free", "parked" (a heap's freed block, for the next of its size), "skipped" (a ring's tail)
	Asked  uint64 `json:"asked,omitempty"` // of what is live, where it is known
}

// Inner is an arena that lies in a block, which may be of a region: Heap, Buddy, Ring, BlockPool.
type Inner interface {
	// Block is the first byte of its block.
	Block() unsafe.Pointer

	// Layout is what lies in its block, which has room bytes at most. It belongs to who uses the arena. An error says that its
	// words contradict themselves, or the room: somebody wrote over them. Cost: O(blocks), and a copy.
	Layout(room uint64) (Layout, error)
}

var _ = []Inner{Heap{}, Buddy{}, Ring{}, BlockPool[byte]{}}

// Block is the first byte of the heap's block.
func (h Heap) Block() unsafe.Pointer { return unsafe.Pointer(h.its()) }

// Layout is what lies in the heap's block: see [Inner].
func (h Heap) Layout(room uint64) (Layout, error) {
	x := h.its()
	l := Layout{Kind: "heap", Size: x.End + arena_c.HeapAlign}
	if room < arena_c.HeapAlign || x.End > room-arena_c.HeapAlign {
		return l, refused("Heap.Layout", arena_c.Corrupt)
	}
	return laidOut(l, "Heap.Layout", x.Walk, func(r arena_c.HeapRange) Part {
		return Part{r.Offset, r.Size, heapKinds[r.Live], r.Asked}
	})
}

var heapKinds = [...]string{0: "free", 1: "live", arena_c.HeapParked: "parked", arena_c.HeapLost: "lost"}

// Block is the first byte of the buddy's block.
func (b Buddy) Block() unsafe.Pointer { return unsafe.Pointer(b.its()) }

// Layout is what lies in the buddy's block: see [Inner].
func (b Buddy) Layout(room uint64) (Layout, error) {
	x := b.its()
	l := Layout{Kind: "buddy", Size: x.End}
	if x.End > room {
		return l, refused("Buddy.Layout", arena_c.Corrupt)
	}
	return laidOut(l, "Buddy.Layout", x.Walk, func(r arena_c.BuddyRange) Part {
		return Part{r.Offset, r.Size, heapKinds[r.Live], 0}
	})
}

// Block is the first byte of the ring's block.
func (r Ring) Block() unsafe.Pointer { return unsafe.Pointer(r.its()) }

// Layout is what lies in the ring's block: see [Inner]. A block's word and its padding are of what is live.
func (r Ring) Layout(room uint64) (Layout, error) {
	x := r.its()
	l := Layout{Kind: "ring", Size: x.End}
	if x.Gen != r.gen || x.End > room {
		return l, refused("Ring.Layout", arena_c.Corrupt)
	}
	return laidOut(l, "Ring.Layout", x.Walk, func(b arena_c.RingRange) Part {
		kind := "live"
		if b.Skipped != 0 {
			kind = "skipped"
		}
		return Part{b.Offset, b.Size, kind, b.Asked}
	})
}

// Block is the first byte of the pool's block.
func (p BlockPool[T]) Block() unsafe.Pointer { return unsafe.Pointer(p.its()) }

// Layout is what lies in the pool's block: see [Inner].
func (p BlockPool[T]) Layout(room uint64) (Layout, error) {
	x, l := p.its(), Layout{Kind: "pool"}
	if x.Gen != p.gen || x.Chunks > room || x.Stride == 0 || uint64(x.Count) > (room-x.Chunks)/x.Stride {
		return l, refused("BlockPool.Layout", arena_c.Corrupt)
	}
	chunks := PoolLayoutOf(x)
	l.Size, l.Pool = x.Chunks+x.Stride*uint64(x.Count), &chunks
	return l, nil
}

// laidOut is l with a part for each thing that a walk names, and all of its size covered.
func laidOut[R any](l Layout, what string, walk func([]R) (uint64, arena_c.Code), part func(R) Part) (Layout, error) {
	count, code := walk(nil)
	list := make([]R, count)
	if code == arena_c.OK {
		_, code = walk(list)
	}
	if code != arena_c.OK {
		return l, refused(what, code)
	}
	for _, r := range list {
		l.add(part(r))
	}
	l.add(Part{Offset: l.Size})
	return l, nil
}

// add adds a part, and before it what nobody has: first the arena's own words, later what is free.
func (l *Layout) add(p Part) {
	at, kind := uint64(0), "header"
	if n := len(l.Parts); n != 0 {
		at, kind = l.Parts[n-1].Offset+l.Parts[n-1].Size, "free"
	}
	if p.Offset > at {
		l.Parts = append(l.Parts, Part{at, p.Offset - at, kind, 0})
	}
	if p.Size != 0 {
		l.Parts = append(l.Parts, p)
	}
}

// PoolLayout is what a pool's chunks are.
type PoolLayout struct {
	Stride uint64 `json:"stride"` // bytes of each
	Count  uint64 `json:"count"`
	Live   uint64 `json:"live"`
	Peak   uint64 `json:"peak"`

	// States has a letter for each: '#' live, '.' free, '-' never used, '~' its finalizer runs, 'x' out of generations, '?' that
	// somebody wrote over its state.
	States string `json:"states"`
	// Next are the free ones in the order in which Get gives them. Behind them come those that were never used, in order.
	Next []uint32 `json:"next,omitempty"`
}

const chunkLetters = "-#.~x" // by state

// PoolLayoutOf is what the chunks of a pool are: for who has its header. Cost: O(chunks), and a copy.
func PoolLayoutOf(p *arena_c.Pool) PoolLayout {
	count := uint64(p.Count)
	c := PoolLayout{Stride: p.Stride, Count: count, Live: p.Live(), Peak: p.Peak()}
	states := make([]byte, count)
	for i := range states {
		states[i] = '?'
		if state := *p.State(uint64(i)); int(state) < len(chunkLetters) {
			states[i] = chunkLetters[state]
		}
	}
	c.States = string(states)
	for place := min(p.Free, count); place > 0; place-- {
		if index := *p.Number(place - 1); uint64(index) < count && states[index] == '.' {
			c.Next = append(c.Next, index)
		}
	}
	return c
}
