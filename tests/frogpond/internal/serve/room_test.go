//go:build linux

package serve

import (
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// built returns a server without running goroutines. The test does their work, in an order of its
// own, and sends the players' messages.
func built(t testing.TB, change func(o *Options)) *Server {
	t.Helper()
	step.Machine(t, step.Loopback())
	o := &Options{Address: "127.0.0.1:0", Rooms: 1, Players: 4, Rollback: 8, Bytes: 480, Every: 1,
		MapTime: time.Hour, SaveEvery: time.Hour, Timeout: time.Hour, Say: &said{}}
	o.Options = game.Options{WADs: []string{doom.Builtin}, Maps: "all", Log: os.DevNull, Seed: 1,
		Workers: 1, Snapshots: 9}
	o.Plan = func() (budget.Plan, error) { return smallPlan(o.Rooms + 1), nil }
	if change != nil {
		change(o)
	}
	plan, err := o.Plan()
	require.NoError(t, err)
	b, err := budget.Open(plan)
	require.NoError(t, err)
	s := &Server{o: o, b: b, began: time.Now(), mapTicks: uint32(o.MapTime.Seconds() * ticksPerSecond)}
	s.game, err = game.Open(t.Context(), o.Options, b)
	require.NoError(t, err)
	require.NoError(t, s.openFiles())
	s.socket, err = udp.Listen(o.Address, 0)
	require.NoError(t, err)
	require.NoError(t, s.build(t.Context()))
	return s
}

// close ends the server, as Run does.
func (s *Server) close(t testing.TB) {
	t.Helper()
	assert.NoError(t, s.end())
	assert.NoError(t, s.closeFiles())
	assert.NoError(t, s.socket.Close())
	assert.NoError(t, s.b.Close(), "nothing is left")
}

func (s *Server) ticks(n int) {
	for range n {
		s.rooms[0].tick(s.workers[0], s.now())
	}
}

// seat seats a player in the first room, as the receiver does.
func (s *Server) seat(place int, name string) {
	session := &s.net.sessions[place]
	session.id += 1 << idBits
	session.name = wire.MakeName(name)
	session.address = udp.FromAddrPort(netip.MustParseAddrPort("127.0.0.1:9"))
	session.taken.Store(1)
	s.hears(place, message{what: joined, address: session.address})
	// The receiver may change this before the room reads the message.
	session.address = udp.Address{}
}

func (s *Server) hears(place int, m message) {
	b := &s.rooms[0].inbox
	m.place, m.session, m.came = uint8(place), s.net.sessions[place].id, s.now().Nanoseconds()
	*b.next(&s.net.sessions[place]) = m
	b.put(&s.net.sessions[place])
}

// wants sends a player's inputs for count ticks up to tick.
func (s *Server) wants(place int, tick uint32, count uint8) {
	m := message{what: wants, tick: tick, count: count, epoch: s.rooms[0].play.epoch()}
	for i := range m.inputs {
		m.inputs[i] = wire.Input{Heading: 3, Flags: uint8(game.Walk)}
	}
	s.hears(place, m)
}

// An input may be for a tick before the save that the room started from. The room ignores it: it
// plays no tick again, and doesn't end.
func TestInputsBeforeTheSave(t *testing.T) {
	dir := t.TempDir()
	saved := func(o *Options) { o.Saves = dir }
	s := built(t, saved)
	s.seat(0, "early")
	s.ticks(20)
	s.close(t)
	s = built(t, saved)
	defer s.close(t)
	require.EqualValues(t, 20, s.rooms[0].play.tick)
	s.seat(0, "early")
	s.ticks(2)
	s.wants(0, 19, 3)
	s.ticks(1)
	assert.Zero(t, s.faults.Load(), "%s", s.o.Say)
	assert.EqualValues(t, 3, s.workers[0].late)
	s.wants(0, 21, 1)
	s.ticks(1)
	assert.EqualValues(t, 1, s.workers[0].rollbacks, "and from there on it is")
	s.hears(0, message{what: wants, tick: 22, count: 2, epoch: s.rooms[0].play.epoch() + 1})
	s.ticks(1)
	assert.EqualValues(t, 2, s.workers[0].foreign, "inputs of another map are counted")
}

// A new player at a place inherits no inputs of the last player. The last player's future inputs
// are dropped, its past ticks stay, and no guess is based on them.
func TestPlaceOfAnother(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	r := s.rooms[0]
	s.seat(0, "first")
	s.ticks(3)
	s.wants(0, 6, 4) // 3 to 6
	s.wants(0, 12, 8)
	s.ticks(1)
	s.hears(0, message{what: leaves})
	s.ticks(1)
	require.Zero(t, s.players())
	s.seat(0, "second")
	s.ticks(1)
	p := r.play.level.Player(0)
	require.NotNil(t, p)
	start := p.At
	s.wants(0, 4, 2)
	s.ticks(2)
	assert.Zero(t, s.workers[0].rollbacks)
	assert.Equal(t, start, r.play.level.Player(0).At)
	s.wants(0, 8, 1)
	s.ticks(1)
	assert.NotEqual(t, start, r.play.level.Player(0).At, "it does what it wants itself")
}

// If the first tick of a map fails while the map before is still being released, both slots are
// released.
func TestFaultAfterChange(t *testing.T) {
	s := built(t, func(o *Options) { o.MapTime, o.Inputs = time.Second, t.TempDir() })
	defer s.close(t)
	r := s.rooms[0]
	s.seat(0, "unlucky")
	s.ticks(36)
	s.loader.look(r)
	require.NotNil(t, r.next.Load())
	require.NoError(t, s.o.Plant.Set("panic:0:0"))
	s.ticks(1)
	require.EqualValues(t, 1, s.faults.Load())
	for range 4 { // all pending work
		s.ticks(1)
		s.keeper.writeLog(r)
		s.loader.look(r)
	}
	s.ticks(1)
	assert.NotNil(t, r.play, "it goes on with the next map")
	assert.Equal(t, 1, s.loader.slots.Available())
}

// Without a free slot the loader waits. The map doesn't count as failed, and the loader skips no
// map.
func TestNoSlot(t *testing.T) {
	s := built(t, func(o *Options) { o.MapTime, o.Rooms = time.Second, 2 })
	defer s.close(t)
	for _, r := range s.rooms {
		r.wanted.Store(true)
		s.loader.look(r)
	}
	assert.NotNil(t, s.rooms[0].next.Load())
	assert.Nil(t, s.rooms[1].next.Load())
	assert.EqualValues(t, 1, s.rooms[1].maps)
	assert.Zero(t, s.unloaded.Load(), "%s", s.o.Say)
}

// A map that was loaded but not begun at the end leaves no record. The last record is of the map
// whose hash is in the result.
func TestRecordOfNothing(t *testing.T) {
	dir := t.TempDir()
	s := built(t, func(o *Options) { o.MapTime, o.Inputs = time.Second, dir })
	s.seat(0, "in time")
	s.ticks(36)
	s.loader.look(s.rooms[0])
	require.NotNil(t, s.rooms[0].next.Load())
	s.close(t)
	files, err := disk.Records(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Zero(t, files[0].Epoch)
}

// The inputs of a map on their way to the disk stay apart from the next map's, even if a map
// between them failed to load.
func TestRecordsApart(t *testing.T) {
	s := built(t, func(o *Options) { o.MapTime, o.Inputs = time.Second, t.TempDir() })
	defer s.close(t)
	r := s.rooms[0]
	s.seat(0, "kept apart")
	s.ticks(36)
	r.maps++ // as if a map had failed
	s.loader.look(r)
	next := r.next.Load()
	require.NotNil(t, next)
	assert.False(t, r.play.inputs == next.inputs)
	assert.EqualValues(t, 36-8, r.play.inputs.in.Load())
}

// If no more records can be made, maps are played without.
func TestNoRecord(t *testing.T) {
	dir := t.TempDir()
	s := built(t, func(o *Options) { o.MapTime, o.Inputs = time.Second, dir })
	defer s.close(t)
	s.serving.Store(true)
	s.seat(0, "unrecorded")
	s.ticks(36)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	s.loader.look(s.rooms[0])
	s.ticks(10)
	assert.EqualValues(t, 1, s.rooms[0].play.number)
	assert.EqualValues(t, 1, s.unrecorded.Load())
	assert.Zero(t, s.unloaded.Load())
}

// Late inputs can undo a player's score. The lower score isn't written, because it would count as
// another game.
func TestScoreFalls(t *testing.T) {
	file := t.TempDir() + "/scores"
	s := built(t, func(o *Options) { o.Scores = file })
	s.seat(0, "cheats")
	s.ticks(1)
	for _, caught := range []uint32{5, 4, 6} {
		s.rooms[0].play.level.Player(0).Caught = caught
		s.rooms[0].scoreAll(s.now())
	}
	s.close(t)
	list, _, err := readScores(file)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.EqualValues(t, 5, list[0].Caught)
	assert.EqualValues(t, 6, list[1].Caught)
}

// If the queue of scores is full, the scores are written later.
func TestScoresWait(t *testing.T) {
	file := t.TempDir() + "/scores"
	s := built(t, func(o *Options) { o.Scores = file })
	s.seat(0, "waits")
	s.ticks(1)
	p := s.rooms[0].play.level.Player(0)
	for range 2 * scoreMost {
		p.Caught++
		s.rooms[0].scoreAll(s.now())
	}
	s.keeper.writeScores()
	s.close(t)
	list, _, err := readScores(file)
	require.NoError(t, err)
	assert.EqualValues(t, 2*scoreMost, list[len(list)-1].Caught)
}

// A player that sends too many messages loses some. The inbox keeps room for the other players'
// messages.
func TestFlood(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	from := udp.FromAddrPort(netip.MustParseAddrPort("127.0.0.1:9"))
	join := func(place int) *session {
		nonce := wire.Nonce(place + 1)
		j := wire.JoinPacket{Nonce: nonce, Room: wire.AnyRoom,
			Cookie: s.receiver.cookies.Make(&s.receiver.mac, from.Raw(), nonce, s.receiver.seconds(s.now()))}
		require.Zero(t, s.receiver.take(wire.AppendJoin(nil, &j), &from, s.now()))
		require.NotZero(t, s.net.sessions[place].taken.Load())
		return &s.net.sessions[place]
	}
	sent := uint32(0)
	send := func(of *session) wire.Reason {
		sent++
		p := wire.AppendInputs(wire.AppendHeader(nil, wire.Inputs, of.id, sent), &wire.InputsPacket{})
		(&wire.Mac{}).Seal(&of.key, p)
		return s.receiver.take(p, &from, s.now())
	}
	cheat, honest := join(0), join(1)
	s.ticks(1)
	for range 3 {
		how := map[wire.Reason]int{}
		for range 1000 {
			how[send(cheat)]++
		}
		assert.Equal(t, map[wire.Reason]int{0: waitingMost, wire.Flooded: 1000 - waitingMost}, how)
		for range waitingMost {
			assert.Zero(t, send(honest))
		}
		s.ticks(1)
		assert.Nil(t, s.rooms[0].inbox.first())
	}
}

// A worker plays the room that has been due for longest, so that no room falls behind.
func TestDueFirst(t *testing.T) {
	w := &worker{rooms: []*room{{number: 0, due: 30}, {number: 1, due: 10}, {number: 2, due: 20}}}
	var order []int
	for range 4 {
		r := w.first()
		r.due += 15
		order = append(order, r.number)
	}
	assert.Equal(t, []int{1, 2, 1, 0}, order)
}

// A panic while players get their views also ends only that room. A player that joins then gets a
// notice, and joins again.
func TestFaultInTell(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	listener, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer listener.Close()
	r := s.rooms[0]
	s.seat(0, "sees")
	s.ticks(5)
	outlines := r.play.level.Outlines
	r.play.level.Outlines = nil
	r.play.level.Sectors[0].Floor++
	assert.NotPanics(t, func() { s.ticks(1) })
	require.EqualValues(t, 1, s.faults.Load())
	assert.Nil(t, r.play)
	assert.Zero(t, s.players())
	r.gone.Load().level.Outlines = outlines

	session := &s.net.sessions[0]
	session.address = udp.FromAddrPort(listener.LocalAddr().(*net.UDPAddr).AddrPort())
	s.hears(0, message{what: joined, address: session.address})
	s.ticks(1)
	assert.Zero(t, s.players())
	buffer := make([]byte, wire.PacketMost)
	require.NoError(t, listener.SetReadDeadline(time.Now().Add(patience)))
	n, err := listener.Read(buffer)
	require.NoError(t, err)
	notice, reason := wire.ParseNotice(buffer[:n])
	assert.Zero(t, reason)
	assert.Equal(t, wire.RoomEnded, notice.Reason)
}

// On a slow disk a room has one save at a time on its way, so the newest is written last. The
// keeper writes inputs between saves, because their queue has room for only a few seconds.
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir()
	s := built(t, func(o *Options) { o.Rooms, o.Saves, o.Inputs, o.SaveEvery = 2, dir, t.TempDir(), 1 })
	defer s.close(t)
	s.seat(0, "waits")
	s.ticks(30) // while the keeper doesn't write
	waiting := func() (n int) {
		for i := range s.keeper.images {
			n += int(s.keeper.images[i].full.Load() / 2)
		}
		return n
	}
	require.Equal(t, 1, waiting())
	s.keeper.writeImage()
	h, _, found, err := s.saves.Read(0)
	require.NoError(t, err)
	assert.True(t, found)
	assert.EqualValues(t, 1, h.Tick)
	s.ticks(1)
	require.NoError(t, s.keeper.images[1].fill(s.rooms[1]))
	require.Equal(t, 2, waiting())
	s.keeper.writeImage()
	assert.Equal(t, 1, waiting(), "then it looks at the inputs")
	s.keeper.writeImage()
	assert.Zero(t, waiting())
	h, _, _, err = s.saves.Read(0)
	require.NoError(t, err)
	assert.EqualValues(t, 31, h.Tick)
}

// A guess is right even if the last input spawned a frog and the new one doesn't.
func TestGuessAfterSpawn(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	s.seat(0, "guessed")
	s.ticks(3)
	m := message{what: wants, tick: 3, count: 1}
	m.inputs[0] = wire.Input{Heading: 3, Flags: uint8(game.Walk | game.Spawn), X: 9, Y: 9}
	s.hears(0, m)
	s.ticks(2)
	m.tick, m.inputs[0] = 4, wire.Input{Heading: 3, Flags: uint8(game.Walk)}
	s.hears(0, m)
	s.ticks(1)
	assert.Zero(t, s.workers[0].rollbacks)
	m.tick, m.inputs[0].X = 5, 7
	s.hears(0, m)
	s.ticks(1)
	assert.Zero(t, s.workers[0].rollbacks, "nor does it matter where one would have appeared")
	m.tick, m.inputs[0].Heading = 6, 5
	s.hears(0, m)
	s.ticks(1)
	assert.EqualValues(t, 1, s.workers[0].rollbacks)
}

// The count in a session's id isn't 0 after an overflow.
func TestSessionNumbers(t *testing.T) {
	s := built(t, nil)
	defer s.close(t)
	from := udp.FromAddrPort(netip.MustParseAddrPort("127.0.0.1:9"))
	s.net.sessions[0].id = math.MaxUint32 &^ (1<<idBits - 1)
	r := s.receiver
	j := wire.JoinPacket{Nonce: 1, Cookie: r.cookies.Make(&r.mac, from.Raw(), 1, r.seconds(s.now()))}
	require.Zero(t, s.receiver.take(wire.AppendJoin(nil, &j), &from, s.now()))
	assert.EqualValues(t, 1<<idBits, s.net.sessions[0].id)
	s.ticks(1)
	assert.EqualValues(t, 1, s.players())
}

// The first save of a map during play makes few Go allocations, since the loader has made one
// before.
func TestFirstSave(t *testing.T) {
	s := built(t, func(o *Options) { o.Saves = t.TempDir() })
	defer s.close(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, s.keeper.images[0].fill(s.rooms[0]))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.Mallocs-before.Mallocs, uint64(20))
}

