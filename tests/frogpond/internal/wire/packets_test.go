package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func example() map[Kind][]byte {
	m, key := new(Mac), Key{1, 2, 3}
	cookie := Cookie{0: 7, 15: 9}
	name, hall := MakeName("Ada Frog"), MakeMapName("E1M1")
	view := View{Sequence: 3, Tick: 70, Epoch: 1, Count: 2, Self: exampleSelf()}
	view.Things[0] = Thing{Kind: 1, Number: 2, X: -64, Y: 300, Heading: 4}
	view.Things[1] = Thing{Kind: 2, Number: 500, X: 1000, Y: -1000, Heading: 15}
	sealed := func(p []byte) []byte { m.Seal(&key, p); return p }
	begin := func(k Kind) []byte { return AppendHeader(make([]byte, 0, PacketMost), k, 0x01020304, 3) }
	state, _ := AppendState(begin(State), PacketMost, &view, nil, -2, NotHere)
	return map[Kind][]byte{
		Hello:     AppendHello(nil, 0x1122334455667788),
		Challenge: AppendChallenge(nil, 5, cookie),
		Join: AppendJoin(nil, &JoinPacket{Nonce: 5, Cookie: cookie, Name: name, Old: 9, Room: AnyRoom,
			Flags: Watch, Proof: [8]byte{1}}),
		Accept: AppendAccept(nil, &AcceptPacket{Nonce: 5, Key: key, Map: hall, Session: 9, Tick: 70,
			Room: 1, Player: 2, Epoch: 3, Rollback: 8, TickRate: 35}),
		Refuse: AppendRefuse(nil, &RefusePacket{Nonce: 5, Players: 16, Places: 16, Rooms: 1,
			RetryAfter: 1000, Reason: ServerFull}),
		Inputs: sealed(AppendInputs(begin(Inputs), &InputsPacket{Ack: 2, Tick: 70, Epoch: 1, Count: 2,
			Inputs: [InputsMost]Input{{X: -1, Y: 2, Heading: 3, Flags: 1}, {Heading: 4, Flags: 4}}})),
		State: sealed(state),
		Leave: sealed(AppendLeave(nil, 9, 3)),
		Notice: sealed(AppendNotice(begin(Notice), &NoticePacket{Seconds: 8, Reason: NextMap, Epoch: 2,
			Map: hall})),
	}
}

func exampleSelf() Self {
	return Self{X: -64 << 16, Y: 300<<16 + 1, Heading: 4, Health: 98, Caught: 12, Deaths: 1, Exits: 2,
		Keys: 3, Frogs: 500}
}

// again parses a packet, and returns the result appended again, with the packet's MAC.
func again(p []byte) (q []byte, r Reason) {
	kind, r := KindOf(p)
	if r != 0 {
		return nil, r
	}
	if kind >= Inputs {
		h, _ := ParseHeader(p)
		q = append(AppendHeader(nil, h.Kind, h.Session, h.Sequence)[:macAt], p[macAt:min(Header, len(p))]...)
	}
	switch kind {
	case Hello:
		nonce, r := ParseHello(p)
		return AppendHello(q, nonce), r
	case Challenge:
		nonce, cookie, r := ParseChallenge(p)
		return AppendChallenge(q, nonce, cookie), r
	case Join:
		j, r := ParseJoin(p)
		return AppendJoin(q, &j), r
	case Accept:
		a, r := ParseAccept(p)
		return AppendAccept(q, &a), r
	case Refuse:
		f, r := ParseRefuse(p)
		return AppendRefuse(q, &f), r
	case Inputs:
		in, r := ParseInputs(p)
		return AppendInputs(q, &in), r
	case Leave:
		return q, ParseLeave(p)
	case Notice:
		n, r := ParseNotice(p)
		return AppendNotice(q, &n), r
	}
	v, r := ParseState(p, new(Ring))
	if r != 0 {
		return nil, r
	}
	q, _ = AppendState(append(make([]byte, 0, PacketMost), q...), PacketMost, v, nil, v.Early, v.Flags)
	return q, r
}

// TestPackets: a packet that is parsed and appended again is the same. A byte less or more, another
// kind, and each bit of a reserved byte are refused.
func TestPackets(t *testing.T) {
	sizes := map[Kind]int{Hello: HelloSize, Challenge: ChallengeSize, Join: JoinSize,
		Accept: AcceptSize, Refuse: RefuseSize, Leave: LeaveSize, Notice: NoticeSize}
	for kind, p := range example() {
		if size, one := sizes[kind]; one {
			assert.Len(t, p, size, "%d", kind)
		}
		q, r := again(p)
		require.Zero(t, r, "%d: %s", kind, r)
		require.Equal(t, p, q, "%d", kind)
		for _, wrong := range [][]byte{p[:len(p)-1], append(p[:len(p):len(p)], 0), p[:1], nil} {
			_, r := again(wrong)
			assert.Equal(t, Short, r, "%d of %d bytes", kind, len(wrong))
		}
		for bit := range 8 * len(p) {
			p[bit/8] ^= 1 << (bit % 8)
			if q, r := again(p); r == 0 {
				assert.Equal(t, p, q, "%d, bit %d", kind, bit)
			}
			p[bit/8] ^= 1 << (bit % 8)
		}
	}
	assert.GreaterOrEqual(t, HelloSize, max(ChallengeSize, RefuseSize))
	assert.GreaterOrEqual(t, JoinSize, max(AcceptSize, RefuseSize))
}

