package serve

import (
	"sync/atomic"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// message is a message from the receiver to a room, about one of the room's sessions.
type message struct {
	came     int64      // nanoseconds since the server began
	nonce    wire.Nonce // of a session that joined or moved
	session  uint32
	sequence uint32 // of the packet
	ack      uint32 // the newest State that the client has
	tick     uint32 // of the newest input
	what     what
	place    uint8
	epoch    uint8
	count    uint8
	inputs   [wire.InputsMost]wire.Input // newest first
	address  udp.Address                 // of a session that joined or moved
}

type what uint8

const (
	joined what = iota + 1 // the session has the player's name and key
	moved                  // the session's address changed
	wants                  // inputs
	leaves
)

// inbox is a queue of messages for a room. One goroutine puts them in, another takes them out, and
// neither waits.
type inbox struct {
	messages []message
	in, out  atomic.Uint32 // messages in total
}

var messageMaker = scope.Plain[message]()

// inboxLength is the number of messages that may wait. A session may have waitingMost of them, or
// 0.4 s of inputs, so that one session's flood leaves space for all others.
const (
	inboxLength = 256
	waitingMost = inboxLength / (PlayersMost + watchers)
)

func newInbox(s scope.Scope) inbox { return inbox{messages: messageMaker.Slice(s, inboxLength)} }

// next returns a message for a session to fill, or nil if too many of its messages wait. put then
// hands the message over.
func (b *inbox) next(of *session) *message {
	if of.waiting.Load() == waitingMost {
		return nil
	}
	return &b.messages[b.in.Load()%inboxLength]
}

func (b *inbox) put(of *session) {
	of.waiting.Add(1)
	b.in.Add(1)
}

// first returns the oldest message, or nil. done frees it.
func (b *inbox) first() *message {
	out := b.out.Load()
	if out == b.in.Load() {
		return nil
	}
	return &b.messages[out%inboxLength]
}

func (b *inbox) done(of *session) {
	b.out.Add(1)
	of.waiting.Add(-1)
}
