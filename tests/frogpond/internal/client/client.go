// Package client is a player's side of the protocol (tests/frogpond/PROTOCOL.md), without a socket
// and without a clock: who has both gives it each datagram that comes, asks it 35 times a second
// what to send, and tells it the time. So bots, watchers and tests play the same way.
//
//	c := client.New(client.Options{Name: "anna", Room: -1})
//	c.Handle(datagram, now)               // whenever one comes
//	if p := c.Tick(now, input); p != nil { // 35 times a second
//		send(p)
//	}
//	draw(c.View())
//
// After New, nothing here allocates on the Go heap.
package client

import (
	"math/rand/v2"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Phase is how far a client has come.
type Phase uint8

const (
	Joining Phase = iota // it asks for a place
	Refused              // there is none; it asks again now and then
	Playing
	Lost // it heard nothing for too long, or was told so; it asks for its old place
	Left
)

func (p Phase) String() string {
	return [...]string{"joining", "refused", "playing", "lost", "left"}[p]
}

// How long a client waits.
const (
	timeout    = 5 * time.Second         // without a valid packet, it is lost
	silence    = 1500 * time.Millisecond // and it asks whether it is known where it is now
	askAgain   = 500 * time.Millisecond  // what wasn't answered is asked again; later each time
	knockAgain = time.Second             // after a refusal, at least
	joinsMost  = 3                       // that aren't answered; then it begins anew
)

// Options are what a client is told.
type Options struct {
	Name       string
	Room       int // -1: any
	Watch      bool
	Seed       uint64        // of its nonces
	Redundancy int           // inputs in a packet, so that a lost one does no harm; 0: 4
	Every      int           // ticks from one packet to the next; 0: 1
	Timeout    time.Duration // without a valid packet, and it is lost; 0: 5 s
}

// Client is one player's side.
type Client struct {
	options Options
	name    wire.Name
	random  *rand.Rand
	phase   Phase
	ask     question
	session session
	clock   clock
	views   views
	ticks   int    // in play
	packet  []byte // the last one that was made
	mac     wire.Mac
	refusal wire.RefusePacket
	Counts
}

// Counts are what happened so far.
type Counts struct {
	Accepts, Refusals, Losses uint64 // Losses: it became Lost
	States                    uint64 // that were decoded, and had the server's hash
	WrongStates               uint64 // that had another
	Stale                     uint64 // states that came after a newer one, or of an old epoch
	Baseless                  uint64 // states whose base isn't here any more
	Dropped                   uint64 // packets that aren't of the server, or came twice
	RoomsEnded                uint64
}

// session is what an Accept gave.
type session struct {
	id           uint32
	key          wire.Key
	sent         uint32 // sequence of the last packet
	window       wire.Window
	heard        time.Duration // when the last valid packet came
	room, player uint8
	epoch        uint8
	now, next    level // the map that was named last, and the one after it
	closing      bool
	seconds      uint32 // left, at closing
}

// level is the name of the map that an epoch is played on.
type level struct {
	name  wire.MapName
	epoch uint8
}

// New is a client that is about to join.
func New(o Options) *Client {
	c := &Client{options: o, name: wire.MakeName(o.Name),
		random: rand.New(rand.NewPCG(o.Seed, 0xc11e)),
		packet: make([]byte, 0, wire.PacketMost)}
	if c.options.Redundancy == 0 {
		c.options.Redundancy = 4
	}
	c.options.Every = max(c.options.Every, 1)
	if c.options.Timeout == 0 {
		c.options.Timeout = timeout
	}
	c.options.Redundancy = min(c.options.Redundancy, wire.InputsMost)
	return c
}

// Phase is how far it has come.
func (c *Client) Phase() Phase { return c.phase }

// View is the newest that the server showed; nil when there is none yet in this session.
func (c *Client) View() *wire.View { return c.views.newest() }

// Room is the number of the room.
func (c *Client) Room() int { return int(c.session.room) }

// Player is the player's number in the room; 0xff: it watches.
func (c *Client) Player() uint8 { return c.session.player }

// Map is the name of the map that is played; "" while a watcher asks what the next one is.
func (c *Client) Map() string {
	if c.session.now.epoch != c.session.epoch {
		return ""
	}
	return string(c.session.now.name.Text())
}

// Refusal is the last one's reason and numbers.
func (c *Client) Refusal() *wire.RefusePacket { return &c.refusal }

// Closing says that the server closes, and in how many seconds.
func (c *Client) Closing() (seconds uint32, closing bool) {
	return c.session.seconds, c.session.closing
}

// Tick is called 35 times a second with what the player wants. It gives the datagram to send, which
// is good until the next call, or nil.
func (c *Client) Tick(now time.Duration, in wire.Input) []byte {
	if c.phase == Playing && now-c.session.heard >= c.options.Timeout {
		c.lose(now)
	}
	if c.phase == Left {
		return nil
	}
	if c.phase != Playing || c.wantsLevel() || now-c.session.heard >= silence {
		if p := c.question(now); p != nil || c.phase != Playing {
			return p
		}
	}
	c.clock.advance(in)
	if c.ticks++; c.ticks%c.options.Every != 0 {
		return nil
	}
	return c.say()
}

// Quiet is until when Tick has nothing to send whatever comes: who was refused need not tick until
// then.
func (c *Client) Quiet() time.Duration {
	if c.phase == Refused && c.ask.nonce == 0 {
		return c.ask.again
	}
	return 0
}

// wantsLevel says whether it is to ask which map is played now: Accept alone says so. Players get
// along without.
func (c *Client) wantsLevel() bool {
	return c.options.Watch && c.session.now.epoch != c.session.epoch
}

// lose gives up a session that it heard nothing of.
func (c *Client) lose(now time.Duration) {
	c.Losses++
	c.startAgain(Lost, now)
}

// startAgain asks for a place from the beginning.
func (c *Client) startAgain(phase Phase, now time.Duration) {
	c.phase = phase
	c.ask = question{again: now}
}

// Leave gives the datagram that says good-bye; nil where there is no session. It may be called more
// than once, since a datagram may be lost.
func (c *Client) Leave() []byte {
	c.phase = Left
	if c.session.id == 0 {
		return nil
	}
	c.packet = wire.AppendLeave(c.packet[:0], c.session.id, c.sequence())
	c.mac.Seal(&c.session.key, c.packet)
	return c.packet
}

// sequence is that of the next packet.
func (c *Client) sequence() uint32 {
	c.session.sent++
	return c.session.sent
}

// say is the packet of the newest inputs; who watches has none, and says only which state came.
func (c *Client) say() []byte {
	in := wire.InputsPacket{Ack: c.views.sequence, Epoch: c.session.epoch, Tick: c.clock.tick}
	if !c.options.Watch {
		in.Count = uint8(c.clock.newest(in.Inputs[:c.options.Redundancy]))
	}
	c.packet = wire.AppendHeader(c.packet[:0], wire.Inputs, c.session.id, c.sequence())
	c.packet = wire.AppendInputs(c.packet, &in)
	c.mac.Seal(&c.session.key, c.packet)
	return c.packet
}
