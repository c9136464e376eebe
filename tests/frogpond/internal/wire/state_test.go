package wire

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pond is a world in which things come, move and go, with the server's and the client's views.
type pond struct {
	random         *rand.Rand
	things         []Thing
	server, client Ring
	seen, acked    uint32 // the newest that the client decoded, and that it acknowledged
	sent           [][]byte
	waits          map[uint32]wait
	base           uint32 // of the last state
	refused        int    // states that didn't fit
}

// wait counts the bases for which a thing kept its value, although another value was wanted.
type wait struct {
	since uint32
	new   bool
	bases int
}

// keys is the number of different things. patience is the most bases that a thing waits: all new
// things come in turn, and for each a place must become free.
const (
	keys     = 150
	patience = 2*keys + 2*Things
)

func newPond(seed uint64) *pond {
	return &pond{random: rand.New(rand.NewPCG(seed, 1)), waits: map[uint32]wait{}}
}

func (p *pond) live(churn int) {
	for range p.random.IntN(churn + 1) {
		t := Thing{Kind: uint8(1 + p.random.IntN(3)), Number: uint16(p.random.IntN(keys / 3))}
		at, found := slices.BinarySearchFunc(p.things, t, func(a, b Thing) int { return cmp.Compare(a.key(), b.key()) })
		switch {
		case !found && len(p.things) < Things:
			p.things = slices.Insert(p.things, at, t)
			fallthrough
		case found && p.random.IntN(4) != 0:
			step := 1 << p.random.IntN(16)
			p.things[at].X += int16(p.random.IntN(2*step) - step)
			p.things[at].Y += int16(p.random.IntN(2*step) - step)
			p.things[at].Heading = uint8(p.random.IntN(3))
		case found:
			p.things = slices.Delete(p.things, at, at+1)
		}
	}
}

func (p *pond) show(t require.TestingT, sequence uint32, most int) {
	want := p.server.At(sequence)
	*want = View{Sequence: sequence, Tick: sequence * 2, Self: exampleSelf()}
	want.Self.X += int32(sequence)
	want.Count = uint16(copy(want.Things[:], p.things))
	base := p.server.Base(p.acked, sequence)
	p.watch(t, base)
	packet := AppendHeader(make([]byte, 0, PacketMost), State, 1, sequence)
	packet, whole := AppendState(packet, most, want, base, NoInput, 0)
	if len(packet) > most {
		require.Fail(t, "a packet is too long", "%d of %d", len(packet), most)
	}
	asked := View{Count: uint16(len(p.things))}
	copy(asked.Things[:], p.things)
	if whole != sameThings(&asked, want) {
		require.Fail(t, "whole is not what it is", "%v", whole)
	}
	if !whole {
		p.refused++
	}
	p.sent = append(p.sent, packet)
}

// deliver delivers packets to the client, some late, repeated or lost, and the ack to the server.
func (p *pond) deliver(t require.TestingT, loss int) {
	for len(p.sent) > 0 && p.random.IntN(100) >= loss/2 {
		at := p.random.IntN(min(len(p.sent), 1+loss/10))
		packet := p.sent[at]
		if p.random.IntN(100) >= loss/4 { // else it is repeated
			p.sent = slices.Delete(p.sent, at, at+1)
		}
		if p.random.IntN(100) < loss {
			continue
		}
		v, r := ParseState(packet, &p.client)
		if r != 0 {
			require.Contains(t, []Reason{Replayed, NoBase}, r, r.String())
			require.NotZero(t, loss)
			continue
		}
		requireSame(t, p.server.Find(v.Sequence), v)
		p.seen = max(p.seen, v.Sequence)
	}
	if p.random.IntN(100) >= loss {
		p.acked = p.seen
	}
}

// watch counts, with each new base, the bases that each thing has waited. A thing that is gone, or
// is as wanted, doesn't wait.
func (p *pond) watch(t require.TestingT, base *View) {
	if base == nil { // the client begins again
		clear(p.waits)
		p.base = 0
		return
	}
	if base.Sequence == p.base {
		return
	}
	p.base = base.Sequence
	next := map[uint32]wait{}
	note := func(from, to *Thing) {
		w := wait{new: from == nil}
		key := uint32(0)
		if from != nil {
			w.since, key = from.Since, from.key()
		} else {
			key = to.key()
		}
		if last, found := p.waits[key]; found && last.new == w.new && last.since == w.since {
			w.bases = last.bases + 1
		}
		if w.bases > patience {
			require.Fail(t, "a thing waits for ever", "%x", key)
		}
		next[key] = w
	}
	var list [2 * Things]pair
	want := View{Count: uint16(len(p.things))}
	copy(want.Things[:], p.things)
	for _, pair := range list[:pairs(&list, &want, base)] {
		if !pair.done {
			note(pair.from, pair.to)
		}
	}
	p.waits = next
}

func sameThings(a, b *View) bool {
	return slices.EqualFunc(a.Shown(), b.Shown(), func(a, b Thing) bool {
		a.Since, b.Since = 0, 0
		return a == b
	})
}

