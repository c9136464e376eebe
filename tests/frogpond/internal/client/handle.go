package client

import (
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Handle handles a datagram. It drops and counts datagrams that aren't from the server, or that
// came before.
func (c *Client) Handle(packet []byte, now time.Duration) {
	kind, r := wire.KindOf(packet)
	switch {
	case r != 0 || c.phase == Left:
		c.Dropped++
	case kind == wire.Challenge:
		c.handleChallenge(packet, now)
	case kind == wire.Accept:
		c.handleAccept(packet, now)
	case kind == wire.Refuse:
		c.handleRefuse(packet, now)
	case (kind == wire.State || kind == wire.Notice) && c.isNew(packet):
		c.session.heard = now
		if kind == wire.State {
			c.handleState(packet)
		} else {
			c.handleNotice(packet, now)
		}
	default:
		c.Dropped++
	}
}

// isNew reports whether a packet is of this session, with a valid MAC, and didn't come before.
func (c *Client) isNew(packet []byte) bool {
	h, r := wire.ParseHeader(packet)
	s := &c.session
	return r == 0 && c.phase == Playing && h.Session == s.id && c.mac.Open(&s.key, packet) &&
		s.window.Take(h.Sequence)
}

// handleState handles a state, unless a newer one came before.
func (c *Client) handleState(packet []byte) {
	h, _ := wire.ParseHeader(packet)
	if h.Sequence < c.views.sequence { // the client has a newer one
		c.Stale++
		return
	}
	v, r := wire.ParseState(packet, &c.views.ring)
	switch {
	case r == wire.NoBase:
		c.Baseless++
	case r == wire.WrongHash:
		c.WrongStates++
	case r != 0:
		c.Dropped++
	case int8(v.Epoch-c.session.epoch) < 0:
		c.Stale++
	default:
		c.States++
		c.take(v)
	}
}

func (c *Client) take(v *wire.View) {
	s := &c.session
	if v.Epoch != s.epoch {
		s.epoch = v.Epoch
		if s.next.epoch == v.Epoch && s.next.name != (wire.MapName{}) {
			s.now = s.next
		}
		c.ask.again = s.heard + askAgain // the notice may be on its way
		c.clock.start(v.Tick, c.clock.lead)
	}
	c.views.sequence = v.Sequence
	c.clock.hear(v)
}

func (c *Client) handleNotice(packet []byte, now time.Duration) {
	n, r := wire.ParseNotice(packet)
	s := &c.session
	switch {
	case r != 0:
		c.Dropped++
	case n.Reason == wire.Closing:
		s.closing, s.seconds = true, n.Seconds
	case n.Reason == wire.RoomEnded:
		c.RoomsEnded++
		s.id = 0
		c.startAgain(Joining, now)
	case n.Reason == wire.TimedOut:
		c.lose(now)
		s.id = 0
	case n.Epoch == s.epoch:
		s.now = level{n.Map, n.Epoch}
	default:
		s.next = level{n.Map, n.Epoch}
	}
}

type views struct {
	ring     wire.Ring
	sequence uint32 // of the newest; 0: none
}

func (v *views) newest() *wire.View { return v.ring.Find(v.sequence) }

func (v *views) forget() {
	v.ring.Clear()
	v.sequence = 0
}