func readScores(name string) (list []disk.Score, torn int, err error) {
	torn, err = disk.ReadScores(name, func(c *disk.Score) error {
		list = append(list, *c)
		return nil
	})
	return list, torn, err
}

// asker is a client's socket that sends its own Joins.
type asker struct {
	t    *testing.T
	s    *Server
	conn *net.UDPConn
	from udp.Address
}

func (s *Server) asker(t *testing.T, ip string) *asker {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 0)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &asker{t, s, conn, udp.FromAddrPort(conn.LocalAddr().(*net.UDPAddr).AddrPort())}
}

// join asks for a place, and proves an old session by its key if there was one. It returns the
// answer.
func (a *asker) join(nonce wire.Nonce, flags uint8, old *session) (accept wire.AcceptPacket, refuse wire.RefusePacket) {
	a.t.Helper()
	r := a.s.receiver
	j := wire.JoinPacket{Nonce: nonce, Room: wire.AnyRoom, Flags: flags,
		Cookie: r.cookies.Make(&r.mac, a.from.Raw(), nonce, r.seconds(a.s.now()))}
	if old != nil {
		j.Old = old.id
	}
	p := wire.AppendJoin(nil, &j)
	if old != nil {
		proof := (&wire.Mac{}).Proof(&old.key, p)
		copy(p[wire.ProofAt:], proof[:])
	}
	require.Zero(a.t, r.take(p, &a.from, a.s.now()))
	require.NoError(a.t, a.s.socket.Send(r.out))
	buffer := make([]byte, wire.PacketMost)
	require.NoError(a.t, a.conn.SetReadDeadline(time.Now().Add(patience)))
	for {
		n, err := a.conn.Read(buffer)
		require.NoError(a.t, err)
		var reason wire.Reason
		switch kind, _ := wire.KindOf(buffer[:n]); kind {
		case wire.Accept:
			accept, reason = wire.ParseAccept(buffer[:n])
		case wire.Refuse:
			refuse, reason = wire.ParseRefuse(buffer[:n])
		default: // of an earlier session
			continue
		}
		require.Zero(a.t, reason)
		return accept, refuse
	}
}

