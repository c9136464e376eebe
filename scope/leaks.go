package scope

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// tells is the end of the arena where a scope closes that tells of blocks that live in it. Where what ran failed, or
// its constructor did, it may not have come to free them: that error is told, and nothing on top of it.
func (u *unwinding) tells() *arena_c.Scopes {
	if u.to.cursor != 0 || u.st.fails {
		return nil
	}
	return u.h
}

// fail is CloseTo for the owner whose function failed.
func (st *Stack) fail(depth int) error {
	st.fails = true
	defer func() { st.fails = false }() // also when a finalizer ends the goroutine
	return st.CloseTo(depth)
}

// leaked says what lives in an arena of which nothing should, and whose bytes are still there. What
// lies in a block of another arena is that one's: the block. pre: the lock of the rooms is held.
func (st *Stack) leaked(index int, h *arena_c.Scopes) error {
	room := &st.rooms.list[index]
	if room.C || !room.tells() || slices.ContainsFunc(st.rooms.list, room.isBlockOf) {
		return nil
	}
	block := arena_c.Position(unsafe.Add(unsafe.Pointer(st.h), room.Offset))
	if shapeOf(room.Kind, block) != room.shape { // the bytes are something else's by now
		return nil
	}
	live, what, used := liveIn(room.Kind, block)
	if live <= room.locks {
		return nil
	}
	live -= room.locks
	st.leaks += live
	if live == 1 {
		what = what[:len(what)-1]
	}
	do := "free each before the scope closes, or call MayLive"
	if room.word == arena_c.RoomMustEmpty {
		do = "MustEmpty asked for none"
	}
	name := room.Kind.String()
	return fmt.Errorf("%s, scope %q: %s %s of %d bytes ends with %d live %s, %d bytes used; %s%s", st.Arena,
		st.nameOf(h, h.Depth), article(name), name, room.Size, live, what, used, do, room.Site.Tell("made"))
}

// isBlockOf: it lies in a block of another arena, or in a chunk.
func (r *Room) isBlockOf(other Room) bool {
	switch other.Kind {
	case arena_c.RoomHeap, arena_c.RoomBuddy, arena_c.RoomRing, arena_c.RoomPool:
		return other.Offset < r.Offset && r.end() <= other.end()
	}
	return false
}

// tells: it is a leak when something lives there at its end.
func (r *Room) tells() bool {
	switch r.Kind {
	case arena_c.RoomHeap, arena_c.RoomBuddy:
		return r.word != arena_c.RoomMayLive
	case arena_c.RoomRing, arena_c.RoomPool:
		return r.word == arena_c.RoomMustEmpty
	}
	return false
}

// shapeOf is made of words of a header that never change, and of no other's.
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

// liveIn is how many blocks of an arena live, what they are called, and how many bytes are in use.
func liveIn(kind arena_c.RoomKind, header unsafe.Pointer) (live uint64, what string, used uint64) {
	switch kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		return x.Live, "blocks", x.Used
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		return x.Live, "blocks", x.Used
	case arena_c.RoomRing:
		x := (*arena_c.Ring)(header)
		return x.Count, "blocks", x.Used()
	}
	x := (*arena_c.Pool)(header)
	return x.Live(), "chunks", x.Live() * x.Stride
}

// Says keeps it with the arena: of values that are copied each is the same.
func (o *roomOwner) Says(kind arena_c.RoomKind, header unsafe.Pointer, word arena_c.RoomWord) {
	st := (*Stack)(o)
	at, r := st.h.Offset(header), &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		room := &r.list[i]
		if room.Kind != kind || room.Offset != at {
			continue
		}
		switch word {
		case arena_c.RoomHasLock:
			room.locks++
		case arena_c.RoomWasReset:
			room.locks = 0
		default:
			room.word = word
		}
	}
}
