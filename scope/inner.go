package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Inner describes an arena of package arena in a scope. Sizes are bytes.
type Inner struct {
	Kind   string `json:"kind"`             // "heap", "buddy", "ring" or "pool"
	Scope  string `json:"scope"`            // name of the open scope that contains it
	Size   uint64 `json:"size"`             // bytes for blocks
	Used   uint64 `json:"used"`             // bytes that live blocks take
	Peak   uint64 `json:"peak"`             // highest Used
	Live   uint64 `json:"live"`             // blocks, or chunks
	Failed uint64 `json:"failed,omitempty"` // requests that a heap or a buddy had no room for
	// in checked builds the calls that made the arena: "function file:line", newest first
	Made []string `json:"made,omitempty"`

	site arena_c.Site
}

// AppendInner appends to list the arenas in open scopes whose blocks can be freed one by one,
// oldest first, and returns the list without Made: see TellInner. The Stack's owner calls it while
// those arenas aren't in use.
func (st *Stack) AppendInner(list []Inner) []Inner {
	if st.h.Odd&oddRooms == 0 {
		return list
	}
	r := &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		room := &r.list[i]
		block := arena_c.Position(unsafe.Add(unsafe.Pointer(st.h), room.Offset))
		if room.shape == 0 || shapeOf(room.Kind, block) != room.shape {
			continue // C made it, or its header was overwritten
		}
		counts := countsOf(room.Kind, block)
		counts.site = room.Site
		list = append(list, st.inner(counts, room.Offset))
	}
	return list
}

// TellInner fills in Made of each arena in list. Cost: in checked builds a Go allocation for each
// line of Made.
func TellInner(list []Inner) {
	for i := range list {
		in := &list[i]
		in.Made, in.site = in.site.Calls(), arena_c.Site{}
	}
}

func (st *Stack) inner(in Inner, at uint64) Inner {
	in.Scope = tempName
	for depth := st.h.Depth; depth > 0 && at < st.h.Limit; depth-- {
		if st.h.Record(depth).Mark <= at {
			in.Scope = st.nameOf(st.h, depth)
			break
		}
	}
	return in
}

func countsOf(kind arena_c.RoomKind, header unsafe.Pointer) (in Inner) {
	switch kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		in = Inner{Kind: "heap", Size: x.End - x.First, Used: x.Used, Peak: x.Peak(), Live: x.Live, Failed: x.Failed}
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		in = Inner{Kind: "buddy", Size: x.End - x.First, Used: x.Used, Peak: x.Peak, Live: x.Live, Failed: x.Failed}
	case arena_c.RoomRing:
		x := (*arena_c.Ring)(header)
		in = Inner{Kind: "ring", Size: x.Size(), Used: x.Used(), Peak: x.Peak(), Live: x.Count}
	case arena_c.RoomPool:
		x := (*arena_c.Pool)(header)
		in = Inner{Kind: "pool", Size: uint64(x.Count) * x.Stride, Used: x.Live() * x.Stride, Peak: x.Peak() * x.Stride, Live: x.Live()}
	}
	return in
}
