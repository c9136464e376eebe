package serve

import (
	"sync/atomic"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// session is the receiver's data about a place in a room and its player. After the message joined,
// the room reads the fields that don't change until it frees the place: all but nonce, address and
// window.
type session struct {
	taken   atomic.Uint32 // set to 1 by the receiver, and to 0 by the room
	waiting atomic.Int32  // its messages in the room's inbox
	id      uint32        // the place's index, and a count of its sessions in the bits above
	nonce   uint64
	key     wire.Key
	name    wire.Name // of the current or last player
	address udp.Address
	window  wire.Window // of received packets
}

// seat is the room's data about a place and its player. A checkpoint has it, with all that the
// receiver needs to make the session again.
type seat struct {
	heard    int64 // time of the last packet, in nanoseconds since the server began
	nonce    wire.Nonce
	session  uint32 // the place's last, if it is empty
	sequence uint32 // of the last packet to the player
	received uint32 // the highest sequence from the player
	acked    uint32 // the newest State that the player has
	newest   uint32 // the tick of the newest input
	first    uint32 // the player's first tick; inputs before it are too late
	scored   score  // the last score written
	state    seatState
	epoch    uint8 // of the player's last packet
	early    int8  // ticks that the newest input was early
	_        [5]uint8
	key      wire.Key
	name     wire.Name
	address  udp.Address
}

type seatState uint8

const (
	empty seatState = iota
	here
	going // leaving
)

// score has the counts of a player that go into a disk.Score.
type score struct{ caught, deaths, exits uint32 }

const (
	watchers = 2 // places of a room in addition to those of players
	idBits   = 11
)

// network is the data about players in the region systems. It outlives the maps.
type network struct {
	sessions []session   // by room and place
	rooms    []outlives  // by room
	rings    []wire.Ring // of views, by room and place
	places   int         // of a room
}

var (
	sessionMaker  = scope.Plain[session]()
	outlivesMaker = scope.Plain[outlives]()
	ringMaker     = scope.Plain[wire.Ring]()
)

func newNetwork(s scope.Scope, rooms, players int) *network {
	n := &network{places: players + watchers}
	total := rooms * n.places
	n.sessions, n.rooms = sessionMaker.Slice(s, total), outlivesMaker.Slice(s, rooms)
	n.rings = ringMaker.Slice(s, total)
	for i := range n.sessions {
		n.sessions[i].id = uint32(i)
	}
	return n
}

func (n *network) roomSessions(room int) []session {
	return n.sessions[room*n.places:][:n.places:n.places]
}

func (n *network) ring(room, place int) *wire.Ring { return &n.rings[room*n.places+place] }

// find returns the session with an id, its room and its place. s is nil if no player has it.
func (n *network) find(id uint32) (s *session, room, place int) {
	at := int(id & (1<<idBits - 1))
	if at >= len(n.sessions) {
		return nil, 0, 0
	}
	s = &n.sessions[at]
	if s.id != id || s.taken.Load() == 0 {
		return nil, 0, 0
	}
	return s, at / n.places, at % n.places
}
