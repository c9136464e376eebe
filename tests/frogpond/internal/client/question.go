package client

import (
	"math"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// question is the state of a handshake: Hello, Challenge, Join, and Accept or Refuse.
type question struct {
	nonce  wire.Nonce // of the whole handshake; 0: not begun
	cookie wire.Cookie
	proven bool          // it has a cookie
	asked  int           // times the same packet was sent without an answer
	again  time.Duration // when to ask again
}

// question returns the next packet of the handshake, or nil while it waits for an answer.
func (c *Client) question(now time.Duration) []byte {
	q := &c.ask
	if now < q.again {
		return nil
	}
	if q.proven && q.asked >= joinsMost {
		if c.phase != Playing { // the server may have forgotten the session
			c.session.id = 0
		}
		*q = question{}
	}
	q.again = now + askAgain<<min(q.asked, 2) // the round trip may be long
	q.asked++
	if q.proven {
		return c.join()
	}
	if q.nonce == 0 {
		q.nonce = c.random.Uint64() | 1
	}
	c.packet = wire.AppendHello(c.packet[:0], q.nonce)
	return c.packet
}

// join returns a Join, for the old place if the client had one.
func (c *Client) join() []byte {
	j := wire.JoinPacket{Nonce: c.ask.nonce, Cookie: c.ask.cookie, Name: c.name, Room: wire.AnyRoom,
		Old: c.session.id}
	if c.options.Room >= 0 {
		j.Room = uint8(c.options.Room)
	}
	if c.options.Watch {
		j.Flags = wire.Watch
	}
	c.packet = wire.AppendJoin(c.packet[:0], &j)
	if j.Old != 0 {
		proof := c.mac.Proof(&c.session.key, c.packet)
		copy(c.packet[wire.ProofAt:], proof[:])
	}
	return c.packet
}

// handleChallenge takes the cookie. The next tick sends the Join.
func (c *Client) handleChallenge(p []byte, now time.Duration) {
	q := &c.ask
	nonce, cookie, r := wire.ParseChallenge(p)
	if r != 0 || nonce != q.nonce || q.nonce == 0 || q.proven {
		c.Dropped++
		return
	}
	q.cookie, q.proven, q.asked, q.again = cookie, true, 0, now
}

// handleAccept begins a session, or continues the old one.
func (c *Client) handleAccept(p []byte, now time.Duration) {
	a, r := wire.ParseAccept(p)
	if r != 0 || a.Nonce != c.ask.nonce || !c.ask.proven {
		c.Dropped++
		return
	}
	c.ask = question{}
	s := &c.session
	goesOn := c.phase == Playing
	if a.Session != s.id || a.Key != s.key {
		if goesOn { // the server has forgotten the old session
			c.Losses++
			goesOn = false
		}
		*s = session{id: a.Session, key: a.Key}
		c.views.forget()
	}
	s.heard, s.room, s.player = now, a.Room, a.Player
	s.now = level{a.Map, a.Epoch}
	if goesOn && a.Epoch == s.epoch {
		return // only a watcher's question for the map
	}
	c.phase, s.epoch = Playing, a.Epoch
	c.Accepts++
	c.clock.start(a.Tick, firstLead)
}

// handleRefuse waits, and asks again later.
func (c *Client) handleRefuse(p []byte, now time.Duration) {
	f, r := wire.ParseRefuse(p)
	if r != 0 || f.Nonce != c.ask.nonce || c.ask.nonce == 0 {
		c.Dropped++
		return
	}
	c.Refusals++
	c.refusal = f
	if c.phase == Playing { // the server has forgotten the session
		c.Losses++
	}
	c.session.id = 0
	c.startAgain(Refused, now+max(knockAgain, time.Duration(f.RetryAfter)*time.Millisecond))
	if f.RetryAfter == 0 { // the refusal is for good
		c.ask.again = math.MaxInt64
	}
}
