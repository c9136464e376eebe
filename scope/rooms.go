package scope

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

// Room is an arena that was made on bytes of a Stack's: package arena's on a block of a scope.
type Room struct {
	Kind         arena_c.RoomKind
	Offset, Size uint64       // of its block, from the arena's header; bytes
	C            bool         // C made it by itself
	Site         arena_c.Site // where it was made
	Of           reflect.Type // of the chunks of a pool; nil: no type says it
	Check        func(chunk []byte) error

	word  arena_c.RoomWord // what the program said of its end; 0: nothing
	locks uint64           // live blocks of it that a Shared has
	shape uint64           // of its header, as long as that is the one that was made
}

func (r *Room) end() uint64 { return r.Offset + r.Size }

// rooms is what a Stack knows of arenas that lie in it. Its list takes as many places of the Go heap
// as there ever were at once, and stays. Any goroutine may make one, on bytes that it was given.
type rooms struct {
	mu       sync.Mutex
	list     []Room // in the order in which they were made
	watched  bool   // while a state is made all kinds are noted, else those from which blocks are freed
	from, to uint64 // of a state that is whole: no arena is made there
	lost     uint64 // of C's rooms, when the state began
}

// Rooms are the arenas that lie in the Stack, by offset; what lies in another's block comes behind
// it. It is a copy.
func (st *Stack) Rooms() []Room {
	st.rooms.mu.Lock()
	defer st.rooms.mu.Unlock()
	list := slices.Clone(st.rooms.list)
	slices.SortStableFunc(list, func(a, b Room) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Size, a.Size))
	})
	return list
}

// watchRooms is for Watch: what C noted here before is nobody's any more.
func (st *Stack) watchRooms() {
	for {
		if _, ok := arena_c.TakeCRoom(unsafe.Add(unsafe.Pointer(st.h), st.h.Cursor), st.h.Limit-st.h.Cursor); !ok {
			break
		}
	}
	st.rooms.mu.Lock()
	defer st.rooms.mu.Unlock()
	st.rooms.watched, st.rooms.lost = true, arena_c.CRoomsLost()
}

// WatchedRooms ends what Watch began with [from, to), from the arena's header, which is a state: the
// arenas in it, by offset, C's among them. From now on, until its bytes are given back, none is made
// there. An error says that C made more than its table has places for.
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
	lost := r.lost != arena_c.CRoomsLost()
	r.mu.Unlock()
	if lost {
		return nil, fmt.Errorf("scope: C noted more than %d arenas in states that have no ring yet", arena_c.CRoomsMax)
	}
	return slices.DeleteFunc(st.Rooms(), func(r Room) bool { return r.Offset < from || r.Offset >= to }), nil
}

// noteRoom adds a room. Its owner may be at work meanwhile, so the bit is one that it doesn't write
// but with a whole word: should that ever be lost, the room is over when the load is.
func (st *Stack) noteRoom(room Room) {
	st.rooms.add(room)
	st.h.SetOdd(oddRooms)
}

// add adds a room, in place of what overlaps it: that is over. But what lies in another's block
// doesn't end that. pre: the lock is held.
func (r *rooms) add(room Room) {
	r.list = slices.DeleteFunc(r.list, func(old Room) bool {
		apart := old.end() <= room.Offset || room.end() <= old.Offset
		inside := old.Offset < room.Offset && room.end() <= old.end()
		return !apart && !inside
	})
	r.list = append(r.list, room)
}

// endRooms ends what lies in bytes that are about to be given back, newest first. h is the end of
// the arena whose topmost scope closes there; nil: nobody is told what lives.
func (st *Stack) endRooms(from, to uint64, h *arena_c.Scopes) (err error) {
	r := &st.rooms
	if from >= to {
		return nil
	}
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
	if len(r.list) == 0 && r.to == 0 {
		st.h.Odd &^= oddRooms
	}
	return err
}

// roomOwner is a Stack to whoever makes an arena on its bytes.
type roomOwner Stack

// MayMake refuses what would lie in a state that is whole: nobody would check its words there.
func (o *roomOwner) MayMake(b arena_c.RoomBlock) error {
	st := (*Stack)(o)
	r := &st.rooms
	at := st.h.Offset(b.Block)
	r.mu.Lock()
	defer r.mu.Unlock()
	if at >= r.to || at+b.Size <= r.from {
		return nil
	}
	return fmt.Errorf("%s: BUG: %s %s of %d bytes in its state, at offset %#x, after the state's end: "+
		"make it before save.NewRing", st.Arena, article(b.Kind.String()), b.Kind, b.Size, at-st.h.Start)
}

func article(name string) string {
	if name[0] == 'a' {
		return "an"
	}
	return "a"
}

// Made notes it.
func (o *roomOwner) Made(b arena_c.RoomBlock) {
	st := (*Stack)(o)
	room := Room{Kind: b.Kind, Offset: st.h.Offset(b.Block), Size: b.Size, Of: b.Of, Check: b.Check,
		shape: shapeOf(b.Kind, b.Block)}
	room.Site.Note()
	r := &st.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched {
		b.SetPlain()
	}
	switch b.Kind {
	case arena_c.RoomEnds, arena_c.RoomStack, arena_c.RoomFrame: // they end as the bytes do
		if !r.watched {
			return
		}
	}
	st.noteRoom(room)
}

// budgets are the open ones, by address, so that the arena of a block is found. A change makes a
// copy, under the registry's lock.
var budgets atomic.Pointer[[]openBudget]

type openBudget struct {
	from   unsafe.Pointer
	size   uint64
	end    uintptr // the highest of its own and of those before it: one may lie in another
	stacks *int    // that were started and not dropped; read under the registry's lock alone
}

// findRoomOwner is what package arena_c asks while a budget is open.
var findRoomOwner = func(block unsafe.Pointer) arena_c.RoomOwner {
	if st := stackWith(block); st != nil {
		return (*roomOwner)(st)
	}
	return nil
}

// stackWith is the Stack that a block lies in, or nil. Cost: O(log budgets + log arenas); in asan and
// checked builds, where it may lie in any mirror, O(budgets).
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

// stackAt is the Stack with the byte at an offset of the budget, or nil. Edges that move meanwhile
// (Reconfigure) are those of arenas in which nothing lies.
func (b *openBudget) stackAt(at uint64) *Stack {
	m := (*arena_c.Map)(b.from)
	n := uint64(sort.Search(int(m.Rows), func(i int) bool { return m.Start(uint64(i)) > at }))
	if n == 0 || at >= m.End(n-1) {
		return nil
	}
	return stackAt(m.Row(n - 1).Arena.Owner)
}

// countStack says that a stack of a budget was started (1), or dropped (-1). pre: the registry is
// locked.
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