// The sockets of an IP address share its places. A further Join is refused with the numbers; other
// addresses get places of their own. Moving a session doesn't evade the limit. A freed place is
// available again.
func TestPlacesOfAnAddress(t *testing.T) {
	s := built(t, func(o *Options) { o.Address, o.Rooms, o.PerAddress = ":0", 2, 3 })
	defer s.close(t)
	one, same, other := s.asker(t, "127.0.0.1"), s.asker(t, "127.0.0.1"), s.asker(t, "127.0.0.2")
	for nonce := range wire.Nonce(3) {
		accept, _ := one.join(nonce+1, 0, nil)
		require.NotZero(t, accept.Session)
	}
	full := wire.RefusePacket{Reason: wire.AddressFull, Players: 3, Places: 3, Rooms: 2, RetryAfter: 1000}
	for i, a := range []*asker{one, same} {
		full.Nonce = wire.Nonce(10 + i)
		_, refuse := a.join(full.Nonce, 0, nil)
		assert.Equal(t, full, refuse)
	}
	again, _ := one.join(1, 0, nil)
	assert.NotZero(t, again.Session, "the same Join, whose answer may have been lost")

	watching, _ := one.join(20, wire.Watch, nil)
	assert.NotZero(t, watching.Session, "it has none of those who watch")
	_, refuse := one.join(21, wire.Watch, nil)
	assert.Equal(t, wire.RefusePacket{Nonce: 21, Reason: wire.AddressFull, Players: 1, Places: 1, Rooms: 2,
		RetryAfter: 1000}, refuse)

	accept, _ := other.join(30, 0, nil)
	require.NotZero(t, accept.Session)
	theirs, _, _ := s.net.find(accept.Session)
	_, refuse = one.join(31, 0, theirs)
	assert.Equal(t, wire.AddressFull, refuse.Reason)
	accept, _ = s.asker(t, "127.0.0.2").join(32, 0, theirs)
	assert.Equal(t, theirs.id, accept.Session, "to another port it may move")

	s.ticks(1)
	s.hears(0, message{what: leaves})
	s.ticks(1)
	moved, _ := one.join(33, 0, theirs)
	assert.Equal(t, theirs.id, moved.Session, "there is room now")
	_, refuse = same.join(34, 0, nil)
	assert.Equal(t, wire.AddressFull, refuse.Reason)
	for nonce := range wire.Nonce(3) {
		accept, _ := other.join(nonce+40, 0, nil)
		require.NotZero(t, accept.Session)
	}
}
