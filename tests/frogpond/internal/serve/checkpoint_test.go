//go:build linux

package serve

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// killed ends a server without a change of its checkpoints.
func (s *Server) killed(t testing.TB) {
	t.Helper()
	require.NoError(t, s.checkpoints.Close())
	s.checkpoints = nil
	s.close(t)
}

// plays lets a script play a tick of the first room. Its inputs depend only on the tick.
func (s *Server) plays() {
	tick := s.rooms[0].play.tick
	wants := func(place int, from uint32) {
		m := message{what: wants, tick: from, count: 3, epoch: s.rooms[0].play.epoch()}
		for i := range m.inputs {
			m.inputs[i] = wire.Input{Heading: uint8(from)*3 + uint8(5*place+i)&15, Flags: uint8(game.Walk)}
		}
		s.hears(place, m)
	}
	for place := range 3 {
		switch {
		case tick == 0:
			s.seat(place, fmt.Sprint("player ", place))
		case place < 2:
			wants(place, tick+uint32(4+place))
		case tick%20 >= 15: // late, and no restart shortly before
			wants(place, tick-1)
		}
	}
	switch tick {
	case 30:
		s.seat(3, "a guest")
	case 47:
		s.hears(3, message{what: leaves})
	}
	s.ticks(1)
}

// A room that goes on from its checkpoint is as one that was never interrupted.
func TestOutlives(t *testing.T) {
	name := filepath.Join(t.TempDir(), "place")
	kept := func(o *Options) { o.Checkpoints = name }
	s, twin := built(t, kept), built(t, nil)
	restarts := 0
	for tick := range uint32(100) {
		if tick%20 < 5 && tick > 1 {
			before := s.net.sessions
			seats := fmt.Sprint(s.rooms[0].seats)
			sessions := fmt.Sprint(before[0].id, before[1].id, before[2].id, before[3].id)
			s.killed(t)
			s = built(t, kept)
			restarts++
			after := s.net.sessions
			assert.Equal(t, sessions, fmt.Sprint(after[0].id, after[1].id, after[2].id, after[3].id), tick)
			assert.EqualValues(t, restarts, s.rooms[0].play.number)
			assert.NotEqual(t, seats, fmt.Sprint(s.rooms[0].seats), "sequences jumped")
			s.hears(2, message{what: wants, tick: tick - 1, count: 1, epoch: s.rooms[0].play.epoch(),
				inputs: [wire.InputsMost]wire.Input{{Heading: 7, Flags: uint8(game.Walk)}}})
		}
		require.Equal(t, tick, s.rooms[0].play.tick, "%s", s.o.Say)
		require.Equal(t, twin.rooms[0].play.game.Hash(), s.rooms[0].play.game.Hash(), "tick %d, after %d restarts",
			tick, restarts)
		require.Equal(t, twin.rooms[0].taken.Load(), s.rooms[0].taken.Load())
		require.Equal(t, twin.players(), s.players())
		s.plays()
		twin.plays()
	}
	assert.EqualValues(t, 1, s.workers[0].late, "inputs for a tick before the checkpoint are too late")
	assert.NotZero(t, s.workers[0].rollbacks)
	assert.EqualValues(t, 0, s.keeper.lost.Load())
	twin.close(t)
	s.close(t)
	files, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// hand is a player whose packets the test carries.
type hand struct {
	t      *testing.T
	client *client.Client
	conn   *net.UDPConn
	from   udp.Address
	tick   int
}

func newHand(t *testing.T, number int, watch bool) *hand {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	o := client.Options{Name: fmt.Sprint("hand ", number), Room: 0, Seed: uint64(number), Watch: watch}
	return &hand{t: t, conn: conn, from: udp.FromAddrPort(conn.LocalAddr().(*net.UDPAddr).AddrPort()),
		client: client.New(o)}
}

func (h *hand) now() time.Duration { return time.Duration(h.tick) * tickTime }

// play plays a tick of the player. Without a server its packets are lost.
func (h *hand) play(s *Server) {
	raw, err := h.conn.SyscallConn()
	require.NoError(h.t, err)
	buffer := make([]byte, 2000)
	require.NoError(h.t, raw.Read(func(fd uintptr) bool {
		for {
			n, _, err := syscall.Recvfrom(int(fd), buffer, syscall.MSG_DONTWAIT)
			if err != nil {
				return true
			}
			h.client.Handle(buffer[:n], h.now())
		}
	}))
	h.tick++
	packet := h.client.Tick(h.now(), wire.Input{Heading: uint8(h.tick / 10 & 15), Flags: uint8(game.Walk)})
	if packet == nil || s == nil {
		return
	}
	require.Zero(h.t, s.receiver.take(packet, &h.from, s.now()))
	if s.receiver.out.Len() > 0 {
		require.NoError(h.t, s.socket.Send(s.receiver.out))
	}
}

// Players of a killed server play on in the next one, without a join. Their inputs count again
// within 16 ticks. So it is if the last tick was sent, and the kill came before its checkpoint.
func TestOutlivesPlayers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "place")
	kept := func(o *Options) { o.Checkpoints, o.Every = name, 2 }
	var list []*hand
	for i := range 5 {
		list = append(list, newHand(t, i, i == 4))
	}
	all := func(s *Server, ticks int) {
		for range ticks {
			for _, h := range list {
				h.play(s)
			}
			if s != nil {
				s.ticks(1)
			}
		}
	}
	s := built(t, kept)
	all(s, 60)
	most := uint32(0)
	for round := range step.Pick(3, 10, 100) {
		isBehind := round%2 == 1
		all(s, 20+round%9)
		before, err := os.ReadFile(name)
		require.NoError(t, err)
		tick := s.rooms[0].play.tick
		if isBehind {
			all(s, 1)
		}
		secret := s.receiver.secret
		s.killed(t)
		if isBehind {
			file, err := os.OpenFile(name, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.Write(before)
			require.NoError(t, errors.Join(err, file.Close()))
		}
		all(nil, 20) // 0.6 s
		s = built(t, kept)
		require.Equal(t, tick, s.rooms[0].play.tick, "%s", s.o.Say)
		assert.Equal(t, secret, s.receiver.secret)
		epoch := s.rooms[0].play.epoch()
		counts := func() bool { // each player's own input for this tick, of the new epoch
			now, known := s.rooms[0].play.tick, &s.rooms[0].inputs.known
			for i, h := range list {
				seat := &s.rooms[0].seats[i]
				if seat.epoch != epoch || h.client.View().Epoch != epoch {
					return false
				}
				isEarly := seat.early != wire.NoInput && int32(seat.newest-now) >= 0 && known[now%window]>>i&1 == 1
				if i < 4 && !isEarly {
					return false
				}
			}
			return true
		}
		for !counts() {
			all(s, 1)
			require.LessOrEqual(t, s.rooms[0].play.tick, tick+16, "round %d", round)
		}
		most = max(most, s.rooms[0].play.tick-tick)
	}
	t.Logf("inputs count again after %d ticks at most", most)
	all(s, 20)
	for i, h := range list {
		c := h.client
		assert.Equal(t, client.Playing, c.Phase())
		assert.EqualValues(t, 1, c.Accepts, "hand %d", i)
		assert.Zero(t, c.Losses+c.WrongStates+c.RoomsEnded+c.Refusals+c.Dropped+c.Stale+c.Baseless)
		assert.Greater(t, c.View().Tick+4, s.rooms[0].play.tick)
	}
	assert.EqualValues(t, 0, s.receiver.joined.Load())
	assert.Equal(t, list[4].client.Map(), "MAP01", "the watcher knows the new epoch's map")

	// A cookie of the process before is good. A replayed packet isn't.
	s.receiver.origin -= time.Hour.Nanoseconds()
	all(s, 1)
	late := newHand(t, 9, true)
	late.play(s)
	late.play(nil) // its Join is lost
	s.killed(t)
	s = built(t, kept)
	for range 20 { // until it asks again
		late.play(s)
	}
	assert.EqualValues(t, 1, s.receiver.joined.Load())
	assert.Zero(t, s.receiver.dropped[wire.BadCookie].Load())
	for _, h := range list {
		packet := bytes.Clone(h.client.Tick(h.now(), wire.Input{}))
		require.Zero(t, s.receiver.take(packet, &h.from, s.now()))
		s.ticks(1)
		s.killed(t)
		s = built(t, kept)
		assert.Equal(t, wire.Replayed, s.receiver.take(packet, &h.from, s.now()))
	}
	s.killed(t)
}

