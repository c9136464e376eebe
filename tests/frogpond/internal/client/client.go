// Package client is a player's side of the protocol (tests/frogpond/PROTOCOL.md), without a socket
// and without a clock. The caller passes in each datagram and the time, and sends the datagrams
// that Tick returns:
//
//	c := client.New(client.Options{Name: "anna", Room: -1})
//	c.Handle(datagram, now)                // for each datagram
//	if p := c.Tick(now, input); p != nil { // 35 times a second
//		send(p)
//	}
//	draw(c.View())
//
// After New, a client makes no Go allocation. It isn't safe for concurrent use.
package client

import (
	"math/rand/v2"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Phase is the state of a client's connection.
type Phase uint8

const (
	Joining Phase = iota // the client requests a place
	Refused              // the server refused; the client asks again later
	Playing
	Lost // no packet came for too long, or a TimedOut did; the client asks for its old place
	Left
)

func (p Phase) String() string {
	return [...]string{"joining", "refused", "playing", "lost", "left"}[p]
}

// How long a client waits.
const (
	timeout = 5 * time.Second // without a valid packet, until the client is lost
	// Without a valid packet, until the client asks whether its address changed.
	silence    = 1500 * time.Millisecond
	askAgain   = 500 * time.Millisecond // between unanswered questions; later up to four times this
	knockAgain = time.Second            // at least, after a refusal
	joinsMost  = 3                      // without an answer, until the handshake begins again
)

// Options are the options of a client.
type Options struct {
	Name       string
	Room       int // -1: any
	Watch      bool
	Seed       uint64        // of its nonces
	Redundancy int           // inputs in a packet, so that a lost packet does no harm; 0: 4
	Every      int           // ticks from one packet to the next; 0: 1
	Timeout    time.Duration // without a valid packet, until the client is lost; 0: 5 s
}

// Client is one player's side of the protocol.
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
	packet  []byte // the last one made
	mac     wire.Mac
	refusal wire.RefusePacket
	Counts
}

// Counts count the events of a client.
type Counts struct {
	Accepts, Refusals, Losses uint64 // Losses: changes to Lost
	States                    uint64 // decoded, with the server's hash
	WrongStates               uint64 // decoded, with another hash
	Stale                     uint64 // states older than the newest one, or of an old epoch
	Baseless                  uint64 // states without their base
	Dropped                   uint64 // packets of others, or repeated ones
	RoomsEnded                uint64
}

type session struct {
	id           uint32
	key          wire.Key
	sent         uint32 // sequence of the last packet
	window       wire.Window
	heard        time.Duration // time of the last valid packet
	room, player uint8
	epoch        uint8
	now, next    level // the current map, and the next one
	closing      bool
	seconds      uint32 // left until the server closes
}

// level is the name of the map that an epoch is played on.
type level struct {
	name  wire.MapName
	epoch uint8
}

// New returns a client that is about to join.
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

// Phase returns the phase of the client.
func (c *Client) Phase() Phase { return c.phase }

// View returns the newest view, or nil if the session has none. It is valid until the next Handle.
func (c *Client) View() *wire.View { return c.views.newest() }

// Room returns the number of the room.
func (c *Client) Room() int { return int(c.session.room) }

// Player returns the player's number in the room, or 0xff for a watcher.
func (c *Client) Player() uint8 { return c.session.player }

// Map returns the name of the current map, or "" while the client hasn't heard it.
func (c *Client) Map() string {
	if c.session.now.epoch != c.session.epoch {
		return ""
	}
	return string(c.session.now.name.Text())
}

// Refusal returns the last refusal, with its reason and numbers.
func (c *Client) Refusal() *wire.RefusePacket { return &c.refusal }

// Closing reports whether the server closes, and returns the seconds until then.
func (c *Client) Closing() (seconds uint32, closing bool) {
	return c.session.seconds, c.session.closing
}

// Tick plays a tick with the player's input, 35 times a second. It returns the datagram to send, or
// nil; the datagram is valid until the next call.
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

// Quiet returns the time until which Tick returns nil, or 0. A refused client needn't tick before.
func (c *Client) Quiet() time.Duration {
	if c.phase == Refused && c.ask.nonce == 0 {
		return c.ask.again
	}
	return 0
}

// wantsLevel reports whether a watcher must ask for the current map, which an Accept names. Only
// watchers need the map.
func (c *Client) wantsLevel() bool {
	return c.options.Watch && c.session.now.epoch != c.session.epoch
}

func (c *Client) lose(now time.Duration) {
	c.Losses++
	c.startAgain(Lost, now)
}

func (c *Client) startAgain(phase Phase, now time.Duration) {
	c.phase = phase
	c.ask = question{again: now}
}

// Leave returns a datagram that ends the session, or nil without a session. Call Leave more than
// once, since datagrams get lost.
func (c *Client) Leave() []byte {
	c.phase = Left
	if c.session.id == 0 {
		return nil
	}
	c.packet = wire.AppendLeave(c.packet[:0], c.session.id, c.sequence())
	c.mac.Seal(&c.session.key, c.packet)
	return c.packet
}

func (c *Client) sequence() uint32 {
	c.session.sent++
	return c.session.sent
}

// say returns a packet of the newest inputs. A watcher's packet has no inputs: it only acknowledges
// a state.
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
