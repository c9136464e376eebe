package arena_c

// #include "room.h"
// #include "scope.h"
// static inline int upfront_take_room_at(uintptr_t from, uint64_t size, upfront_room *out) {
//     return upfront_take_room((const void *)from, size, out);
// }
// static inline int upfront_note_room_at(uint64_t kind, uintptr_t block, uint64_t size) {
//     return upfront_note_room(kind, (const void *)block, size);
// }
// #cgo noescape upfront_note_room_at
// #cgo nocallback upfront_note_room_at
// static inline void upfront_odd(upfront_scopes *h, uint64_t bit) { __atomic_fetch_or(&h->odd, bit, __ATOMIC_RELAXED); }
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

// RoomKind is which arena has its words in a block.
type RoomKind uint8

// Kinds of rooms: room.h.
const (
	RoomHeap   RoomKind = C.UPFRONT_ROOM_HEAP
	RoomBuddy  RoomKind = C.UPFRONT_ROOM_BUDDY
	RoomRing   RoomKind = C.UPFRONT_ROOM_RING
	RoomEnds   RoomKind = C.UPFRONT_ROOM_ENDS
	RoomStack  RoomKind = C.UPFRONT_ROOM_STACK
	RoomFrame  RoomKind = C.UPFRONT_ROOM_FRAME
	RoomPool   RoomKind = C.UPFRONT_ROOM_POOL
	RoomShared RoomKind = RoomPool + 1 // a lock before a heap or a buddy, in a block of it
	RoomKinds           = RoomShared + 1
)

var roomNames = [RoomKinds]string{RoomHeap: "arena.Heap", RoomBuddy: "arena.Buddy", RoomRing: "arena.Ring",
	RoomEnds: "arena.Linear", RoomStack: "arena.Stack", RoomFrame: "arena.Frame", RoomPool: "pool on a block",
	RoomShared: "arena.Shared"}

// String names the type that a program knows.
func (k RoomKind) String() string { return roomNames[k] }

// Room is a block that an arena's header is about to be laid into. RoomOf alone makes one, and each constructor of this
// package takes one: so no arena is made on memory of a budget without its knowledge.
type Room struct {
	RoomBlock
	owner RoomOwner
	err   error
}

// RoomBlock is what the owner of the bytes knows of a room.
type RoomBlock struct {
	Kind  RoomKind
	Block unsafe.Pointer
	Size  uint64
	Of    reflect.Type             // of the chunks of a pool; nil: no type says it
	Check func(chunk []byte) error // refuses bytes of a live chunk that can't be one; nil: any may be
}

// RoomOwner is whoever the bytes of a block belong to.
type RoomOwner interface {
	// MayMake refuses an arena on the block, by name.
	MayMake(b RoomBlock) error
	// Made is told of the arena that is there now.
	Made(b RoomBlock)
	// Says is told what the program says of the arena whose header lies there.
	Says(kind RoomKind, header unsafe.Pointer, word RoomWord)
}

// RoomWord is what a program says of an arena that it made.
type RoomWord uint8

// Words of a room: what may live in it when its bytes are given back, and which of it is no user's.
const (
	RoomMayLive   RoomWord = 1 + iota
	RoomMustEmpty          // nothing may
	RoomHasLock            // one more block is a lock's
	RoomWasReset           // none is any more
)

// SayOfRoom tells the owner of an arena's bytes, if there is one. Cost: that of RoomOf.
func SayOfRoom(kind RoomKind, header unsafe.Pointer, word RoomWord) {
	if find := roomOwners.Load(); find != nil {
		if owner := (*find)(header); owner != nil {
			owner.Says(kind, header, word)
		}
	}
}

// roomOwners finds the owner of a block, or nil; nil itself while there is none at all.
var roomOwners atomic.Pointer[func(block unsafe.Pointer) RoomOwner]

// SetRoomOwners is for package scope: find finds the owner of a block. nil: there is none at all.
func SetRoomOwners(find *func(block unsafe.Pointer) RoomOwner) { roomOwners.Store(find) }

// RoomOf is the room for an arena of a kind, on a block of so many bytes. Cost: where no budget is open one load, else a
// search for the arena that the block lies in.
func RoomOf(kind RoomKind, block unsafe.Pointer, size uint64) Room {
	r := Room{RoomBlock: RoomBlock{Kind: kind, Block: block, Size: size}}
	if find := roomOwners.Load(); find != nil {
		if r.owner = (*find)(block); r.owner != nil {
			r.err = r.owner.MayMake(r.RoomBlock)
		}
	}
	return r
}

// Chunks is the room of a pool whose chunks are of a type, or are looked at by check.
func (r Room) Chunks(of reflect.Type, check func(chunk []byte) error) Room {
	r.Of, r.Check = of, check
	return r
}

// Err says why no arena may be made there; nil: it may. A constructor gives nil then.
func (r Room) Err() error { return r.err }

// of is where C may lay out an arena of the kind: nowhere for another, or one that is refused, and C refuses that.
func (r Room) of(kind RoomKind) unsafe.Pointer {
	if r.err != nil || r.Kind != kind {
		return nil
	}
	return r.Block
}

// made tells the owner of an arena that was made.
func made[H any](r Room, header unsafe.Pointer) *H {
	if header != nil && r.owner != nil {
		r.owner.Made(r.RoomBlock)
	}
	return (*H)(header)
}

// NoteRoom is upfront_note_room.
func NoteRoom(kind RoomKind, block unsafe.Pointer, size uint64) Code {
	return Code(C.upfront_note_room_at(C.uint64_t(kind), C.uintptr_t(uintptr(block)), C.uint64_t(size)))
}

// CRoom is an arena that C made by itself: where its block begins, from where the search began.
type CRoom struct {
	Kind         RoomKind
	Offset, Size uint64
}

// TakeCRoom takes a room that C noted out of its table, whose block begins in so many bytes from a canonical address on. False:
// there is none.
func TakeCRoom(from unsafe.Pointer, size uint64) (CRoom, bool) {
	var out C.upfront_room
	if C.upfront_take_room_at(C.uintptr_t(uintptr(from)), C.uint64_t(size), &out) != C.UPFRONT_OK {
		return CRoom{}, false
	}
	keepRoom(RoomKind(out.kind), unsafe.Pointer(out.block))
	return CRoom{RoomKind(out.kind), Place(out.block, from), uint64(out.size)}, true
}

// CRoomsMax is how many the table has room for.
const CRoomsMax = C.UPFRONT_ROOMS

// CRoomsLost is how many rooms of C's found the table full.
func CRoomsLost() uint64 { return uint64(C.upfront_rooms_lost()) }

// keepRoom has a heap or a buddy lie in every build as in a release build: what is in a state.
func keepRoom(kind RoomKind, block unsafe.Pointer) {
	switch kind {
	case RoomHeap:
		(*Heap)(block).SetPlain()
	case RoomBuddy:
		(*Buddy)(block).SetPlain()
	}
}

// SetPlain has the arena there lie in every build as in a release build.
func (b RoomBlock) SetPlain() { keepRoom(b.Kind, b.Block) }

// SetOdd sets a bit of Odd, from any goroutine. Who has the arena writes the word as if it were alone.
func (h *Scopes) SetOdd(bit uint64) {
	C.upfront_odd((*C.upfront_scopes)(unsafe.Pointer(h)), C.uint64_t(bit))
}