// requireSame compares the parts of two views that a client gets.
func requireSame(t require.TestingT, server, client *View) {
	require.NotNil(t, server)
	s, c := *server, *client
	s.Things, c.Things = [Things]Thing{}, [Things]Thing{}
	s.Cursor, c.Cursor = 0, 0
	if s != c || !sameThings(server, client) {
		require.Equal(t, server, client)
	}
}

// FuzzViews: things come, move and go. States and acks get lost, late and repeated, and states are
// small. The client has the view that the server expects, and no thing waits for ever.
func FuzzViews(f *testing.F) {
	f.Add(uint64(1), uint16(PacketMost), uint8(0), uint8(20), uint16(200))
	f.Add(uint64(2), uint16(300), uint8(5), uint8(90), uint16(500))
	f.Add(uint64(3), uint16(0), uint8(0), uint8(255), uint16(500))
	f.Add(uint64(4), uint16(200), uint8(40), uint8(40), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, most uint16, loss, churn uint8, ticks uint16) {
		p := newPond(seed)
		limit := max(StateLeast, min(int(most), PacketMost))
		for tick := range min(uint32(ticks), 500) {
			p.live(int(churn))
			p.show(t, tick+1, limit)
			p.deliver(t, min(int(loss), 60))
		}
	})
}

// TestNothingWaits: packets have room for one change, and new things come all the time.
func TestNothingWaits(t *testing.T) {
	p := newPond(5)
	for tick := range uint32(3000) {
		p.live(100)
		p.show(t, tick+1, StateLeast)
		p.deliver(t, 0)
	}
	assert.Greater(t, p.refused, 2000)
}

// TestNewThingsTakeTurns: other things come and go all the time, with keys before that of the last
// thing, which gets a turn.
func TestNewThingsTakeTurns(t *testing.T) {
	p, last := newPond(7), Thing{Kind: 9}
	for tick := range uint32(2*Things + patience) {
		p.things = p.things[:0]
		for i := range keys {
			if len(p.things) < Things-1 && p.random.IntN(2) == 0 {
				p.things = append(p.things, Thing{Kind: 1, Number: uint16(i)})
			}
		}
		if tick >= 2*Things { // when the view is full
			p.things = append(p.things, last)
		}
		p.show(t, tick+1, StateLeast)
		p.deliver(t, 0)
		if shown := p.client.Find(p.seen).Shown(); len(shown) > 0 && shown[len(shown)-1] == last {
			return
		}
	}
	t.Error("it never came")
}

// TestWhatGoesMakesRoom: a removal makes room for a new thing in the same packet.
func TestWhatGoesMakesRoom(t *testing.T) {
	base, want := crowd()
	for i := range want.Shown() {
		want.Things[i].Kind = 3
	}
	packet, whole := AppendState(AppendHeader(make([]byte, 0, 400), State, 1, 2), PacketMost, &want, &base, 0, 0)
	assert.False(t, whole)
	assert.LessOrEqual(t, len(packet), 400, "nor more than there is room for")
	assert.Equal(t, uint8(3), want.Things[want.Count-1].Kind)
}

// TestAWrongBaseIsTold: a client with another base than the server's, or without the base, returns
// an error.
func TestAWrongBaseIsTold(t *testing.T) {
	p := newPond(6)
	for tick := range uint32(2) {
		p.live(60)
		p.show(t, tick+1, PacketMost)
		p.deliver(t, 0)
	}
	p.live(5)
	p.show(t, 3, PacketMost)
	packet := p.sent[0]
	client := p.client
	client.At(2).Things[0].X++
	_, r := ParseState(packet, &client)
	assert.Equal(t, WrongHash, r)
	assert.Nil(t, client.Find(3))

	client = p.client
	client.Clear()
	_, r = ParseState(packet, &client)
	assert.Equal(t, NoBase, r)

	client = p.client
	v, r := ParseState(packet, &client)
	require.Zero(t, r)
	assert.Equal(t, v, client.Find(3))
	_, r = ParseState(packet, &client)
	assert.Equal(t, Replayed, r)
}

func TestRing(t *testing.T) {
	var r Ring
	r.At(5).Sequence = 5
	assert.Equal(t, r.At(5), r.Base(5, 5+Views-1))
	assert.Nil(t, r.Base(5, 5+Views), "its place is taken by the new one")
	assert.Nil(t, r.Base(5, 5))
	assert.Nil(t, r.Base(0, 6))
	assert.Nil(t, r.Find(5+Views))

	base, want := crowd()
	for _, wrong := range []func(){func() { base.Sequence = 0 }, func() { base.Sequence = 2 },
		func() { base.Sequence = 1; want.Sequence = 1 + Views }, func() { want.Sequence = 2; want.Epoch++ }} {
		wrong()
		packet := AppendHeader(make([]byte, 0, PacketMost), State, 1, want.Sequence)
		packet, _ = AppendState(packet, PacketMost, &want, &base, 0, 0)
		assert.Zero(t, binary.LittleEndian.Uint32(packet[Header+8:]), "no base of a State")
	}
}

