package serve

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// receiver handles the datagrams. It answers unknown senders, gives places to players, and hands
// their inputs to the rooms. Only the receiver gives places.
type receiver struct {
	s       *Server
	in, out *udp.Batch
	mac     wire.Mac
	secret  wire.Key // of cookies
	cookies wire.Cookies
	origin  int64    // of the cookies' clock, in nanoseconds of Unix time
	nonces  []uint64 // by session; finds the place of a repeated Join

	networks []uint64 // by session; counts the places of a network

	came            uint64 // datagrams; read after the end
	joined, refused atomic.Uint64
	returned        atomic.Uint64 // sessions that moved to another address
	dropped         [wire.Reasons]atomic.Uint64
}

var (
	nonceMaker   = scope.Plain[uint64]()
	networkMaker = scope.Plain[uint64]()
)

// receiveBatch is the most datagrams received with one call.
const receiveBatch = 64

func newReceiver(s *Server, in scope.Scope, secret wire.Key) *receiver {
	return &receiver{s: s, in: udp.NewBatch(in, receiveBatch, wire.PacketMost+1),
		out: udp.NewBatch(in, receiveBatch, wire.PacketMost), secret: secret, cookies: wire.MakeCookies(secret),
		origin: s.began.UnixNano(),
		nonces: nonceMaker.Slice(in, len(s.net.sessions)), networks: networkMaker.Slice(in, len(s.net.sessions))}
}

func (r *receiver) loop() {
	for {
		n, err := r.s.socket.Receive(r.in)
		if err != nil {
			if !r.s.stopping.Load() {
				r.s.broken(err)
			}
			return
		}
		now := r.s.now()
		r.came += uint64(n)
		for i := range n {
			if reason := r.take(r.in.Packet(i), r.in.Address(i), now); reason != 0 {
				r.dropped[reason].Add(1)
			}
		}
		if r.out.Len() > 0 {
			if err := r.s.socket.Send(r.out); err != nil {
				r.s.broken(err)
			}
		}
	}
}

// take handles a datagram. It returns the reason if it drops the datagram, or 0.
func (r *receiver) take(p []byte, from *udp.Address, now time.Duration) wire.Reason {
	kind, reason := wire.KindOf(p)
	if reason != 0 {
		return reason
	}
	switch kind {
	case wire.Hello:
		return r.hello(p, from, now)
	case wire.Join:
		return r.join(p, from, now)
	case wire.Inputs, wire.Leave:
		return r.session(kind, p, from, now)
	}
	return wire.BadKind
}

// hello answers a Hello with a cookie, and keeps no state.
func (r *receiver) hello(p []byte, from *udp.Address, now time.Duration) wire.Reason {
	nonce, reason := wire.ParseHello(p)
	if reason == wire.BadVersion {
		r.refuse(from, nonce, wire.OtherVersion)
	}
	if reason != 0 {
		return reason
	}
	cookie := r.cookies.Make(&r.mac, from.Raw(), nonce, r.seconds(now))
	r.answer(wire.AppendChallenge(r.out.Next(from), nonce, cookie))
	return 0
}

// seconds returns the time of the cookies' clock.
func (r *receiver) seconds(now time.Duration) uint32 {
	return uint32((now.Nanoseconds() + r.s.began.UnixNano() - r.origin) / time.Second.Nanoseconds())
}

// answer sends the packet that the caller appended to the next buffer of the batch out. The batch
// has a buffer for each datagram received.
func (r *receiver) answer(packet []byte) { r.out.Add(len(packet)) }

func (r *receiver) refuse(to *udp.Address, nonce wire.Nonce, why wire.RefuseReason) {
	r.refuseWith(to, nonce, why, r.s.players(), uint32(len(r.s.rooms)*r.s.o.Players))
}

func (r *receiver) refuseWith(to *udp.Address, nonce wire.Nonce, why wire.RefuseReason, players, places uint32) {
	r.refused.Add(1)
	r.answer(wire.AppendRefuse(r.out.Next(to), &wire.RefusePacket{Nonce: nonce, Reason: why,
		Players: players, Places: places, Rooms: uint32(len(r.s.rooms)), RetryAfter: 1000}))
}

