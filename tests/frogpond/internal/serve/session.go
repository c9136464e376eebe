package serve

import (
	"sync/atomic"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// session is a place in a room and who has it, as the receiver knows it. A room reads of it, after a
// message said that somebody joined, what doesn't change until it frees the place: all but nonce,
// address and window.
type session struct {
	taken   atomic.Uint32 // 1 from the receiver, 0 again from the room
	waiting atomic.Int32  // messages of it in the room's inbox
	id      uint32        // its place in the list, and a count above it
	nonce   uint64
	key     wire.Key
	name    wire.Name // of who has it, or had it last
	address udp.Address
	window  wire.Window // of what came
}

// seat is the same place as its room knows it.
type seat struct {
	heard    int64 // when something came last, in nanoseconds since the server began
	session  uint32
	sequence uint32 // of the last packet to the player
	acked    uint32 // the newest State that the player has
	newest   uint32 // the tick of the newest input
	first    uint32 // the tick from which on it plays: what it wants of those before came too late
	scored   score  // as it was last written
	state    seatState
	epoch    uint8 // that the player knows of
	early    int8  // by how many ticks the newest input was
	_        uint8
	key      wire.Key
	name     wire.Name
	address  udp.Address
}

type seatState uint8

const (
	empty seatState = iota
	here
	going // not any more
)

// score is what is written of a player.
type score struct{ caught, deaths, exits uint32 }

const (
	watchers = 2 // places in a room beside those of players
	idBits   = 11
)

// network is what lies in region systems: it outlives the maps.
type network struct {
	sessions []session   // by room and place
	seats    []seat      // likewise
	rings    []wire.Ring // of views, likewise
	places   int         // of a room
}

var (
	sessionMaker = scope.Plain[session]()
	seatMaker    = scope.Plain[seat]()
	ringMaker    = scope.Plain[wire.Ring]()
)

func newNetwork(s scope.Scope, rooms, players int) *network {
	n := &network{places: players + watchers}
	total := rooms * n.places
	n.sessions, n.seats = sessionMaker.Slice(s, total), seatMaker.Slice(s, total)
	n.rings = ringMaker.Slice(s, total)
	for i := range n.sessions {
		n.sessions[i].id = uint32(i)
	}
	return n
}

// roomSeats and roomViews are those of a room.
func (n *network) roomSeats(room int) []seat { return n.seats[room*n.places:][:n.places:n.places] }

// roomSessions are those of a room.
func (n *network) roomSessions(room int) []session {
	return n.sessions[room*n.places:][:n.places:n.places]
}

// ring is the last views of a place.
func (n *network) ring(room, place int) *wire.Ring { return &n.rings[room*n.places+place] }

// find is the session of an id, or nil, and where it is.
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
