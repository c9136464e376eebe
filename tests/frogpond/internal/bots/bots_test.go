package bots

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client/clienttest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// world is a server and bots with a clock of their own, which a test advances by milliseconds.
type world struct {
	server *clienttest.Server
	now    time.Duration
	reads  []func(packet []byte) // by the bot's number, which is also its address
}

func newWorld(places int) *world {
	w := &world{}
	w.server = clienttest.New(places, func(to string, p []byte) {
		i, _ := strconv.Atoi(to)
		w.reads[i](p)
	})
	return w
}

// to returns the i-th bot's function write.
func (w *world) to(i int) func(packet []byte) {
	return func(p []byte) { w.server.Handle(strconv.Itoa(i), p) }
}

// run advances the clock, and calls step each time.
func (w *world) run(d time.Duration, step func(now time.Duration)) {
	for end := w.now + d; w.now < end; w.now += time.Millisecond {
		w.server.Second = 100 + uint32(w.now/time.Second)
		step(w.now)
		if played := w.server.Tick; time.Duration(played)*tickTime <= w.now {
			w.server.Play()
		}
	}
}

func (w *world) behaving(o Options) []*bot {
	var list []*bot
	for i := range o.Count {
		b := newBot(&o, i, w.to(i), func() time.Duration { return w.now })
		list, w.reads = append(list, b), append(w.reads, b.read)
	}
	return list
}

func step(list []*bot) func(time.Duration) {
	return func(now time.Duration) {
		for _, b := range list {
			b.step(now)
		}
	}
}

func TestBotsPlayOverABadNetwork(t *testing.T) {
	network := Network{Loss: 2, Jitter: 50 * time.Millisecond, Duplicate: 1, Reorder: 1}
	w := newWorld(16)
	list := w.behaving(Options{Network: network, Count: 8, Seed: 1, Room: -1})
	w.run(20*time.Second, step(list))
	for i, b := range list {
		r := b.end()
		assert.Equal(t, uint64(1), r.Joined, i)
		assert.Zero(t, r.Lost+r.Refused+r.WrongStates+r.Baseless, i)
		assert.Greater(t, r.States, uint64(500), "of 700, some were lost or overtaken")
		assert.Greater(t, r.PacketsOut, uint64(600), i)
		self := b.client.View().Self
		assert.NotEqual(t, doom.Point{X: clienttest.Size / 2, Y: clienttest.Size / 2},
			doom.Point{X: self.X >> doom.UnitBits, Y: self.Y >> doom.UnitBits}, "bot %d stands still", i)
	}
	assert.Positive(t, w.server.Dropped[wire.Replayed], "of what came twice")
	assert.Less(t, w.server.Late, w.server.Inputs/50)
	w.server.Notice(wire.NoticePacket{Reason: wire.Closing, Seconds: 5})
	w.server.Notice(wire.NoticePacket{Reason: wire.Closing, Seconds: 5})
	w.run(time.Second, step(list))
	for _, b := range list {
		assert.Equal(t, uint64(1), b.end().Closing)
	}
}

// A refused bot knocks once a second, and joins when a place is free.
func TestRefusedBots(t *testing.T) {
	w := newWorld(2)
	list := w.behaving(Options{Count: 6, Seed: 1, Room: -1})
	w.run(10*time.Second, step(list))
	joined, refused := uint64(0), uint64(0)
	for _, b := range list {
		joined += b.end().Joined
		refused += b.end().Refused
		if b.client.Phase() == client.Refused {
			assert.LessOrEqual(t, b.end().PacketsOut, uint64(22), "a Hello and a Join a second")
		}
	}
	assert.Equal(t, uint64(2), joined)
	assert.InDelta(t, 4*9, refused, 4)
	w.server.Places = 6
	w.run(2*time.Second, step(list))
	assert.Equal(t, 6, w.server.Joined)
}

// A control: a session that the server forgot counts as lost, although the bot joins again at once.
// A state with a wrong hash also counts.
func TestBotsNotice(t *testing.T) {
	w := newWorld(1)
	list := w.behaving(Options{Count: 1, Room: -1})
	w.run(2*time.Second, step(list))
	w.server.Wrong = true
	w.run(time.Second, step(list))
	assert.InDelta(t, 35, list[0].end().WrongStates, 1)
	w.server.Drop()
	w.run(6*time.Second, step(list))
	assert.Equal(t, uint64(1), list[0].end().Lost)
	assert.Equal(t, uint64(2), list[0].end().Joined)
	w.server.Places = 0
	w.server.Drop()
	w.run(6*time.Second, step(list))
	assert.Equal(t, uint64(2), list[0].end().Lost)
	assert.NotZero(t, list[0].end().Refused)
}

