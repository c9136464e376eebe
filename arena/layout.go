package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Layout describes the block of an arena at one moment. Either Parts lists the parts that cover the
// block, or Pool has the chunks of a BlockPool.
type Layout struct {
	Kind  string // "heap", "buddy", "ring", "pool"
	Size  uint64 // of the block in bytes
	Parts []Part
	Pool  *PoolLayout
}

// Part is a part of a block. Offset counts from the block's first byte; sizes are bytes.
type Part struct {
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
	// "header", "live", "free", "parked" (freed in a heap, kept for its size), "lost" (overwritten
	// in a heap), "skipped" (a ring's tail)
	Kind  string `json:"kind"`
	Asked uint64 `json:"asked,omitempty"` // of a live block: the requested size, where known
}

// Inner is an arena that may be in a block of a region: a Heap, Buddy, Ring or BlockPool.
type Inner interface {
	// Block returns the first byte of its block.
	Block() unsafe.Pointer

	// Layout describes the arena's block, which has at most room bytes. The caller must be the
	// goroutine that uses the arena. An error means that the arena's control words were
	// overwritten, because they contradict each other or room. Cost: O(blocks), and a copy.
	Layout(room uint64) (Layout, error)
}

var _ = []Inner{Heap{}, Buddy{}, Ring{}, BlockPool[byte]{}}

// Block returns the first byte of the heap's block.
func (h Heap) Block() unsafe.Pointer { return unsafe.Pointer(h.its()) }

// Layout describes the heap's block: see [Inner].
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

// Block returns the first byte of the buddy's block.
func (b Buddy) Block() unsafe.Pointer { return unsafe.Pointer(b.its()) }

// Layout describes the buddy's block: see [Inner].
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

// Block returns the first byte of the ring's block.
func (r Ring) Block() unsafe.Pointer { return unsafe.Pointer(r.its()) }

// Layout describes the ring's block: see [Inner]. A live part includes the block's header and
// padding.
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

// Block returns the first byte of the pool's block.
func (p BlockPool[T]) Block() unsafe.Pointer { return unsafe.Pointer(p.its()) }

// Layout describes the pool's block: see [Inner].
func (p BlockPool[T]) Layout(room uint64) (Layout, error) {
	x, l := p.its(), Layout{Kind: "pool"}
	if x.Gen != p.gen || x.Chunks > room || x.Stride == 0 || uint64(x.Count) > (room-x.Chunks)/x.Stride {
		return l, refused("BlockPool.Layout", arena_c.Corrupt)
	}
	chunks := PoolLayoutOf(x)
	l.Size, l.Pool = x.Chunks+x.Stride*uint64(x.Count), &chunks
	return l, nil
}

// laidOut returns l with a part for each range of a walk, and parts that fill the gaps.
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

// add appends a part, and before it a part for the gap: the arena's header at the start, free bytes
// later.
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

// PoolLayout describes the chunks of a pool.
type PoolLayout struct {
	Stride uint64 `json:"stride"` // of a chunk in bytes
	Count  uint64 `json:"count"`
	Live   uint64 `json:"live"`
	Peak   uint64 `json:"peak"`

	// States has a letter for each chunk: '#' live, '.' free, '-' never used, '~' in its finalizer,
	// 'x' out of generations, '?' overwritten.
	States string `json:"states"`
	// Next lists the free chunks in the order in which Get takes them. The chunks that were never
	// used follow, in order.
	Next []uint32 `json:"next,omitempty"`
}

const chunkLetters = "-#.~x" // by state

// PoolLayoutOf describes the chunks of the pool with header p. Cost: O(chunks), and a copy.
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
