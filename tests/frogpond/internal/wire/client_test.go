package wire_test

import (
	"encoding/json"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// field is a server of one player. It plays a tick for each packet of inputs, so it needs no clock.
type field struct {
	socket   *net.UDPConn
	mac      wire.Mac
	cookies  wire.Cookies
	key      wire.Key
	views    wire.Ring
	window   wire.Window
	player   netip.AddrPort
	sent     uint32
	tick     uint32
	newest   uint32
	early    int8
	inputs   map[uint32]wire.Input
	x        int32
	wrong    uint32 // the tick whose state gets a wrong hash
	refuse   bool   // refuse the first Join
	problems []string
	left     int
}

const (
	fieldTicks = 150
	fieldMap   = 75 // the tick at which the map changes
	session    = 77
)

// serve answers until the client has left, and returns the client's faults.
func (f *field) serve() []string {
	buffer := make([]byte, 2048)
	for f.left == 0 {
		n, from, err := f.socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return append(f.problems, err.Error())
		}
		if r := f.handle(buffer[:n], from); r != 0 {
			f.problems = append(f.problems, r.String())
		}
	}
	return f.problems
}

func (f *field) handle(p []byte, from netip.AddrPort) wire.Reason {
	address, _ := from.MarshalBinary()
	kind, r := wire.KindOf(p)
	switch {
	case r != 0:
		return r
	case kind == wire.Hello:
		nonce, r := wire.ParseHello(p)
		f.send(from, wire.AppendChallenge(nil, nonce, f.cookies.Make(&f.mac, address, nonce, 100)))
		return r
	case kind == wire.Join:
		j, r := wire.ParseJoin(p)
		if r != 0 || !f.cookies.Check(&f.mac, address, j.Nonce, 100, j.Cookie) {
			return max(r, wire.BadCookie)
		}
		return f.join(&j, from)
	}
	h, r := wire.ParseHeader(p)
	if r != 0 || h.Session != session || !f.mac.Open(&f.key, p) || !f.window.Take(h.Sequence) {
		return max(r, wire.BadSession)
	}
	if kind == wire.Leave {
		f.left++
		return wire.ParseLeave(p)
	}
	in, r := wire.ParseInputs(p)
	if r == 0 {
		f.play(&in)
	}
	return r
}

func (f *field) join(j *wire.JoinPacket, from netip.AddrPort) wire.Reason {
	if f.refuse {
		f.refuse = false
		f.send(from, wire.AppendRefuse(nil, &wire.RefusePacket{Nonce: j.Nonce, RetryAfter: 1,
			Reason: wire.ServerFull}))
		return 0
	}
	f.key, f.player = f.cookies.SessionKey(&f.mac, session, j.Nonce, j.Cookie), from
	f.send(from, wire.AppendAccept(nil, &wire.AcceptPacket{Nonce: j.Nonce, Key: f.key, Session: session,
		Tick: f.tick, Epoch: 255, TickRate: 250, Map: wire.MakeMapName("MAP01")}))
	return 0
}

// play handles inputs, plays a tick, and sends the state. It drops each ninth state.
func (f *field) play(in *wire.InputsPacket) {
	epoch := uint8(255)
	if f.tick++; f.tick > fieldMap {
		epoch = 0
	}
	if f.tick == fieldMap+1 {
		f.inputs, f.early, f.newest = map[uint32]wire.Input{}, wire.NoInput, 0
	}
	roomTick := f.tick % (fieldMap + 1)
	if in.Epoch == epoch {
		for i := range uint32(in.Count) {
			f.inputs[in.Tick-i] = in.Inputs[i]
		}
		if in.Tick > f.newest {
			f.newest, f.early = in.Tick, int8(int32(in.Tick)-int32(roomTick))
		}
	}
	if f.inputs[roomTick].Flags == 1 {
		f.x += 8 << 16
	}
	if f.tick == fieldTicks {
		f.say(wire.AppendNotice(f.begin(wire.Notice), &wire.NoticePacket{Reason: wire.Closing}))
		return
	}
	packet := f.begin(wire.State)
	v := f.views.At(f.sent)
	*v = wire.View{Sequence: f.sent, Tick: roomTick, Epoch: epoch, Self: wire.Self{X: f.x}}
	for i := range uint16(40) {
		if r := f.tick * uint32(i+1) % 7; r < 5 {
			v.Things[v.Count] = wire.Thing{Kind: 1 + uint8(i/20), Number: i, X: int16(f.tick * 40),
				Y: int16(f.tick*r) - 100, Heading: uint8(r)}
			v.Count++
		}
	}
	packet, _ = wire.AppendState(packet, 400, v, f.views.Base(in.Ack, f.sent), f.early, 0)
	if f.tick == f.wrong {
		packet[wire.Header+12]++
	}
	if f.tick%9 != 0 {
		f.say(packet)
	}
}

func (f *field) begin(kind wire.Kind) []byte {
	f.sent++
	return wire.AppendHeader(make([]byte, 0, wire.PacketMost), kind, session, f.sent)
}

func (f *field) say(p []byte) {
	f.mac.Seal(&f.key, p)
	f.send(f.player, p)
}

func (f *field) send(to netip.AddrPort, p []byte) { f.socket.WriteToUDPAddrPort(p, to) }

// TestPythonClient: testdata/client.py, written from PROTOCOL.md, plays on this server. The second
// time it must report one wrong hash.
func TestPythonClient(t *testing.T) {
	step.Needs(t, step.Check)
	python, err := exec.LookPath("python3")
	if err != nil {
		step.Lacks(t, "python3", "python3")
	}
	step.Machine(t, step.Loopback())
	for _, wrong := range []uint32{0, 50} {
		socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		f := &field{socket: socket, cookies: wire.MakeCookies(wire.Key{1}), early: wire.NoInput,
			inputs: map[uint32]wire.Input{}, wrong: wrong, refuse: wrong == 0}
		problems := make(chan []string, 1)
		require.NoError(t, socket.SetDeadline(time.Now().Add(5*time.Minute)))
		go func() { problems <- f.serve() }()
		text, err := exec.Command(python, "../../testdata/client.py", socket.LocalAddr().String(), "60").Output()
		require.NoError(t, err, string(text))
		assert.Empty(t, <-problems)
		socket.Close()
		var said struct{ Joined, Refused, States, Wrong, Moved int }
		require.NoError(t, json.Unmarshal(text, &said))
		assert.Equal(t, 1, said.Joined)
		assert.Equal(t, wrong != 0, said.Wrong == 1, "%+v", said)
		assert.Equal(t, wrong == 0, said.Refused == 1)
		assert.Greater(t, said.States, fieldTicks/2, "%+v", said)
		assert.Greater(t, said.Moved, 8*fieldTicks/4, "%+v", said)
	}
}
