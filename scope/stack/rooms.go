package stack

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Room is an inner arena: an arena of package arena on a block of a scope.
type Room struct {
	Kind         arena_c.RoomKind
	Offset, Size uint64       // of its block, from the arena's header; bytes
	C            bool         // made in C code
	Site         arena_c.Site // where it was made
	Of           reflect.Type // type of a pool's chunks; nil: not known
	Check        func(chunk []byte) error

	mayLive bool   // its blocks may be live at its end
	locks   uint64 // its live blocks that belong to a Shared
	shape   uint64 // of its header, to detect a header that was overwritten
}

func (r *Room) end() uint64 { return r.Offset + r.Size }

// frees reports whether the blocks or chunks of the arena can be freed one by one.
func (r *Room) frees() bool {
	switch r.Kind {
	case arena_c.RoomHeap, arena_c.RoomBuddy, arena_c.RoomRing, arena_c.RoomPool:
		return true
	}
	return false
}

// isOn reports whether the arena is on bytes of another one.
func (r *Room) isOn(other Room) bool {
	return other.Kind != arena_c.RoomShared && other.Offset < r.Offset && r.end() <= other.end()
}

// isBlockOf reports whether the arena is in a block or chunk of another one.
func (r *Room) isBlockOf(other Room) bool { return other.frees() && r.isOn(other) }

// rooms lists the arenas in a Stack. Its list never shrinks on the Go heap. Any goroutine may make
// an arena, on bytes that it owns.
type rooms struct {
	mu   sync.Mutex
	list []Room // in the order of making
	// a state is being made: all kinds are noted; otherwise only kinds whose blocks can be freed
	watched  bool
	from, to uint64 // a finished state, where no arena may be made
	missedC  uint64 // arenas that C's table had no place for when the state began
}

// Rooms returns a copy of the list of arenas in the Stack, sorted by offset. An arena in a block of
// another arena comes after that other arena.
func (st *Stack) Rooms() []Room {
	st.rooms.mu.Lock()
	defer st.rooms.mu.Unlock()
	list := slices.Clone(st.rooms.list)
	slices.SortStableFunc(list, func(a, b Room) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Size, a.Size))
	})
	return list
}

// watchRooms begins the part of Watch for rooms: earlier notes of C are dropped.
func (st *Stack) watchRooms() {
	for {
		if _, _, _, ok := arena_c.TakeCRoom(unsafe.Add(unsafe.Pointer(st.h), st.h.Cursor),
			st.h.Limit-st.h.Cursor); !ok {
			break
		}
	}
	st.rooms.mu.Lock()
	defer st.rooms.mu.Unlock()
	st.rooms.watched, st.rooms.missedC = true, arena_c.CRoomsLost()
}

// WatchedRooms ends the watch of arenas, when a state is finished. The state's offsets from the
// arena's header are [from, to). WatchedRooms returns the arenas in the state, sorted by offset,
// including the arenas that C made. Until the state's bytes are freed, no other arena can be made
// in the state. WatchedRooms returns an error if C made more arenas than C's table holds.
func (st *Stack) WatchedRooms(from, to uint64) ([]Room, error) {
	var list []Room
	for {
		kind, offset, size, ok := arena_c.TakeCRoom(unsafe.Add(unsafe.Pointer(st.h), from), to-from)
		if !ok {
			break
		}
		list = append(list, Room{Kind: kind, Offset: from + offset, Size: size, C: true})
	}
	r := &st.rooms
	r.mu.Lock()
	for i := range list {
		st.addRoom(list[i])
	}
	r.watched, r.from, r.to = false, from, to
	st.h.SetOdd(oddRooms)
	missed := r.missedC != arena_c.CRoomsLost()
	r.mu.Unlock()
	if missed {
		return nil, fmt.Errorf("scope: C code made more than %d arenas in states that have no ring yet",
			arena_c.CRoomsMax)
	}
	return slices.DeleteFunc(st.Rooms(), func(r Room) bool { return r.Offset < from || r.Offset >= to }), nil
}

// noteRoom adds a room. Another goroutine may use the scope at the same time and overwrite the bit;
// the room then ends with the load.
func (st *Stack) noteRoom(room Room) {
	st.addRoom(room)
	st.h.SetOdd(oddRooms)
}