// has returns the number of places, of players or watchers, that a network has, and the most that
// it may have.
func (r *receiver) has(network uint64, watching bool) (n, most uint32) {
	for i, is := range r.networks {
		if is == network && r.watches(i) == watching && r.s.net.sessions[i].taken.Load() != 0 {
			n++
		}
	}
	switch {
	case r.s.o.PerAddress == 0:
		return n, math.MaxUint32
	case watching: // in the same ratio to players as in a room
		return n, uint32((r.s.o.PerAddress*watchers + PlayersMost - 1) / PlayersMost)
	}
	return n, uint32(r.s.o.PerAddress)
}

// watches reports whether a session's place is a watcher's.
func (r *receiver) watches(at int) bool { return at%r.s.net.places >= r.s.o.Players }

// join gives a free place to a sender that returns the cookie, or refuses it.
func (r *receiver) join(p []byte, from *udp.Address, now time.Duration) wire.Reason {
	j, reason := wire.ParseJoin(p)
	if reason != 0 {
		return reason
	}
	if !r.cookies.Check(&r.mac, from.Raw(), j.Nonce, r.seconds(now), j.Cookie) {
		return wire.BadCookie
	}
	if at := r.cameBefore(&j, from); at >= 0 {
		r.accept(at, j.Nonce)
		return 0
	}
	if j.Old != 0 {
		switch at, ok, reason := r.goesOn(&j, p, from, now); {
		case reason != 0:
			return reason
		case ok:
			r.accept(at, j.Nonce)
			return 0
		}
	}
	at, why := r.find(&j)
	if why != 0 {
		r.refuse(from, j.Nonce, why)
		return 0
	}
	network := from.Network()
	if n, most := r.has(network, r.watches(at)); n >= most {
		r.refuseWith(from, j.Nonce, wire.AddressFull, n, most)
		return 0
	}
	inbox, s := &r.s.rooms[at/r.s.net.places].inbox, &r.s.net.sessions[at]
	m := inbox.next(s)
	if m == nil {
		return wire.Flooded
	}
	if s.id += 1 << idBits; s.id>>idBits == 0 { // after two million
		s.id += 1 << idBits
	}
	s.nonce, s.name, s.address, s.window = j.Nonce, j.Name, *from, wire.Window{}
	s.key = r.cookies.SessionKey(&r.mac, s.id, j.Nonce, j.Cookie)
	r.nonces[at], r.networks[at] = j.Nonce, network
	s.taken.Store(1)
	*m = message{what: joined, place: uint8(at % r.s.net.places), session: s.id, nonce: j.Nonce,
		came: now.Nanoseconds(), address: *from}
	inbox.put(s)
	r.joined.Add(1)
	r.accept(at, j.Nonce)
	return 0
}

// cameBefore returns the place that the same Join got before, or -1. The Accept may have been lost.
func (r *receiver) cameBefore(j *wire.JoinPacket, from *udp.Address) int {
	for i, nonce := range r.nonces {
		s := &r.s.net.sessions[i]
		if nonce == j.Nonce && s.taken.Load() != 0 && s.address == *from {
			return i
		}
	}
	return -1
}

// goesOn moves a session to another address. The Join must prove the session. The new address must
// have a place left, or else a client with two addresses could take all places. If too many
// messages of the session wait, goesOn returns the reason to drop the Join, which the client
// repeats.
func (r *receiver) goesOn(j *wire.JoinPacket, p []byte, from *udp.Address, now time.Duration) (
	at int, ok bool, reason wire.Reason) {
	s, room, place := r.s.net.find(j.Old)
	if s == nil || !r.mac.Proves(&s.key, p) {
		return 0, false, 0
	}
	at = room*r.s.net.places + place
	network := from.Network()
	if n, most := r.has(network, r.watches(at)); n >= most && network != r.networks[at] {
		return 0, false, 0
	}
	inbox := &r.s.rooms[room].inbox
	m := inbox.next(s)
	if m == nil {
		return 0, false, wire.Flooded
	}
	s.nonce, s.address, r.nonces[at], r.networks[at] = j.Nonce, *from, j.Nonce, network
	*m = message{what: moved, place: uint8(place), session: s.id, nonce: j.Nonce, came: now.Nanoseconds(),
		address: *from}
	inbox.put(s)
	r.returned.Add(1)
	return at, true, 0
}