// A known player whose messages fill its share of the inbox, as after a pause, gets no other place:
// its Join is dropped, and it asks again.
func TestOutlivesFlood(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	h := newHand(t, 1, false)
	for range 30 {
		h.play(s)
		s.ticks(1)
	}
	require.Equal(t, client.Playing, h.client.Phase())
	id := s.net.sessions[0].id
	for range waitingMost {
		s.wants(0, s.rooms[0].play.tick, 1)
	}
	r := s.receiver
	join := func(nonce wire.Nonce) wire.Reason {
		p := wire.AppendJoin(nil, &wire.JoinPacket{Nonce: nonce, Room: wire.AnyRoom, Old: id,
			Cookie: r.cookies.Make(&r.mac, h.from.Raw(), nonce, r.seconds(s.now()))})
		proof := r.mac.Proof(&s.net.sessions[0].key, p)
		copy(p[wire.ProofAt:], proof[:])
		return r.take(p, &h.from, s.now())
	}
	assert.Equal(t, wire.Flooded, join(77))
	assert.EqualValues(t, 1, s.players())
	s.ticks(1)
	assert.Zero(t, join(78))
	assert.EqualValues(t, 1, s.players())
	assert.EqualValues(t, 1, r.returned.Load())
}

// A hand-over obeys the messages that wait for a tick.
func TestOutlivesSettle(t *testing.T) {
	name := filepath.Join(t.TempDir(), "place")
	kept := func(o *Options) { o.Checkpoints = name }
	s := built(t, kept)
	s.seat(0, "waits")
	s.rooms[0].settle(s.workers[0])
	s.killed(t)
	s = built(t, kept)
	assert.EqualValues(t, 1, s.players())
	s.ticks(1)
	assert.NotNil(t, s.rooms[0].play.level.Player(0))
	s.killed(t)
}