func TestBotsAllocateNothing(t *testing.T) {
	w := newWorld(1)
	list := w.behaving(Options{Network: Network{Loss: 2, Jitter: 50 * time.Millisecond, Duplicate: 1},
		Count: 1, Room: -1})
	w.run(3*time.Second, step(list))
	b := list[0]
	var states [][]byte
	w.reads[0] = func(p []byte) { states = append(states, p) }
	for range 102 {
		w.server.Play()
	}
	b.write = func([]byte) {}
	next := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b.read(states[next])
		w.now += tickTime
		b.step(w.now)
		next++
	}))
	assert.Greater(t, b.end().States, uint64(150))
}

func (w *world) attack(kind string, d time.Duration) *Result {
	o := Options{Count: 3, Seed: 1, Room: -1, Hostile: []string{kind}, Rate: 200}
	var list []*attacker
	for i := range o.Count {
		a := newAttacker(&o, i, w.to(i))
		list, w.reads = append(list, a), append(w.reads, a.read)
	}
	w.run(d, func(now time.Duration) {
		for _, a := range list {
			if a.now = now; now%burstTime == 0 {
				a.burst(1)
			}
		}
	})
	var results []Result
	for _, a := range list {
		results = append(results, a.end())
	}
	return o.sum(results)
}

func TestHostileBots(t *testing.T) {
	for kind, reasons := range map[string][]wire.Reason{
		"flood":   {wire.BadCookie},
		"forge":   {wire.BadCookie, wire.BadSession},
		"replay":  {wire.Replayed},
		"garbage": {wire.Short, wire.BadKind},
		"slow":    {wire.BadCookie},
	} {
		w := newWorld(100)
		r := w.attack(kind, 40*time.Second)
		assert.Zero(t, *r.GotIn, kind)
		assert.Positive(t, r.Sent[kind], kind)
		assert.Equal(t, r.PacketsOut, r.Sent[kind], kind)
		for _, reason := range reasons {
			assert.Positive(t, w.server.Dropped[reason], "%s: %v", kind, reason)
		}
		if honest := kind == "replay" || kind == "slow"; honest {
			assert.Positive(t, w.server.Joined, kind)
		} else {
			assert.Zero(t, w.server.Joined, kind)
		}
	}
}

// A control: attackers with a forged cookie get into a server that takes any cookie.
func TestGullibleServerIsFoundOut(t *testing.T) {
	for _, kind := range []string{"flood", "forge", "slow"} {
		w := newWorld(20)
		w.server.Gullible = true
		assert.Positive(t, *w.attack(kind, 40*time.Second).GotIn, kind)
	}
}

func TestRun(t *testing.T) {
	const patience, states = 5 * time.Minute, 20
	_, address := clienttest.Listen(t, 16)
	r, err := Run(t.Context(), Options{Address: address, Count: 8, For: patience, States: states,
		Timeout: patience, Room: -1, Rate: 1, Network: Network{Loss: 1, Jitter: 10 * time.Millisecond}})
	require.NoError(t, err)
	assert.Equal(t, 8, r.Bots)
	assert.GreaterOrEqual(t, r.Joined, uint64(8))
	assert.GreaterOrEqual(t, r.States, uint64(8*states))
	assert.Zero(t, r.WrongStates+r.Refused)
	r, err = Run(t.Context(), Options{Address: address, Count: 5, For: time.Second / 4, Room: -1,
		Rate: 100, Hostile: []string{"all"}})
	require.NoError(t, err)
	assert.Zero(t, *r.GotIn)
	assert.Len(t, r.Sent, len(Kinds()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, Options{Address: address, Count: 5, For: time.Hour, Room: -1, Rate: 1})
	require.NoError(t, err, "and at once")
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Address: "127.0.0.1:1", Count: 1, For: 1, Room: -1, Rate: 1}
	require.NoError(t, good.Check())
	for name, change := range map[string]func(*Options){
		"-addr":    func(o *Options) { o.Address = "nonsense" },
		"-remote":  func(o *Options) { o.Address = "192.0.2.1:1" },
		"-n":       func(o *Options) { o.Count = CountMost + 1 },
		"-for":     func(o *Options) { o.For = TimeMost + 1 },
		"-loss":    func(o *Options) { o.Loss = 101 },
		"-jitter":  func(o *Options) { o.Jitter = -1 },
		"-room":    func(o *Options) { o.Room = 255 },
		"-rate":    func(o *Options) { o.Rate = 0 },
		"-hostile": func(o *Options) { o.Hostile = []string{"polite"} },
	} {
		bad := good
		change(&bad)
		assert.ErrorContains(t, bad.Check(), name)
	}
	far := good
	far.Address, far.Remote = "192.0.2.1:1", true
	assert.NoError(t, far.Check())
}
