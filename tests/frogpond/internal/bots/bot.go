package bots

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
)

// bot is a bot that behaves.
type bot struct {
	client  *client.Client
	walker  walker
	in, out way
	next    time.Duration        // of its next tick
	write   func(packet []byte)  // to its socket
	now     func() time.Duration // since it began
	read    func(packet []byte)  // from its socket
	result  Result
}

// goodbyes is the number of Leave packets that a bot sends, because packets get lost.
const goodbyes = 3

// newBot returns the i-th bot. The bots' ticks are spread over the first second.
func newBot(o *Options, i int, write func(packet []byte), now func() time.Duration) *bot {
	b := &bot{client: client.New(o.client(i)), write: write, now: now,
		in: newWay(o.Network, o.Seed, uint64(i)<<2), out: newWay(o.Network, o.Seed, uint64(i)<<2|1),
		next: time.Second * time.Duration(i) / time.Duration(o.Count)}
	b.walker.random = rand.New(rand.NewPCG(o.Seed, uint64(i)<<2|2))
	b.read = func(packet []byte) {
		b.result.PacketsIn++
		b.result.BytesIn += uint64(len(packet))
		b.in.send(packet, b.now())
	}
	return b
}

// behave plays until the context is done, the server closes, or the bot has seen enough states. It
// returns the bot's counts.
func behave(ctx context.Context, o *Options, s *socket, i int, start time.Time) Result {
	b := newBot(o, i, s.send, func() time.Duration { return time.Since(start) })
	plays := false
	for ctx.Err() == nil && b.result.Closing == 0 && (o.States == 0 || b.client.States < o.States) {
		due := b.step(b.now())
		if !plays && b.client.States > 0 {
			if plays = true; o.still.Add(-1) == 0 && o.Playing != nil {
				o.Playing()
			}
		}
		if due < b.next { // a packet to send is due; packets are read at the tick
			time.Sleep(due - b.now())
			continue
		}
		// at most a second, to check the context
		if s.wait(min(due-b.now(), time.Second), b.read) != nil {
			break
		}
	}
	for range goodbyes {
		if p := b.client.Leave(); p != nil {
			b.send(p)
		}
	}
	return b.end()
}

// step does the work that is due, and returns the time of the next tick, or of the next packet to
// send. Packets that arrive wait for the next step.
func (b *bot) step(now time.Duration) (due time.Duration) {
	for p, at := b.in.arrive(now); p != nil; p, at = b.in.arrive(now) {
		b.client.Handle(p, at)
	}
	if now >= b.next {
		b.tick(now)
	}
	for p, _ := b.out.arrive(now); p != nil; p, _ = b.out.arrive(now) {
		b.send(p)
	}
	return b.out.next(b.next)
}

// tick lets the client play a tick, and sets the time of the next tick.
func (b *bot) tick(now time.Duration) {
	if p := b.client.Tick(now, b.walker.decide(b.client.View())); p != nil {
		b.out.send(p, now)
	}
	if _, closing := b.client.Closing(); closing {
		b.result.Closing = 1
	}
	b.next = max(b.next+tickTime, b.client.Quiet())
	if now-b.next > time.Second { // the machine stalled
		b.next = now
	}
}

func (b *bot) send(packet []byte) {
	b.result.PacketsOut++
	b.result.BytesOut += uint64(len(packet))
	b.write(packet)
}

func (b *bot) end() Result {
	r, c := b.result, &b.client.Counts
	r.Joined, r.Refused, r.Lost = c.Accepts, c.Refusals, c.Losses
	r.WrongStates, r.States, r.Stale, r.Baseless = c.WrongStates, c.States, c.Stale, c.Baseless
	r.RoomsEnded = c.RoomsEnded
	return r
}