// A map that ends because of a fault has no checkpoint. The next map of a room has one at once.
func TestOutlivesFault(t *testing.T) {
	name := filepath.Join(t.TempDir(), "place")
	s := built(t, func(o *Options) {
		o.Checkpoints, o.MapTime = name, time.Second
		require.NoError(t, o.Plant.Set("panic:0:20"))
	})
	own := func() *outlives {
		own, err := s.checkpoints.Own(0)
		require.NoError(t, err)
		k, err := s.readOutlives(s.rooms[0], own)
		require.NoError(t, err)
		return k
	}
	s.seat(0, "unlucky")
	s.ticks(20)
	assert.EqualValues(t, 20, own().tick)
	s.ticks(1)
	assert.EqualValues(t, 1, s.faults.Load())
	_, err := s.checkpoints.Own(0)
	assert.ErrorContains(t, err, "it is empty")
	next := func() {
		for range 4 { // all pending work
			s.ticks(1)
			s.keeper.writeLog(s.rooms[0])
			s.loader.look(s.rooms[0])
		}
	}
	next()
	assert.EqualValues(t, 0, own().tick)
	assert.EqualValues(t, 1, own().number)
	assert.Equal(t, "MAP02", string(own().title.Text()))
	s.seat(0, "lucky")
	s.ticks(36)
	next()
	assert.EqualValues(t, 2, own().number, "%s", s.o.Say)
	assert.Equal(t, "MAP03", string(own().title.Text()))
	assert.Zero(t, s.keeper.lost.Load())
	s.killed(t)
}

