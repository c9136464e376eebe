package arena_c

// #include "room.h"
// #include "scope.h"
// static inline int upfront_take_room_at(uintptr_t from, uint64_t size, upfront_room *out) {
//     return upfront_take_room((const void *)from, size, out);
// }
// static inline void upfront_odd(upfront_scopes *h, uint64_t bit) {
//     __atomic_fetch_or(&h->odd, bit, __ATOMIC_RELAXED);
// }
// #cgo noescape upfront_odd
// #cgo nocallback upfront_odd
// #cgo noescape upfront_take_room_at
// #cgo nocallback upfront_take_room_at
// #cgo nocallback upfront_rooms_lost
import "C"

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// RoomKind is the kind of an arena with its header in a block.
type RoomKind uint8

// Kinds of rooms (inner arenas): room.h.
const (
	RoomHeap   RoomKind = C.UPFRONT_ROOM_HEAP
	RoomBuddy  RoomKind = C.UPFRONT_ROOM_BUDDY
	RoomRing   RoomKind = C.UPFRONT_ROOM_RING
	RoomEnds   RoomKind = C.UPFRONT_ROOM_ENDS
	RoomStack  RoomKind = C.UPFRONT_ROOM_STACK
	RoomFrame  RoomKind = C.UPFRONT_ROOM_FRAME
	RoomPool   RoomKind = C.UPFRONT_ROOM_POOL
	RoomShared RoomKind = RoomPool + 1 // a lock in front of a heap or a buddy, in a block of it
	RoomKinds           = RoomShared + 1
)

var roomNames = [RoomKinds]string{RoomHeap: "arena.Heap", RoomBuddy: "arena.Buddy", RoomRing: "arena.Ring",
	RoomEnds: "arena.Linear", RoomStack: "arena.Stack", RoomFrame: "arena.Frame", RoomPool: "pool on a block",
	RoomShared: "arena.Shared"}

// String returns the name of the type in package arena.
func (k RoomKind) String() string { return roomNames[k] }

// Room is a block for the header of a new arena. Only RoomOf makes a Room, and each constructor of
// an inner arena takes a Room. So no arena is made on a budget's memory without the budget's
// knowledge.
type Room struct {
	Kind  RoomKind
	Block unsafe.Pointer
	Size  uint64
	Of    reflect.Type // type of the chunks of a pool; nil: unknown
	// returns an error for impossible bytes of a live chunk; nil: any bytes are possible
	Check func(chunk []byte) error

	owner RoomOwner
	err   error
}

// RoomOwner is the owner of a block's bytes.
type RoomOwner interface {
	// MayMake returns an error that names the reason if no arena may be made on the block.
	MayMake(r Room) error
	// Made announces the new arena.
	Made(r Room)
	// MayLive and HasLock are RoomMayLive and RoomHasLock.
	MayLive(kind RoomKind, header unsafe.Pointer, may bool)
	HasLock(kind RoomKind, header unsafe.Pointer, has bool)
	// Discard makes whole pages zero and returns them to the system. It returns the bytes of the
	// pages that were present; 0 if the owner returns no page.
	Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error)
}

// RoomMayLive passes on to the owner of an arena's bytes, if it has one, whether the arena's blocks
// may be live when the bytes are freed. By default those of a ring or a pool may. Cost: that of
// RoomOf.
func RoomMayLive(kind RoomKind, header unsafe.Pointer, may bool) {
	if owner := ownerOf(header); owner != nil {
		owner.MayLive(kind, header, may)
	}
}

// RoomHasLock reports to the owner of an arena's bytes, if it has one, that one more block of the
// arena holds a lock, or that no block of it is live any more. Cost: that of RoomOf.
func RoomHasLock(kind RoomKind, header unsafe.Pointer, has bool) {
	if owner := ownerOf(header); owner != nil {
		owner.HasLock(kind, header, has)
	}
}

// ownerOf returns the owner of the bytes at p, or nil.
func ownerOf(p unsafe.Pointer) RoomOwner {
	if find := roomOwners.Load(); find != nil {
		return (*find)(p)
	}
	return nil
}

// roomOwners finds the owner of a block, or nil. It is nil itself while no budget is open.
var roomOwners atomic.Pointer[func(block unsafe.Pointer) RoomOwner]

// SetRoomOwners is for package scope: find returns the owner of a block. A nil find removes all
// owners.
func SetRoomOwners(find *func(block unsafe.Pointer) RoomOwner) { roomOwners.Store(find) }

// RoomOf returns the room for an arena of a kind, on a block of that size. Cost: one load while no
// budget is open, else a search for the arena that contains the block.
func RoomOf(kind RoomKind, block unsafe.Pointer, size uint64) Room {
	r := Room{Kind: kind, Block: block, Size: size}
	if find := roomOwners.Load(); find != nil {
		if r.owner = (*find)(block); r.owner != nil {
			r.err = r.owner.MayMake(r)
		}
	}
	return r
}

// Chunks returns the room with the type of a pool's chunks, or a check of their bytes.
func (r Room) Chunks(of reflect.Type, check func(chunk []byte) error) Room {
	r.Of, r.Check = of, check
	return r
}

// Err returns the reason why no arena may be made there, or nil. If Err isn't nil, constructors
// return nil.
func (r Room) Err() error { return r.err }

// of returns the block for an arena of the kind. For another kind and after an error it returns
// nil, which C refuses.
func (r Room) of(kind RoomKind) unsafe.Pointer {
	if r.err != nil || r.Kind != kind {
		return nil
	}
	return r.Block
}

// made announces a new arena to the owner.
func made[H any](r Room, header unsafe.Pointer) *H {
	if header != nil && r.owner != nil {
		r.owner.Made(r)
	}
	return (*H)(header)
}

// TakeCRoom takes an arena that C made by itself out of C's table, if its block begins in the size
// bytes from a canonical address on. It returns the arena's kind, the offset of its block from the
// address, and the block's size. ok is false if there is no such arena.
func TakeCRoom(from unsafe.Pointer, size uint64) (kind RoomKind, offset, bytes uint64, ok bool) {
	var out C.upfront_room
	if C.upfront_take_room_at(C.uintptr_t(uintptr(from)), C.uint64_t(size), &out) != C.UPFRONT_OK {
		return 0, 0, 0, false
	}
	keepRoom(RoomKind(out.kind), unsafe.Pointer(out.block))
	return RoomKind(out.kind), Place(out.block, from), uint64(out.size), true
}

// CRoomsMax is the size of the table.
const CRoomsMax = C.UPFRONT_ROOMS

// CRoomsLost returns the number of rooms of C for which the table was full.
func CRoomsLost() uint64 { return uint64(C.upfront_rooms_lost()) }

// keepRoom makes a heap or a buddy in a state behave in every build as in a release build.
func keepRoom(kind RoomKind, block unsafe.Pointer) {
	switch kind {
	case RoomHeap:
		(*Heap)(block).SetPlain()
	case RoomBuddy:
		(*Buddy)(block).SetPlain()
	}
}

// SetPlain makes the arena behave in every build as in a release build.
func (r Room) SetPlain() { keepRoom(r.Kind, r.Block) }

// SetOdd sets a bit of Odd, from any goroutine. The owner of the arena writes the word without
// atomics.
func (h *Scopes) SetOdd(bit uint64) {
	C.upfront_odd((*C.upfront_scopes)(unsafe.Pointer(h)), C.uint64_t(bit))
}
