package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client/clienttest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

const tick = time.Second / 35

// pair is a server and a client with a network between them that delays and loses packets.
type pair struct {
	*testing.T
	server         *clienttest.Server
	client         *client.Client
	now            int // ticks
	delay          int // least delay of a packet; the most is twice that
	loss           uint64
	cut            bool // no packet arrives
	address        string
	toServer, back []flying
	sent           uint32
}

type flying struct {
	due   int
	bytes []byte
}

func newPair(t *testing.T, o client.Options) *pair {
	p := &pair{T: t, client: client.New(o), address: "home"}
	p.server = clienttest.New(4, func(to string, b []byte) {
		if to == p.address {
			p.back = p.send(p.back, b)
		}
	})
	p.server.Tick = 1000
	return p
}

func (p *pair) send(list []flying, b []byte) []flying {
	p.sent++
	r := doom.Random(3, p.sent, 0)
	if p.cut || r%100 < p.loss {
		return list
	}
	late := p.delay + int(r>>32)%(p.delay+1)
	return append(list, flying{p.now + late, append([]byte(nil), b...)})
}

func (p *pair) deliver(list []flying, to func([]byte)) (rest []flying) {
	for _, f := range list {
		if f.due > p.now {
			rest = append(rest, f)
		} else {
			to(f.bytes)
		}
	}
	return rest
}

func (p *pair) time() time.Duration { return time.Duration(p.now) * tick }

func (p *pair) run(ticks int, in wire.Input) {
	for range ticks {
		p.back = p.deliver(p.back, func(b []byte) { p.client.Handle(b, p.time()) })
		if packet := p.client.Tick(p.time(), in); packet != nil {
			p.toServer = p.send(p.toServer, packet)
		}
		p.toServer = p.deliver(p.toServer, func(b []byte) { p.server.Handle(p.address, b) })
		p.server.Play()
		p.now++
	}
}

var east = wire.Input{Flags: uint8(game.Walk)}

func TestJoinsAndWalks(t *testing.T) {
	p := newPair(t, client.Options{Name: "anna", Room: -1})
	p.run(10, east)
	require.Equal(t, client.Playing, p.client.Phase())
	assert.Equal(t, "MAP01", p.client.Map())
	assert.Equal(t, uint8(1), p.client.Player())
	x := p.client.View().Self.X
	p.run(20, east)
	assert.Greater(t, p.client.View().Self.X, x)
	assert.NotEmpty(t, p.client.View().Shown())
	assert.Zero(t, p.client.WrongStates+p.client.Baseless+p.client.Dropped)
	assert.Greater(t, p.client.States, uint64(20))
	p.server.Handle(p.address, p.client.Leave())
	assert.Equal(t, 1, p.server.Left)
	assert.Equal(t, client.Left, p.client.Phase())
	assert.Nil(t, p.client.Tick(p.time(), east))
}

// On any network the lead settles so that inputs come just in time, or little earlier.
func TestLeadFollowsTheWay(t *testing.T) {
	for _, c := range []struct {
		delay int
		loss  uint64
		late  int // inputs of 700, at most
	}{{0, 0, 0}, {1, 2, 0}, {3, 5, 7}, {9, 2, 7}} {
		p := newPair(t, client.Options{Room: -1})
		p.delay, p.loss = c.delay, c.loss
		p.run(350, east)
		require.Equal(t, client.Playing, p.client.Phase())
		late, came := p.server.Late, p.server.Inputs
		p.run(700, east)
		assert.LessOrEqual(t, p.server.Late-late, c.late, "delay %d", c.delay)
		assert.InDelta(t, 700, p.server.Inputs-came, 20, "delay %d", c.delay)
		assert.LessOrEqual(t, int(p.client.View().Early), 2+2*c.delay, "delay %d", c.delay)
		p.delay = c.delay + 4
		p.run(350, east)
		late = p.server.Late
		p.run(350, east)
		assert.LessOrEqual(t, p.server.Late-late, 20, "longer than %d", c.delay)
		assert.Zero(t, p.client.WrongStates+p.client.Losses)
	}
}

// A state with a wrong hash is counted, and the view before it stays.
func TestWrongStatesAreCounted(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.run(20, east)
	before := p.client.View().Tick
	p.server.Wrong = true
	p.run(20, east)
	assert.Equal(t, uint64(20), p.client.WrongStates+1, "the last is on its way")
	assert.Equal(t, before, p.client.View().Tick-1, "one was on its way")
}

func TestRefusedKnocksOnceASecond(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.server.Places = 0
	p.run(351, east)
	assert.Equal(t, client.Refused, p.client.Phase())
	assert.Equal(t, wire.ServerFull, p.client.Refusal().Reason)
	assert.InDelta(t, 10, p.client.Refusals, 1)
	p.server.Places = 1
	p.run(40, east)
	assert.Equal(t, client.Playing, p.client.Phase())
}

