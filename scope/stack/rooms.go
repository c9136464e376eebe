package stack

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
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

	word  arena_c.RoomWord // the program's choice for live blocks at its end; 0: no choice
	locks uint64           // its live blocks that belong to a Shared
	shape uint64           // of its header, to detect a header that was overwritten
}

func (r *Room) end() uint64 { return r.Offset + r.Size }

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
		if _, ok := arena_c.TakeCRoom(unsafe.Add(unsafe.Pointer(st.h), st.h.Cursor), st.h.Limit-st.h.Cursor); !ok {
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
		c, ok := arena_c.TakeCRoom(unsafe.Add(unsafe.Pointer(st.h), from), to-from)
		if !ok {
			break
		}
		list = append(list, Room{Kind: c.Kind, Offset: from + c.Offset, Size: c.Size, C: true})
	}
	r := &st.rooms
	r.mu.Lock()
	for i := range list {
		r.add(list[i])
	}
	r.watched, r.from, r.to = false, from, to
	st.h.SetOdd(oddRooms)
	missed := r.missedC != arena_c.CRoomsLost()
	r.mu.Unlock()
	if missed {
		return nil, fmt.Errorf("scope: C code made more than %d arenas in states that have no ring yet", arena_c.CRoomsMax)
	}
	return slices.DeleteFunc(st.Rooms(), func(r Room) bool { return r.Offset < from || r.Offset >= to }), nil
}

// noteRoom adds a room. Another goroutine may use the scope at the same time and overwrite the bit;
// the room then ends with the load.
func (st *Stack) noteRoom(room Room) {
	st.rooms.add(room)
	st.h.SetOdd(oddRooms)
}

// add adds a room and removes the rooms that it overlaps, which have ended. It keeps a room that
// contains the new one in a block. pre: the lock is held.
func (r *rooms) add(room Room) {
	r.list = slices.DeleteFunc(r.list, func(old Room) bool {
		apart := old.end() <= room.Offset || room.end() <= old.Offset
		inside := old.Offset < room.Offset && room.end() <= old.end()
		return !apart && !inside
	})
	r.list = append(r.list, room)
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
	r.list = slices.DeleteFunc(r.list, ends)
	if from < r.to && r.from < to {
		r.from, r.to = 0, 0
	}
	if len(r.list) == 0 && r.to == 0 && !st.caches.open() {
		st.h.Odd &^= oddRooms
	}
	return err
}

// roomOwner is a Stack as the owner of arenas on its bytes.
type roomOwner Stack

// MayMake returns an error for an arena in a finished state, because package save would not check
// its words.
func (o *roomOwner) MayMake(b arena_c.RoomBlock) error {
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

func (o *roomOwner) Made(b arena_c.RoomBlock) {
	st := (*Stack)(o)
	room := Room{Kind: b.Kind, Offset: st.h.Offset(b.Block), Size: b.Size, Of: b.Of, Check: b.Check,
		shape: shapeOf(b.Kind, b.Block)}
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

// budgets has the open budgets by address, to find the arena of a block. A change makes a copy,
// under the registry's lock.
var budgets atomic.Pointer[[]openBudget]

type openBudget struct {
	from unsafe.Pointer
	size uint64
	// the highest end of this budget and the ones before it: a budget may be inside another
	end    uintptr
	stacks *int // number of open stacks; read only under the registry's lock
}

// findRoomOwner is called by package arena_c while a budget is open.
var findRoomOwner = func(block unsafe.Pointer) arena_c.RoomOwner {
	if st := stackWith(block); st != nil {
		return (*roomOwner)(st)
	}
	return nil
}

// stackWith returns the Stack that contains a block, or nil. Cost: O(log budgets + log arenas); in
// asan and checked builds, where the block may be in any mirror, O(budgets).
func stackWith(block unsafe.Pointer) *Stack {
	all := budgets.Load()
	if all == nil {
		return nil
	}
	list, at := *all, uintptr(block)
	for i := range list {
		if !arena_c.Checked && !arena_c.Asan {
			break
		}
		if place := arena_c.Place(block, list[i].from); place < list[i].size {
			at = uintptr(list[i].from) + uintptr(place)
			break
		}
	}
	n, found := slices.BinarySearchFunc(list, at, byAddress)
	if found {
		n++
	}
	for ; n > 0 && at < list[n-1].end; n-- {
		if place := uint64(at - uintptr(list[n-1].from)); place < list[n-1].size {
			return list[n-1].stackAt(place)
		}
	}
	return nil
}

func byAddress(b openBudget, at uintptr) int { return cmp.Compare(uintptr(b.from), at) }

// stackAt returns the Stack with the byte at an offset of the budget, or nil. Reconfigure moves
// only the boundaries of empty arenas meanwhile.
func (b *openBudget) stackAt(at uint64) *Stack {
	m := (*arena_c.Map)(b.from)
	n := uint64(sort.Search(int(m.Rows), func(i int) bool { return m.Start(uint64(i)) > at }))
	if n == 0 || at >= m.End(n-1) {
		return nil
	}
	return stackAt(m.Row(n - 1).Arena.Owner)
}

// countStack counts a started (1) or dropped (-1) stack of a budget. pre: the registry is locked.
func countStack(from unsafe.Pointer, size uint64, by int) {
	var list []openBudget
	if all := budgets.Load(); all != nil {
		list = *all
	}
	n, found := slices.BinarySearchFunc(list, uintptr(from), byAddress)
	if found {
		if *list[n].stacks += by; *list[n].stacks != 0 {
			return
		}
	}
	list = slices.Clone(list)
	if found {
		list = slices.Delete(list, n, n+1)
	} else {
		list = slices.Insert(list, n, openBudget{from: from, size: size, stacks: &by})
	}
	end := uintptr(0)
	for i := range list {
		end = max(end, uintptr(list[i].from)+uintptr(list[i].size))
		list[i].end = end
	}
	budgets.Store(&list)
	if len(list) == 0 {
		arena_c.SetRoomOwners(nil)
	} else {
		arena_c.SetRoomOwners(&findRoomOwner)
	}
}
