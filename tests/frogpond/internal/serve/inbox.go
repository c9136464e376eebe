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

// inboxLength is what comes to a room in some ticks: 16 players, one message each a tick.
const inboxLength = 256

func newInbox(s scope.Scope) inbox { return inbox{messages: messageMaker.Slice(s, inboxLength)} }

// next is where the next message goes, or nil: then it is full. put hands it over.
func (b *inbox) next() *message {
	in := b.in.Load()
	if in-b.out.Load() == inboxLength {
		return nil
	}
	return &b.messages[in%inboxLength]
}

func (b *inbox) put() { b.in.Add(1) }

// first is the oldest message, or nil. done gives its room back.
func (b *inbox) first() *message {
	out := b.out.Load()
	if out == b.in.Load() {
		return nil
	}
	return &b.messages[out%inboxLength]
}

func (b *inbox) done() { b.out.Add(1) }