// After five silent seconds the client asks for its old session, from the same address or another.
func TestLostGoesOn(t *testing.T) {
	for _, moved := range []bool{false, true} {
		p := newPair(t, client.Options{Room: -1})
		p.run(50, east)
		session := p.client.View().Sequence
		p.cut = true
		p.run(5*35, east)
		assert.Equal(t, client.Playing, p.client.Phase())
		p.run(2, east)
		assert.Equal(t, client.Lost, p.client.Phase())
		p.cut = false
		if moved {
			p.address = "elsewhere"
		}
		p.run(50, east)
		assert.Equal(t, client.Playing, p.client.Phase())
		assert.Equal(t, 1, p.server.Joined)
		assert.Positive(t, p.server.Proven)
		assert.Greater(t, p.client.View().Sequence, session+5*35, "sequences went on")
		assert.Equal(t, uint64(1), p.client.Losses)
	}
}

// A server that was started again has no sessions, so the client gets a new session.
func TestServerForgets(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.run(50, east)
	p.server.Drop()
	p.run(6*35, east)
	assert.Equal(t, client.Playing, p.client.Phase())
	assert.Equal(t, 2, p.server.Joined)
	assert.Zero(t, p.client.WrongStates)
}

// With the next map, ticks begin at 0. A watcher gets the map's name from the notice, or asks.
func TestNextMap(t *testing.T) {
	for _, notice := range []bool{false, true} {
		p := newPair(t, client.Options{Room: -1, Watch: true})
		p.run(50, east)
		assert.Equal(t, uint8(wire.Watcher), p.client.Player())
		assert.Zero(t, p.server.Inputs)
		if notice {
			p.server.Notice(wire.NoticePacket{Reason: wire.NextMap, Epoch: 1,
				Map: wire.MakeMapName("MAP02")})
		}
		p.server.Next("MAP02")
		p.run(3, east)
		assert.Equal(t, notice, p.client.Map() == "MAP02")
		p.run(40, east)
		assert.Equal(t, "MAP02", p.client.Map())
		assert.Equal(t, uint32(42), p.client.View().Tick)
		assert.Equal(t, client.Playing, p.client.Phase())
	}
	p := newPair(t, client.Options{Room: -1})
	p.run(50, east)
	p.server.Next("MAP02")
	p.run(50, east)
	late := p.server.Late
	p.run(50, east)
	assert.Equal(t, late, p.server.Late, "a player's inputs are of the new epoch, and in time")
	assert.Zero(t, p.server.Dropped[wire.Replayed])
}

func TestNotices(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.run(10, east)
	p.server.Notice(wire.NoticePacket{Reason: wire.Closing, Seconds: 9})
	p.run(2, east)
	seconds, closing := p.client.Closing()
	assert.True(t, closing)
	assert.Equal(t, uint32(9), seconds)
	p.server.Notice(wire.NoticePacket{Reason: wire.TimedOut})
	p.server.Drop()
	p.run(2, east)
	assert.Equal(t, uint64(1), p.client.Losses)
	p.run(40, east)
	assert.Equal(t, client.Playing, p.client.Phase())
}

// Repeated, foreign and broken packets are dropped, and change nothing.
func TestForeignPacketsAreDropped(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.run(20, east)
	p.client.Handle(nil, p.time())
	p.client.Handle(make([]byte, 1500), p.time())
	require.NotEmpty(t, p.back)
	state := p.back[0].bytes
	for at := range state { // the MAC covers each bit
		state[at] ^= 1
		p.client.Handle(state, p.time())
		state[at] ^= 1
	}
	assert.Equal(t, uint64(2+len(state)), p.client.Dropped)
	states := p.client.States
	p.client.Handle(state, p.time())
	p.client.Handle(state, p.time())
	assert.Equal(t, states+1, p.client.States)
	assert.Equal(t, uint64(3+len(state)), p.client.Dropped)
}

func TestPlayingAllocatesNothing(t *testing.T) {
	p := newPair(t, client.Options{Room: -1})
	p.run(50, east)
	var states [][]byte
	for range 101 {
		p.server.Play()
		states = append(states, p.back[len(p.back)-1].bytes)
	}
	next := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		p.client.Handle(states[next], p.time())
		p.client.Tick(p.time(), east)
		next++
	}))
	assert.Zero(t, p.client.Dropped)
}

// No packets, in any order, cause a panic or a wrong state.
func FuzzClient(f *testing.F) {
	f.Add([]byte{8, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newPair(t, client.Options{Room: -1})
		for range 20 {
			if len(data) <= 2 {
				break
			}
			n := min(int(data[0])<<2, len(data)-1)
			p.client.Handle(data[1:1+n], p.time())
			data = data[1+n:]
			p.run(3, east)
			if len(p.back) > 0 { // a packet that is nearly right
				b := append([]byte(nil), p.back[0].bytes...)
				b[n%len(b)] ^= byte(n)
				p.client.Handle(b, p.time())
			}
		}
		p.run(10, east)
		assert.Zero(t, p.client.WrongStates)
	})
}
