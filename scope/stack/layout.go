package stack

import (
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Layout describes the block of an arena at one moment. Either Parts lists the parts that cover the
// block, or Pool has the chunks of a pool.
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
	// "header", "live" (in a ring, with the block's header and padding), "free", "parked" (freed in
	// a heap, kept for its size), "lost" (overwritten in a heap), "skipped" (a ring's tail)
	Kind  string `json:"kind"`
	Asked uint64 `json:"asked,omitempty"` // of a live block: the requested size, where known
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

// partKinds are the kinds of parts by arena_c.Block.Live.
var partKinds = [...]string{0: "free", 1: "live", arena_c.HeapParked: "parked", arena_c.HeapLost: "lost",
	arena_c.RingSkipped: "skipped"}

// Layout describes the heap, buddy, ring or pool whose block begins at p and has at most room
// bytes. The caller must be the goroutine that uses this arena. The code is Foreign if there is no
// such arena in st. Any other code but OK means that control words of the arena were overwritten,
// because they contradict each other or room. Cost: O(blocks), and a copy.
func (st *Stack) Layout(p unsafe.Pointer, room uint64) (l Layout, code arena_c.Code) {
	rooms, at := st.Rooms(), st.h.Offset(p)
	i := slices.IndexFunc(rooms, func(r Room) bool { return r.Offset == at && innerKinds[r.Kind] != "" })
	if i < 0 {
		return l, arena_c.Foreign
	}
	header, ok := st.header(&rooms[i])
	if !ok {
		return l, arena_c.Corrupt
	}
	l.Kind = innerKinds[rooms[i].Kind]
	var end uint64
	var walk func([]arena_c.Block) (uint64, arena_c.Code)
	switch rooms[i].Kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		end, l.Size, walk = x.End, x.End+arena_c.HeapAlign, x.Walk
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		end, l.Size, walk = x.End, x.End, x.Walk
	case arena_c.RoomRing:
		x := (*arena_c.Ring)(header)
		end, l.Size, walk = x.End, x.End, x.Walk
	case arena_c.RoomPool:
		x := (*arena_c.Pool)(header)
		if x.Chunks > room || x.Stride == 0 || uint64(x.Count) > (room-x.Chunks)/x.Stride {
			return l, arena_c.Corrupt
		}
		l.Size, l.Pool = x.Chunks+x.Stride*uint64(x.Count), PoolLayoutOf(x)
		return l, arena_c.OK
	}
	if end > room || l.Size > room {
		return l, arena_c.Corrupt
	}
	list, code := walked(walk)
	if code != arena_c.OK {
		return l, code
	}
	for _, b := range list {
		l.add(Part{b.Offset, b.Size, partKinds[b.Live], b.Asked})
	}
	l.add(Part{Offset: l.Size})
	return l, arena_c.OK
}

// walked returns the blocks of an arena. After an error of the walk it has those before the error.
func walked(walk func([]arena_c.Block) (uint64, arena_c.Code)) ([]arena_c.Block, arena_c.Code) {
	n, _ := walk(nil)
	list := make([]arena_c.Block, n)
	n, code := walk(list)
	return list[:min(n, uint64(len(list)))], code
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

// PoolLayoutOf describes the chunks of the pool with header p. Cost: O(chunks), and a copy.
func PoolLayoutOf(p *arena_c.Pool) *PoolLayout {
	count := uint64(p.Count)
	c := &PoolLayout{Stride: p.Stride, Count: count, Live: p.Live(), Peak: p.Peak()}
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
