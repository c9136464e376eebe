// Package clienttest is a server for tests of clients. The server has the whole protocol, but no
// socket, clock or game. Addresses are strings. In the server's world, players walk and frogs hop
// on a square.
package clienttest

import (
	"slices"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Server is one room. It passes its packets to Send.
type Server struct {
	Send   func(to string, packet []byte)
	Places int
	Map    string
	Second uint32 // the time, for cookies
	Tick   uint32
	Epoch  uint8

	Joined, Refused, Left, Proven int
	Inputs, Late                  int // Late: for a tick too old to be played again
	Dropped                       [wire.Reasons]int
	Wrong                         bool // states get a wrong hash
	Gullible                      bool // take any cookie; a control
	Most                          int  // bytes of a state; 0: the size of a packet

	cookies  wire.Cookies
	mac      wire.Mac
	sessions []*session
	last     uint32 // session number
}

type session struct {
	address  string
	nonce    wire.Nonce
	id, sent uint32
	key      wire.Key
	window   wire.Window
	views    wire.Ring
	ack      uint32
	watches  bool
	number   uint8
	early    int8
	newest   uint32 // tick of the newest input
	heading  uint8
	walks    bool
	at       doom.Point
	inputs   map[uint32]wire.Input
}

// Size is the side of the square, in units; players can't leave it.
const Size = 1024

// rollback is the most ticks by which an input may be late.
const rollback = 8

// New returns a server with a known secret.
func New(places int, send func(to string, packet []byte)) *Server {
	return &Server{Send: send, Places: places, Map: "MAP01", Second: 100,
		cookies: wire.MakeCookies(wire.Key{1, 2, 3})}
}

// Sessions returns the number of sessions.
func (s *Server) Sessions() int { return len(s.sessions) }

// Handle handles a datagram.
func (s *Server) Handle(from string, p []byte) {
	kind, r := wire.KindOf(p)
	switch {
	case r != 0:
	case kind == wire.Hello:
		r = s.hello(from, p)
	case kind == wire.Join:
		r = s.join(from, p)
	default:
		r = s.inSession(from, p, kind)
	}
	if r != 0 {
		s.Dropped[r]++
	}
}

func (s *Server) hello(from string, p []byte) wire.Reason {
	nonce, r := wire.ParseHello(p)
	if r == 0 {
		cookie := s.cookies.Make(&s.mac, []byte(from), nonce, s.Second)
		s.Send(from, wire.AppendChallenge(nil, nonce, cookie))
	}
	return r
}

func (s *Server) join(from string, p []byte) wire.Reason {
	j, r := wire.ParseJoin(p)
	if r != 0 {
		return r
	}
	if !s.Gullible && !s.cookies.Check(&s.mac, []byte(from), j.Nonce, s.Second, j.Cookie) {
		return wire.BadCookie
	}
	own := s.find(func(x *session) bool { return x.address == from && x.nonce == j.Nonce })
	if old := s.find(func(x *session) bool { return x.id == j.Old }); old != nil &&
		s.mac.Proves(&old.key, p) {
		s.Proven++
		own, old.address, old.nonce = old, from, j.Nonce
	}
	if own == nil && len(s.sessions) >= s.Places {
		s.Refused++
		s.Send(from, wire.AppendRefuse(nil, &wire.RefusePacket{Nonce: j.Nonce, Rooms: 1,
			Players: uint32(len(s.sessions)), Places: uint32(s.Places), RetryAfter: 1000,
			Reason: wire.ServerFull}))
		return 0
	}
	if own == nil {
		own = s.open(from, &j)
	}
	a := wire.AcceptPacket{Nonce: j.Nonce, Key: own.key, Map: wire.MakeMapName(s.Map),
		Session: own.id, Tick: s.Tick, Player: own.number, Epoch: s.Epoch, Rollback: rollback, TickRate: 35}
	s.Send(from, wire.AppendAccept(nil, &a))
	return 0
}

func (s *Server) open(from string, j *wire.JoinPacket) *session {
	s.Joined++
	s.last++
	x := &session{address: from, nonce: j.Nonce, id: s.last, early: wire.NoInput,
		watches: j.Flags&wire.Watch != 0, number: uint8(s.last), inputs: map[uint32]wire.Input{},
		at: doom.Point{X: Size / 2 << doom.UnitBits, Y: Size / 2 << doom.UnitBits}}
	if x.watches {
		x.number = wire.Watcher
	}
	x.key = s.cookies.SessionKey(&s.mac, x.id, j.Nonce, j.Cookie)
	s.sessions = append(s.sessions, x)
	return x
}

func (s *Server) find(is func(*session) bool) *session {
	if i := slices.IndexFunc(s.sessions, is); i >= 0 {
		return s.sessions[i]
	}
	return nil
}

func (s *Server) inSession(from string, p []byte, kind wire.Kind) wire.Reason {
	h, r := wire.ParseHeader(p)
	if r != 0 {
		return r
	}
	x := s.find(func(x *session) bool { return x.id == h.Session })
	switch {
	case x == nil:
		return wire.BadSession
	case x.address != from:
		return wire.BadAddress
	case !s.mac.Open(&x.key, p):
		return wire.BadMAC
	case !x.window.Take(h.Sequence):
		return wire.Replayed
	case kind == wire.Leave:
		s.Left++
		s.drop(x)
		return 0
	case kind != wire.Inputs:
		return wire.BadKind
	}
	in, r := wire.ParseInputs(p)
	if r != 0 {
		return r
	}
	x.ack = max(x.ack, in.Ack)
	if in.Epoch != s.Epoch {
		return wire.BadEpoch
	}
	for i := range int(in.Count) {
		s.input(x, in.Tick-uint32(i), in.Inputs[i])
	}
	return 0
}

func (s *Server) input(x *session, tick uint32, in wire.Input) {
	if _, known := x.inputs[tick]; known {
		return
	}
	x.inputs[tick] = in
	s.Inputs++
	if int32(tick-s.Tick) < -rollback {
		s.Late++
	}
	if tick > x.newest || x.early == wire.NoInput {
		x.newest, x.early = tick, int8(max(min(int32(tick-s.Tick), 127), -127))
	}
}

func (s *Server) drop(x *session) {
	s.sessions = slices.DeleteFunc(s.sessions, func(y *session) bool { return x == y })
}

// Drop forgets the sessions, as if the server were started again.
func (s *Server) Drop() { s.sessions = nil }

// Next begins another map.
func (s *Server) Next(name string) {
	s.Map, s.Tick, s.Epoch = name, 0, s.Epoch+1
	for _, x := range s.sessions {
		clear(x.inputs)
		x.early, x.newest = wire.NoInput, 0
	}
}

// Notice sends a notice to all sessions.
func (s *Server) Notice(n wire.NoticePacket) {
	for _, x := range s.sessions {
		s.say(x, wire.AppendNotice(s.begin(x, wire.Notice), &n))
	}
}

func (s *Server) begin(x *session, kind wire.Kind) []byte {
	x.sent++
	return wire.AppendHeader(make([]byte, 0, wire.PacketMost), kind, x.id, x.sent)
}

func (s *Server) say(x *session, p []byte) {
	s.mac.Seal(&x.key, p)
	s.Send(x.address, p)
}

// Play plays a tick and sends the states.
func (s *Server) Play() {
	for _, x := range s.sessions {
		x.step(s.Tick)
	}
	s.Tick++
	for _, x := range s.sessions {
		s.state(x)
	}
}

func (x *session) step(tick uint32) {
	if in, known := x.inputs[tick]; known {
		x.heading, x.walks = in.Heading, in.Flags&uint8(game.Walk) != 0
		delete(x.inputs, tick-64) // older than any input that is still repeated
	}
	if to := x.at.Step(uint32(x.heading), 8); x.walks && inside(to) {
		x.at = to
	}
}

func inside(p doom.Point) bool {
	const most = Size << doom.UnitBits
	return p.X >= 0 && p.Y >= 0 && p.X <= most && p.Y <= most
}

func (s *Server) state(x *session) {
	p := s.begin(x, wire.State)
	v := x.views.At(x.sent)
	*v = wire.View{Sequence: x.sent, Tick: s.Tick, Epoch: s.Epoch,
		Self: wire.Self{X: x.at.X, Y: x.at.Y, Heading: uint16(x.heading), Health: 100, Frogs: 8}}
	for _, other := range s.sessions {
		if !other.watches && v.Count < wire.Things/2 {
			s.show(v, game.SeenPlayer, uint16(other.number), other.at, other.heading)
		}
	}
	slices.SortFunc(v.Shown(), func(a, b wire.Thing) int { return int(a.Number) - int(b.Number) })
	for i := range uint32(8) {
		r := doom.Random(7, s.Tick/4, i) // they hop now and then
		s.show(v, game.SeenFrog, uint16(i), doom.Point{X: int32(r % Size << doom.UnitBits),
			Y: int32(r >> 16 % Size << doom.UnitBits)}, uint8(r>>32&15))
	}
	most := s.Most
	if most == 0 {
		most = wire.PacketMost
	}
	p, _ = wire.AppendState(p, most, v, x.views.Find(x.ack), x.early, 0)
	if s.Wrong {
		p[wire.Header+15]++
	}
	s.say(x, p)
}

func (s *Server) show(v *wire.View, kind uint8, number uint16, at doom.Point, heading uint8) {
	v.Things[v.Count] = wire.Thing{Kind: kind, Number: number, Heading: heading,
		X: int16(at.X >> doom.UnitBits), Y: int16(at.Y >> doom.UnitBits)}
	v.Count++
}
