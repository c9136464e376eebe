package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// leaked returns the error of live blocks in a room whose bytes are about to be freed, or nil. For
// a room in a block of another arena it returns nil, because that block is reported. pre: the lock
// of the rooms is held.
func (st *Stack) leaked(index int, h *arena_c.Scopes) error {
	room := &st.rooms.list[index]
	if room.mayLive || slices.ContainsFunc(st.rooms.list, room.isBlockOf) {
		return nil
	}
	block, ok := st.header(room)
	if !ok {
		return nil
	}
	counts, what := countsOf(room.Kind, block), "blocks"
	if room.Kind == arena_c.RoomPool {
		what = "chunks"
	}
	live, used := counts.Live, counts.Used
	if live <= room.locks {
		return nil
	}
	live -= room.locks
	st.leaks += live
	if live == 1 {
		what = what[:len(what)-1]
	}
	do := "free each before the scope closes, or call MayLive"
	if room.Kind == arena_c.RoomRing || room.Kind == arena_c.RoomPool {
		do = "MustEmpty asked for none"
	}
	name := room.Kind.String()
	return fmt.Errorf("%s: %s %s of %d bytes ends with %d live %s, %d bytes used; %s%s%s", st.ending(h),
		article(name), name, room.Size, live, what, used, do, room.Site.Tell("made"), st.whose(room.Kind, block, live))
}

const placesTold = 16

// allocated counts the live blocks that one place allocated.
type allocated struct {
	at            arena_c.Site
	blocks, bytes uint64
}

// whose returns, in checked builds, the places that allocated the live blocks of a heap or a buddy,
// most bytes first. live is the number of all live blocks; a walk that ends at damage finds fewer.
// pre: the lock of the rooms is held.
func (st *Stack) whose(kind arena_c.RoomKind, header unsafe.Pointer, live uint64) string {
	if !arena_c.Checked {
		return ""
	}
	var list []allocated
	add := func(p unsafe.Pointer, x interface {
		SizeOf(p unsafe.Pointer) (uint64, arena_c.Code)
	}) {
		lock := func(r Room) bool { return r.Kind == arena_c.RoomShared && r.Offset == st.h.Offset(p) }
		if slices.ContainsFunc(st.rooms.list, lock) {
			return
		}
		size, _ := x.SizeOf(p)
		site := arena_c.BlockMade(p)
		i := slices.IndexFunc(list, func(a allocated) bool { return a.at == site })
		if i < 0 {
			i, list = len(list), append(list, allocated{at: site})
		}
		list[i].blocks++
		list[i].bytes += size
	}
	switch kind {
	case arena_c.RoomHeap:
		x := (*arena_c.Heap)(header)
		all, _ := walked(x.Walk)
		for _, b := range all {
			if b.Live == 1 {
				add(unsafe.Add(header, b.Offset+arena_c.HeapAlign), x)
			}
		}
	case arena_c.RoomBuddy:
		x := (*arena_c.Buddy)(header)
		all, _ := walked(x.Walk)
		for _, b := range all {
			if b.Live == 1 {
				add(unsafe.Add(header, b.Offset), x)
			}
		}
	default:
		return ""
	}
	slices.SortStableFunc(list, func(a, b allocated) int { return cmp.Compare(b.bytes, a.bytes) })
	var text strings.Builder
	for _, a := range list[:min(len(list), placesTold)] {
		what := fmt.Sprintf("%s, %d bytes, allocated", blocks(a.blocks), a.bytes)
		if a.at == (arena_c.Site{}) {
			text.WriteString("\n\t" + what + " by C, or at a place no longer known")
		}
		text.WriteString(a.at.Tell(what))
		live -= a.blocks
	}
	if live > 0 {
		text.WriteString("\n\tand " + blocks(live) + " more")
	}
	return text.String()
}

func blocks(n uint64) string {
	if n == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}

// MayLive notes whether blocks of the arena with that header may be live at its end. The note
// belongs to the header, so it holds for each copy of the arena's Go value.
func (o *roomOwner) MayLive(kind arena_c.RoomKind, header unsafe.Pointer, may bool) {
	o.with(kind, header, func(room *Room) { room.mayLive = may })
}

// HasLock notes that one more block of the arena with that header holds a lock, or that no block of
// it is live any more.
func (o *roomOwner) HasLock(kind arena_c.RoomKind, header unsafe.Pointer, has bool) {
	o.with(kind, header, func(room *Room) {
		if has {
			room.locks++
			return
		}
		room.endSamples((*Stack)(o))
		room.locks = 0
		of := *room
		o.rooms.list = slices.DeleteFunc(o.rooms.list, func(in Room) bool { return in.isBlockOf(of) })
	})
}

// with calls fn with the room of an arena, if there is one, under the lock of the rooms.
func (o *roomOwner) with(kind arena_c.RoomKind, header unsafe.Pointer, fn func(*Room)) {
	at, r := (*Stack)(o).h.Offset(header), &o.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		if room := &r.list[i]; room.Kind == kind && room.Offset == at {
			fn(room)
			return
		}
	}
}

// endRooms ends the arenas and caches in bytes that are about to be freed. h is the end of the
// arena whose topmost scope closes. If h isn't nil, endRooms returns the leaks, newest arena first.
func (st *Stack) endRooms(from, to uint64, h *arena_c.Scopes) (err error) {
	r := &st.rooms
	if from >= to {
		return nil
	}
	st.caches.end(from, to)
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := func(room Room) bool { return from < room.end() && room.Offset < to }
	for i := len(r.list) - 1; i >= 0 && h != nil; i-- {
		if ends(r.list[i]) {
			err = joined(err, st.leaked(i, h))
		}
	}
	r.list = slices.DeleteFunc(r.list, func(room Room) bool {
		if !ends(room) {
			return false
		}
		room.endSamples(st)
		return true
	})
	if from < r.to && r.from < to {
		r.from, r.to = 0, 0
	}
	if len(r.list) == 0 && r.to == 0 && !st.caches.open() {
		st.h.Odd &^= oddRooms
	}
	return err
}