// Each checkpoint and file that can't be read is refused by name. The server goes on with the rooms
// that are whole.
func TestOutlivesRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "place")
	kept := func(o *Options) { o.Checkpoints, o.Rooms = name, 2 }
	s := built(t, kept)
	for place := range 3 {
		s.seat(place, fmt.Sprint("player ", place))
	}
	for range 10 {
		s.ticks(1)
		s.rooms[1].tick(s.workers[0], s.now())
	}
	want := []uint64{uint64(s.rooms[0].play.game.Hash()), uint64(s.rooms[1].play.game.Hash())}
	_, err := Run(t.Context(), s.o)
	assert.ErrorContains(t, err, fmt.Sprintf("-checkpoints: save: checkpoints %s", name))
	assert.ErrorContains(t, err, fmt.Sprintf("process %d has it", os.Getpid()))
	s.killed(t)
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	image := (len(good) - 4096) / 4
	own := func(file []byte, change func(k *outlives)) { // in both images of room 0
		for half := range 2 {
			k := new(outlives)
			copy(k.bytes(), file[4096+half*image+64:])
			change(k)
			copy(file[4096+half*image+64:], k.bytes())
		}
	}
	write := func(file []byte) {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.Write(file)
		require.NoError(t, errors.Join(err, f.Truncate(int64(len(file))), f.Close()))
	}
	for what, c := range map[string]struct {
		change func(file []byte) []byte
		says   string
		whole  int // rooms
	}{
		"whole":   {func(file []byte) []byte { return file }, "", 2},
		"cut":     {func(file []byte) []byte { return file[:len(file)-4096] }, "it is cut", 0},
		"short":   {func(file []byte) []byte { return file[:20] }, "it is cut", 0},
		"zeroed":  {func(file []byte) []byte { clear(file); return file }, "bytes are zeros", 0},
		"text":    {func([]byte) []byte { return bytes.Repeat([]byte("text"), 99) }, "isn't a file of checkpoints", 0},
		"version": {func(file []byte) []byte { file[7]++; return file }, "it has version", 0},
		"order":   {func(file []byte) []byte { file[8]++; return file }, "another byte order", 0},
		"plan":    {func(file []byte) []byte { file[16]++; return file }, "for CheckpointPlan{Slots:3 ", 0},
		"state": {func(file []byte) []byte {
			for half := range 2 {
				clear(file[4096+half*image+outlivesSize+8192:][:40_000])
			}
			return file
		}, "room 0: its checkpoint: save: ", 1},
		"another room": {func(file []byte) []byte {
			copy(file[4096:][:2*image], file[4096+2*image:])
			return file
		}, "it is of room 1", 1},
		"types": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.types++ })
			return file
		}, "of another version of frogpond", 1},
		"players": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.inputs.players = 5 })
			return file
		}, "with -players 5; here it is -players 4", 1},
		"tick": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.tick++ })
			return file
		}, "it is of tick 11 of MAP01; its state is of tick 10 of MAP01", 1},
		"map": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.title = wire.MakeMapName("MAP99") })
			return file
		}, "it is of MAP99, which isn't among the maps", 1},
		"another map": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.title = wire.MakeMapName("MAP02") })
			return file
		}, "room 0: its checkpoint: save: ", 1},
		"session": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[1].session++ })
			return file
		}, "seat 1: it is of session 0x802", 1},
		"no session": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[1].session = 0 })
			return file
		}, "seat 1: it is of session 0x0", 1},
		"seat": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[2].state = going + 1 })
			return file
		}, "seat 2: its state is 3", 1},
		"a seat beyond": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[7] = k.seats[2] })
			return file
		}, "seat 7: its state is 1", 1},
		"name": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[2].name[3] = 7 })
			return file
		}, "seat 2: its player's name is", 1},
		"address": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[0].address.Size = 1 << 30 })
			return file
		}, "seat 0: its address has 1073741824 bytes", 1},
		"packets": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.seats[0].sequence = 1<<32 - 1 })
			return file
		}, "seat 0: its player got 4294967295 packets", 1},
		"heading": {func(file []byte) []byte {
			own(file, func(k *outlives) { k.inputs.came[11][2].Heading = 99 })
			return file
		}, "an input of player 2 has the heading 99", 1},
	} {
		write(c.change(bytes.Clone(good)))
		s := built(t, kept)
		said := s.o.Say.(*said).String()
		if c.says == "" {
			assert.Empty(t, said, what)
		} else {
			assert.Contains(t, said, c.says, what)
		}
		whole := 0
		for i, r := range s.rooms {
			if r.play.isOutlived {
				whole++
				assert.EqualValues(t, want[i], r.play.game.Hash(), what)
			}
			s.seat(3, "a guest")
			for range 3 {
				r.tick(s.workers[0], s.now())
			}
		}
		assert.Equal(t, c.whole, whole, "%s: %s", what, said)
		s.killed(t)
		err := os.Rename(name+".refused", name)
		assert.Equal(t, c.says != "" && whole == 0, err == nil, what)
	}
	for _, dir := range []string{"/proc", filepath.Dir(name)} {
		bad := *s.o
		bad.Checkpoints = dir + "/frogpond/place"
		_, err := Run(t.Context(), &bad)
		assert.ErrorContains(t, err, "-checkpoints: save: checkpoints "+dir+"/frogpond/place")
	}
}
