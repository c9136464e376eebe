package stack

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Inner describes an arena of package arena, or a cache of package cache, in a scope. Sizes are
// bytes.
type Inner struct {
	Kind   string `json:"kind"`             // "heap", "buddy", "ring", "pool" or "cache"
	Of     string `json:"of,omitempty"`     // type of a cache's values, or "bytes"
	Scope  string `json:"scope"`            // name of the open scope that contains it
	Size   uint64 `json:"size"`             // bytes for blocks; for values; of a cache.Bytes: all
	Used   uint64 `json:"used"`             // bytes of live blocks; of values; of keys and values
	Peak   uint64 `json:"peak"`             // highest Used; 0 for a cache
	Live   uint64 `json:"live"`             // blocks, chunks or values
	Failed uint64 `json:"failed,omitempty"` // requests that a heap, buddy or cache refused
	CacheCounts
	// in checked builds the calls that made the arena: "function file:line", newest first
	Made []string `json:"made,omitempty"`

	site arena_c.Site
}

// CacheCounts are counters of a cache since it was made. For an arena they are the sums over its
// caches, including the caches that have ended.
type CacheCounts struct {
	Hits      uint64 `json:"hits,omitempty"`
	Misses    uint64 `json:"misses,omitempty"`
	Evictions uint64 `json:"evictions,omitempty"`
}

func (c *CacheCounts) add(other CacheCounts) {
	c.Hits += other.Hits
	c.Misses += other.Misses
	c.Evictions += other.Evictions
}

// caches are the caches of package cache in an arena. They belong to the goroutine that may use the
// arena.
type caches struct {
	list       []cacheNote // in open scopes
	ended      CacheCounts
	finalizers atomic.Uint64 // that caches ran, on any goroutine
}

// theCaches returns st.caches, which the first cache makes.
func (st *Stack) theCaches() *caches {
	if st.caches == nil {
		st.caches = new(caches)
	}
	return st.caches
}

type cacheNote struct {
	offset uint64 // from the arena's header
	site   arena_c.Site
	figure func() (Inner, bool)
}

// CacheFinalizers returns the number of finalizers that the arena's caches have run. The caches add
// to it, on any goroutine.
func (st *Stack) CacheFinalizers() *atomic.Uint64 { return &st.theCaches().finalizers }

// NoteCache adds a cache with a block at p to the reports of the arena. A report calls figure on
// the goroutine that may use the arena. figure is called a last time before the block is freed, and
// returns false after the cache's scope has closed.
func (st *Stack) NoteCache(p unsafe.Pointer, figure func() (of Inner, ok bool)) {
	all := st.theCaches()
	all.list = slices.DeleteFunc(all.list, func(n cacheNote) bool {
		_, ok := n.figure()
		return !ok // C closed its scope
	})
	n := cacheNote{offset: st.h.Offset(p), figure: figure}
	n.site.Note()
	all.list = append(all.list, n)
	st.h.SetOdd(oddRooms)
}

func (c *caches) open() bool { return c != nil && len(c.list) != 0 }

// end removes the caches in bytes that are about to be freed, and keeps their counts.
func (c *caches) end(from, to uint64) {
	if !c.open() {
		return
	}
	c.list = slices.DeleteFunc(c.list, func(n cacheNote) bool {
		if n.offset < from || to <= n.offset {
			return false
		}
		if in, ok := n.figure(); ok {
			c.ended.add(in.CacheCounts)
		}
		return true
	})
}

// counts returns the counts of all caches that the arena had.
func (c *caches) counts() (sum CacheCounts) {
	if c == nil {
		return sum
	}
	sum = c.ended
	for i := range c.list {
		if in, ok := c.list[i].figure(); ok {
			sum.add(in.CacheCounts)
		}
	}
	return sum
}

func (c *caches) append(list []Inner, st *Stack) []Inner {
	if !c.open() {
		return list
	}
	for i := range c.list {
		if in, ok := c.list[i].figure(); ok {
			in.Kind, in.site = "cache", c.list[i].site
			list = append(list, st.inner(in, c.list[i].offset))
		}
	}
	return list
}

// AppendInner appends to list the arenas in open scopes whose blocks can be freed one by one, the
// oldest arena first, and then the caches. It leaves out arenas that C made, and those whose header
// was overwritten. Made stays empty: see TellInner. The Stack's owner calls AppendInner while these
// arenas aren't in use.
func (st *Stack) AppendInner(list []Inner) []Inner {
	if st.h.Odd&oddRooms == 0 {
		return list
	}
	return st.caches.append(st.appendRooms(list), st)
}

func (st *Stack) appendRooms(list []Inner) []Inner {
	r := &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		room := &r.list[i]
		header, ok := st.header(room)
		if !ok {
			continue
		}
		counts := countsOf(room.Kind, header)
		counts.site = room.Site
		list = append(list, st.inner(counts, room.Offset))
	}
	return list
}

// header returns the header of a room's arena, unless C made it or the header was overwritten.
func (st *Stack) header(room *Room) (header unsafe.Pointer, ok bool) {
	header = arena_c.Position(unsafe.Add(unsafe.Pointer(st.h), room.Offset))
	return header, room.shape != 0 && shapeOf(room.Kind, header) == room.shape
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

// innerKinds are the kinds of arenas in a scope whose blocks can be freed one by one.
var innerKinds = [arena_c.RoomKinds]string{arena_c.RoomHeap: "heap", arena_c.RoomBuddy: "buddy",
	arena_c.RoomRing: "ring", arena_c.RoomPool: "pool"}

func countsOf(kind arena_c.RoomKind, header unsafe.Pointer) (in Inner) {
	switch kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		in = Inner{Size: x.End - x.First, Used: x.Used, Peak: x.Peak(), Live: x.Live, Failed: x.Failed}
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		in = Inner{Size: x.End - x.First, Used: x.Used, Peak: x.Peak, Live: x.Live, Failed: x.Failed}
	case arena_c.RoomRing:
		x := (*arena_c.Ring)(header)
		in = Inner{Size: x.Size(), Used: x.Used(), Peak: x.Peak(), Live: x.Count}
	case arena_c.RoomPool:
		x := (*arena_c.Pool)(header)
		in = Inner{Size: uint64(x.Count) * x.Stride, Used: x.Live() * x.Stride, Peak: x.Peak() * x.Stride,
			Live: x.Live()}
	}
	in.Kind = innerKinds[kind]
	return in
}