// TestHashIsCRC32 computes the hash from the bytes.
func TestHashIsCRC32(t *testing.T) {
	v := someView(1, 200)
	v.Tick, v.Self = 1<<31+5, exampleSelf()
	b, err := binary.Append([]byte{v.Epoch, 0, 0, 0}, binary.LittleEndian, v.Tick)
	require.NoError(t, err)
	b, err = binary.Append(b, binary.LittleEndian, v.Self)
	require.NoError(t, err)
	for _, s := range v.Shown() {
		b = binary.LittleEndian.AppendUint16(append(b, s.Kind), s.Number)
		b = append(b, s.Heading)
		b = binary.LittleEndian.AppendUint16(b, uint16(s.X))
		b = binary.LittleEndian.AppendUint16(b, uint16(s.Y))
	}
	assert.Equal(t, crc32.ChecksumIEEE(b), v.Hash())
}

// crowd returns two views of 64 things each. Most things move a little.
func crowd() (base, want View) {
	base, want = View{Sequence: 1, Tick: 1, Count: Things}, View{Sequence: 2, Tick: 2, Count: Things}
	for i := range Things {
		base.Things[i] = Thing{Kind: 2, Number: uint16(7 * i), X: int16(i), Since: uint32(i % 5)}
		want.Things[i] = base.Things[i]
		want.Things[i].X += int16(i % 4 * 40)
	}
	return base, want
}

// TestNoAllocation: no function of this package allocates.
func TestNoAllocation(t *testing.T) {
	all := example()
	m, k, c, w, ring := new(Mac), new(Key), MakeCookies(Key{1}), new(Window), new(Ring)
	b, address := make([]byte, 0, PacketMost), make([]byte, 18)
	base, want := crowd()
	sequence := uint32(0)
	allocs := testing.AllocsPerRun(100, func() {
		sequence++
		for _, kind := range [...]Kind{Hello, Challenge, Join, Accept, Refuse, Inputs, State, Leave, Notice} {
			p := all[kind]
			switch kind {
			case Hello:
				n, _ := ParseHello(p)
				b = AppendHello(b[:0], n)
			case Challenge:
				n, cookie, _ := ParseChallenge(p)
				b = AppendChallenge(b[:0], n, cookie)
			case Join:
				j, _ := ParseJoin(p)
				b = AppendJoin(b[:0], &j)
				m.Proves(k, b)
				c.Check(m, address, j.Nonce, sequence, c.Make(m, address, j.Nonce, sequence))
				c.SessionKey(m, sequence, j.Nonce, j.Cookie)
			case Accept:
				a, _ := ParseAccept(p)
				b = AppendAccept(b[:0], &a)
			case Refuse:
				f, _ := ParseRefuse(p)
				b = AppendRefuse(b[:0], &f)
			case Inputs:
				in, _ := ParseInputs(p)
				b = AppendInputs(AppendHeader(b[:0], Inputs, 1, sequence), &in)
			case Notice:
				n, _ := ParseNotice(p)
				b = AppendNotice(AppendHeader(b[:0], Notice, 1, sequence), &n)
			case Leave:
				b = AppendLeave(b[:0], 1, sequence)
			}
		}
		for _, most := range [...]int{PacketMost, 200} {
			v := ring.At(sequence)
			*v = want
			v.Sequence = sequence
			from := ring.Base(sequence-1, sequence)
			b, _ = AppendState(AppendHeader(b[:0], State, 1, sequence), most, v, from, 0, 0)
			m.Seal(k, b)
			if !m.Open(k, b) || !w.Take(sequence) {
				panic("its own")
			}
			v.Sequence = 0
			if _, r := ParseState(b, ring); r != 0 {
				panic(r.String())
			}
			*ring.At(sequence) = base
			ring.At(sequence).Sequence = sequence
			sequence++
		}
	})
	assert.Zero(t, allocs)
}

func BenchmarkAppendState(b *testing.B) {
	base, want := crowd()
	packet := AppendHeader(make([]byte, 0, PacketMost), State, 1, 2)
	for _, most := range []int{PacketMost, 300} {
		b.Run(map[bool]string{true: "whole", false: "part"}[most == PacketMost], func(b *testing.B) {
			for b.Loop() {
				v := want
				AppendState(packet, most, &v, &base, 0, 0)
			}
		})
	}
}

func BenchmarkParseState(b *testing.B) {
	base, want := crowd()
	ring := new(Ring)
	*ring.At(1) = base
	packet, _ := AppendState(AppendHeader(make([]byte, 0, PacketMost), State, 1, 2), PacketMost, &want, &base, 0, 0)
	for b.Loop() {
		ring.At(2).Sequence = 0
		ParseState(packet, ring)
	}
}

func BenchmarkSeal(b *testing.B) {
	m, k, p := new(Mac), new(Key), make([]byte, 300)
	for b.Loop() {
		m.Seal(k, p)
	}
}