// find returns a free place in the requested room, or the reason for a refusal. Without a request
// it takes the first room with a free place, so that few rooms play.
func (r *receiver) find(j *wire.JoinPacket) (at int, why wire.RefuseReason) {
	if r.s.closing.Load() {
		return 0, wire.ServerCloses
	}
	first, last := 0, len(r.s.rooms)
	if j.Room != wire.AnyRoom {
		if first = int(j.Room); first >= last {
			return 0, wire.NoRoom
		}
		last = first + 1
	}
	for room := first; room < last; room++ {
		if place := r.vacant(room, j); place >= 0 {
			return room*r.s.net.places + place, 0
		}
	}
	if j.Room != wire.AnyRoom {
		return 0, wire.RoomFull
	}
	return 0, wire.ServerFull
}

// vacant returns a free place of a room, or -1. A player with the name of a place's last player
// gets that place again.
func (r *receiver) vacant(room int, j *wire.JoinPacket) int {
	if r.s.rooms[room].closed.Load() {
		return -1
	}
	sessions, best := r.s.net.roomSessions(room), -1
	from, to := 0, r.s.o.Players
	if j.Flags&wire.Watch != 0 {
		from, to = to, len(sessions)
	}
	for i := from; i < to; i++ {
		s := &sessions[i]
		if s.taken.Load() != 0 {
			continue
		}
		if s.name == j.Name {
			return i
		}
		if best < 0 || s.name == (wire.Name{}) && sessions[best].name != (wire.Name{}) {
			best = i
		}
	}
	return best
}

func (r *receiver) accept(at int, nonce wire.Nonce) {
	s, room := &r.s.net.sessions[at], r.s.rooms[at/r.s.net.places]
	a := wire.AcceptPacket{Nonce: nonce, Key: s.key, Session: s.id, Room: uint8(room.number),
		Player: wire.Watcher, Rollback: uint8(r.s.o.Rollback), TickRate: ticksPerSecond}
	if place := at % r.s.net.places; place < r.s.o.Players {
		a.Player = uint8(place)
	}
	clock := room.clock.Load()
	a.Epoch, a.Tick = uint8(clock>>32), uint32(clock)
	binary.LittleEndian.PutUint64(a.Map[:], room.title.Load())
	r.answer(wire.AppendAccept(r.out.Next(&s.address), &a))
}

func (r *receiver) session(kind wire.Kind, p []byte, from *udp.Address, now time.Duration) wire.Reason {
	h, reason := wire.ParseHeader(p)
	if reason != 0 {
		return reason
	}
	s, room, place := r.s.net.find(h.Session)
	switch {
	case s == nil:
		return wire.BadSession
	case s.address != *from:
		return wire.BadAddress
	case !r.mac.Open(&s.key, p):
		return wire.BadMAC
	case !s.window.Take(h.Sequence):
		return wire.Replayed
	}
	inbox := &r.s.rooms[room].inbox
	m := inbox.next(s)
	if m == nil {
		return wire.Flooded
	}
	m.what, m.place, m.session, m.sequence, m.came = leaves, uint8(place), h.Session, h.Sequence, now.Nanoseconds()
	if kind == wire.Inputs {
		in, reason := wire.ParseInputs(p)
		if reason != 0 {
			return reason
		}
		m.what, m.ack, m.tick, m.epoch, m.count, m.inputs = wants, in.Ack, in.Tick, in.Epoch, in.Count, in.Inputs
	} else if reason := wire.ParseLeave(p); reason != 0 {
		return reason
	}
	inbox.put(s)
	return 0
}