// addRoom adds a room and removes the rooms that it overlaps, which have ended. It keeps a room
// that contains the new one in a block. pre: the lock is held.
func (st *Stack) addRoom(room Room) {
	r := &st.rooms
	r.list = slices.DeleteFunc(r.list, func(old Room) bool {
		apart := old.end() <= room.Offset || room.end() <= old.Offset
		inside := old.Offset < room.Offset && room.end() <= old.end()
		if apart || inside {
			return false
		}
		old.endSamples(st)
		return true
	})
	r.list = append(r.list, room)
}

// endSamples ends the samples of the arena's blocks in the profile of C's malloc. Only an arena
// with a Shared has samples.
func (r *Room) endSamples(st *Stack) {
	if r.locks != 0 {
		arena_c.RewindSamples(unsafe.Add(unsafe.Pointer(st.h), r.Offset), r.Size, 0)
	}
}

// roomOwner is a Stack as the owner of arenas on its bytes.
type roomOwner Stack

// String returns the name of the arena.
func (o *roomOwner) String() string { return fmt.Sprintf("budget %q: %s", o.Budget, o.Arena) }

// MayMake returns an error for an arena in a finished state, because package save would not check
// its words.
func (o *roomOwner) MayMake(b arena_c.Room) error {
	st := (*Stack)(o)
	r := &st.rooms
	at := st.h.Offset(b.Block)
	r.mu.Lock()
	defer r.mu.Unlock()
	if at >= r.to || at+b.Size <= r.from {
		return nil
	}
	return fmt.Errorf("%s: BUG: %s %s of %d bytes in its state, at offset %#x, made after the state was finished: "+
		"make it before save.NewRing", st.Arena, article(b.Kind.String()), b.Kind, b.Size, at-st.h.Start)
}

func article(name string) string {
	if name[0] == 'a' {
		return "an"
	}
	return "a"
}

func (o *roomOwner) Made(b arena_c.Room) {
	st := (*Stack)(o)
	room := Room{Kind: b.Kind, Offset: st.h.Offset(b.Block), Size: b.Size, Of: b.Of, Check: b.Check,
		mayLive: b.Kind != arena_c.RoomHeap && b.Kind != arena_c.RoomBuddy, shape: shapeOf(b.Kind, b.Block)}
	room.Site.Note()
	if w := st.warn; w != nil && (b.Kind == arena_c.RoomHeap || b.Kind == arena_c.RoomBuddy) {
		defer w.heap(st) // without the lock
	}
	r := &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched {
		b.SetPlain()
	}
	switch b.Kind {
	case arena_c.RoomEnds, arena_c.RoomStack, arena_c.RoomFrame: // kinds without blocks to free
		// TrimHeaps leaves out a heap on their bytes; frames and scratch have no TrimHeaps
		if !r.watched && st.row.Kind != arena_c.KindRegion {
			return
		}
	}
	st.noteRoom(room)
}

// Holding returns the open scope that contains p, and reports whether p is in a state. h is nil if
// p is in no budget. A p in a budget but in no open scope panics.
func Holding(p unsafe.Pointer) (h *arena_c.Scopes, gen uint64, inState bool) {
	st := stackWith(p)
	if st == nil {
		return nil, 0, false
	}
	for _, h := range st.ends() {
		at := h.Offset(p)
		for depth := uint64(1); depth <= h.Depth; depth++ {
			if from, end := st.edgesOf(h, depth); from <= at && at < end {
				st.rooms.mu.Lock()
				inState = st.watch != nil || at-st.rooms.from < st.rooms.to-st.rooms.from
				st.rooms.mu.Unlock() // not deferred: a defer in a loop allocates
				return h, h.Record(depth).Gen, inState
			}
		}
	}
	panic(Misusef("a container on a heap in %s whose scope is closed", st.Arena))
}

// shapeOf combines words of a header that never change, to detect a header that was overwritten.
func shapeOf(kind arena_c.RoomKind, header unsafe.Pointer) uint64 {
	switch kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		return x.First + x.Lists<<16 + x.End<<24
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		return x.First + x.Smallest<<1 + x.End<<24
	case arena_c.RoomRing:
		x := (*arena_c.Ring)(header)
		return x.Gen + x.End<<32
	case arena_c.RoomPool:
		x := (*arena_c.Pool)(header)
		return x.Gen + x.Stride<<32
	}
	return 0
}