// TestRefused: parsers check more than sizes.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		kind   Kind
		at     int
		value  byte
		reason Reason
	}{
		{Hello, 1, 2, BadVersion}, {Join, 1, 2, BadVersion}, {Hello, 63, 1, Short}, {Hello, 0, 10, BadKind},
		{Join, 3, 2, Short}, {Join, 28, '\n', Short}, {Join, 28, 0xff, Short}, {Join, 28, 0, Short},
		{Accept, 56, 0x1b, Short}, {Refuse, 2, 0, Short}, {Refuse, 2, 200, Short},
		{Inputs, Header + 5, 9, Short}, {Inputs, Header + 5, 3, Short}, {Inputs, Header + 8, 0, Short},
		{Inputs, 8, 0, Short}, {Leave, 1, 1, Short}, {Notice, Header, byte(TimedOut), Short},
		{State, Header + thingsAt, 1, Short}, {State, Header + hashAt, 0, WrongHash},
		{State, Header + 2, 2, Short}, {State, Header + 8, 1, NoBase}, {State, Header + 8, 3, NoBase},
		{State, Header + stateHead, 0, Short}, {State, Header + stateHead, 3, Short},
		{State, Header + stateHead + 3, 31, Short}, {State, Header + stateHead + 3, 0, Short},
	} {
		p := example()[test.kind]
		p[test.at] = test.value
		_, r := again(p)
		assert.Equal(t, test.reason, r, "%+v", test)
	}
	f, r := ParseRefuse(func() []byte { p := example()[Refuse]; p[1] = 7; return p }())
	assert.Equal(t, BadVersion, r)
	assert.Equal(t, uint64(5), f.Nonce, "a client of another version is told so")
	nonce, r := ParseHello(func() []byte { p := example()[Hello]; p[1] = 7; return p }())
	assert.Equal(t, BadVersion, r)
	assert.Equal(t, uint64(0x1122334455667788), nonce)
	in := InputsPacket{Tick: 1, Count: InputsMost}
	p := AppendInputs(AppendHeader(nil, Inputs, 1, 1), &in)
	in, r = ParseInputs(p)
	assert.Zero(t, r)
	assert.Equal(t, uint8(2), in.Count, "there is no tick before 0")
	for r := Reason(1); r < Reasons; r++ {
		assert.NotEmpty(t, r.String())
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"Ada": "Ada", "": "", "a\x1b[2Jb": "a[2Jb", "sixteen letters!": "sixteen letters!",
		"fifteen letter\u00e9": "fifteen letter\u00e9", "sixteen letters\u00e9": "sixteen letters",
		"\xff": "\ufffd",
	} {
		n := MakeName(text)
		assert.Equal(t, want, string(n.Text()))
		assert.True(t, n.valid(), "%q", text)
	}
	long := MakeMapName("EXTRALONG")
	assert.Equal(t, "EXTRALON", string(long.Text()))
}

// FuzzPackets parses any bytes. A packet that parses is the same when it is appended again. The
// fuzzer can't guess a hash, so a State gets the right hash.
func FuzzPackets(f *testing.F) {
	for _, p := range example() {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if q, r := again(p); r == 0 {
			require.Equal(t, p, q)
		}
		if h, r := ParseHeader(p); r != 0 || h.Kind != State || len(p) < Header+stateHead {
			return
		}
		p = append([]byte(nil), p...)
		var ring Ring
		sequence, base := binary.LittleEndian.Uint32(p[8:]), binary.LittleEndian.Uint32(p[Header+8:])
		old := someView(base, p[Header])
		*ring.At(base) = old
		v, r := ParseState(p, &ring)
		if r == WrongHash {
			binary.LittleEndian.PutUint32(p[Header+hashAt:], ring.At(sequence).Hash())
			v, r = ParseState(p, &ring)
			require.Zero(t, r)
		}
		if r != 0 {
			return
		}
		want := *v
		from := &old
		if base == 0 {
			from = nil
		}
		q, whole := AppendState(AppendHeader(make([]byte, 0, PacketMost), State, 1, sequence), PacketMost,
			&want, from, v.Early, v.Flags)
		require.True(t, whole)
		*ring.At(sequence) = View{}
		v, r = ParseState(q, &ring)
		require.Zero(t, r)
		requireSame(t, &want, v)
	})
}

// someView returns a view of 40 things.
func someView(sequence uint32, epoch uint8) View {
	v := View{Sequence: sequence, Epoch: epoch, Count: 40}
	for i := range v.Shown() {
		v.Things[i] = Thing{Kind: uint8(1 + i/16), Number: uint16(i % 16 * 3), X: int16(100 * i), Y: -32768,
			Heading: uint8(i)}
	}
	return v
}
