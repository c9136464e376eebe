package serve

import (
	"sync/atomic"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// message is what the receiver tells a room of one of its sessions.
type message struct {
	came    int64 // nanoseconds since the server began
	session uint32
	ack     uint32 // of inputs: the newest State that came
	tick    uint32 // of the newest
	what    what
	place   uint8
	epoch   uint8
	count   uint8
	inputs  [wire.InputsMost]wire.Input // newest first
	address udp.Address                 // of who joined, or moved
}

type what uint8

const (
	joined what = iota + 1 // the session says who
	moved                  // it has another address now
	wants                  // inputs
	leaves
)

// inbox is the messages for a room: one goroutine puts them in, another takes them out, and neither
// waits.
type inbox struct {
	messages []message
	in, out  atomic.Uint32 // how many ever
}

var messageMaker = scope.Plain[message]()

// inboxLength is what comes to a room in some ticks. A session may have waitingMost of it, a third of
// a second of inputs: so whoever sends more, all others of the room find theirs.
const (
	inboxLength = 256
	waitingMost = inboxLength / (PlayersMost + watchers)
)

func newInbox(s scope.Scope) inbox { return inbox{messages: messageMaker.Slice(s, inboxLength)} }

// next is where the next message of a session goes, or nil: then too many of it wait. put hands it
// over.
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

// first is the oldest message, or nil. done gives its room back, and the session's.
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
