package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

// scriptRooms is the number of rooms of a script, one more than its server has slots for.
const scriptRooms = 5

// A script plays rooms whose packets depend only on the room and its tick. So a room that goes on
// from a checkpoint is as one that was never interrupted.

func scriptPacket(s *Server, room, player int, packet []byte) {
	s.handle(Address{Port: uint16(1 + 100*room + player)}, packet)
}

func scriptJoin(s *Server, room, player int) {
	scriptPacket(s, room, player, fmt.Appendf(nil, "j\x08player%02droom %d", player, room))
}

// scriptTick sends the packets before the next tick of a room. It opens the room if it is closed.
func scriptTick(s *Server, number int) {
	name := fmt.Sprintf("room %d", number)
	if s.byName.Get(name) == nil {
		for player := range 3 + number {
			scriptJoin(s, number, player)
		}
	}
	slot := s.byName.Get(name)
	if slot == nil {
		return // the server is full
	}
	tick := int(s.rooms[*slot].hall.Tick)
	r := rand.New(rand.NewPCG(uint64(number), uint64(tick)))
	last := tick == 40+11*number
	for player := range 3 + number {
		hop := []byte{kindHop, byte(r.IntN(2)), byte(r.Uint32()), 0, byte(r.Uint32())}
		scriptPacket(s, number, player, hop)
		if r.IntN(5) == 0 {
			scriptPacket(s, number, player, fmt.Appendf(nil, "%cthis is tick %d", kindSay, tick))
		}
		if last {
			scriptPacket(s, number, player, []byte{kindLeave})
		}
	}
	switch guest := playersMost - 1; {
	case last:
		scriptPacket(s, number, guest, []byte{kindLeave})
	case tick%20 == 10:
		scriptJoin(s, number, guest)
	case tick%20 == 15:
		scriptPacket(s, number, guest, []byte{kindLeave})
	}
}

func scriptServer(name string, rooms int) (*budget.Budget, *Server, error) {
	plan, err := parsePlan(name != "")
	if err != nil {
		return nil, nil, err
	}
	plan.Regions[1].Slots = rooms
	b, err := budget.Open(plan)
	if err != nil {
		return nil, nil, err
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	var c *save.Checkpoints
	if name != "" {
		if c, err = openCheckpoints(name, rooms); err != nil {
			return nil, nil, err
		}
	}
	s, err := newServer(b, conn, c)
	return b, s, err
}

func init() { playScript = playRooms }

// playRooms plays until the process is killed.
func playRooms(name string) error {
	_, s, err := scriptServer(name, scriptRooms-1)
	if err != nil {
		return err
	}
	for round := 0; s.counts.unkept == 0; round++ {
		for number := range scriptRooms {
			scriptTick(s, number)
		}
		if s.step(); round == 0 {
			fmt.Println("plays")
		}
	}
	return errors.New("a tick wasn't kept")
}

// TestKilled kills a server at random moments. Each room goes on from its last checkpoint, with the
// hash that the same packets give without an interruption, and each player has a seat.
func TestKilled(t *testing.T) {
	step.Machine(t, step.Loopback())
	name := filepath.Join(t.TempDir(), "pond")
	r := rand.New(rand.NewPCG(6, 7))
	hashes := map[[2]int]uint64{}
	rooms, ticks, kills := 0, 0, step.Pick(3, 50, 1000)
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "POND_SCRIPT="+name)
		var errors bytes.Buffer
		child.Stderr = &errors
		said, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, step.Start(child))
		line, err := bufio.NewReader(said).ReadString('\n')
		require.NoError(t, err, "%s", &errors)
		require.Equal(t, "plays\n", line)
		for range r.IntN(20_000_000) { // no sleep is so short
		}
		require.NoError(t, child.Process.Kill())
		_, _ = io.Copy(io.Discard, said)
		_ = child.Wait()

		b, s, err := scriptServer(name, scriptRooms-1)
		require.NoError(t, err)
		seats := 0
		for number := range scriptRooms {
			slot := s.byName.Get(fmt.Sprintf("room %d", number))
			if slot == nil {
				continue
			}
			room := s.rooms[*slot]
			tick := int(room.hall.Tick)
			hash, err := room.ring.Hash(uint64(tick))
			require.NoError(t, err)
			if hashes[[2]int{number, tick}] == 0 {
				hashes[[2]int{number, tick}] = uninterrupted(t, number, tick)
			}
			require.Equal(t, hashes[[2]int{number, tick}], hash, "room %d, tick %d", number, tick)
			seats += room.players.Live()
			rooms, ticks = rooms+1, max(ticks, tick)
		}
		require.Equal(t, seats, s.seats.Len())
		require.Equal(t, seats, s.counts.resumed)
		end(t, b, s)
	}
	t.Logf("%d kills, %d rooms went on, tick %d at most; %d different snapshots", kills, rooms, ticks, len(hashes))
	assert.GreaterOrEqual(t, rooms, kills)
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// end ends a server without a change of its checkpoints.
func end(t *testing.T, b *budget.Budget, s *Server) {
	if s.checkpoints != nil {
		require.NoError(t, s.checkpoints.Close())
	}
	s.drain(true)
	require.NoError(t, s.conn.Close())
	require.NoError(t, b.Close())
}

// uninterrupted returns the hash of a room that plays alone.
func uninterrupted(t *testing.T, number, tick int) uint64 {
	b, s, err := scriptServer(filepath.Join(t.TempDir(), "alone"), 1)
	require.NoError(t, err)
	for range tick {
		scriptTick(s, number)
		s.step()
	}
	ring := s.rooms[0].ring
	require.NoError(t, ring.Take(uint64(tick)))
	hash, err := ring.Hash(uint64(tick))
	require.NoError(t, err)
	end(t, b, s)
	return hash
}

// TestHashes: the rooms of a script have the recorded hashes after 30 rounds, and after 30 more
// from the checkpoints, in every build and on every target. If POND_HASHES names a file, the test
// plays 30 rounds only: from the checkpoints there, or from the start if there is no file.
func TestHashes(t *testing.T) {
	step.Machine(t, step.Loopback())
	name, halves := os.Getenv("POND_HASHES"), 1
	if name == "" {
		name, halves = filepath.Join(t.TempDir(), "pond"), 2
	}
	for range halves {
		want := [3]uint64{0x9784e97b335a8d92, 0x15a1eb20abaa93c8, 0x8ad61239412b6ab2}
		if _, err := os.Stat(name); err == nil {
			want = [3]uint64{0x3c4d887405d2e5f0, 0xcd0f0699eba01a51, 0x7e1401b60f6e6aec}
		}
		b, s, err := scriptServer(name, len(want))
		require.NoError(t, err)
		for range 30 {
			for number := range s.rooms {
				scriptTick(s, number)
			}
			s.step()
		}
		var hashes [len(want)]uint64
		for i, room := range s.rooms {
			hashes[i], err = room.ring.Hash(uint64(room.hall.Tick))
			require.NoError(t, err)
		}
		assert.Equal(t, want, hashes, "if the game has changed on purpose, record its hashes here")
		t.Logf("%#x", hashes)
		require.NoError(t, s.checkpoints.Sync()) // a copy of the file counts
		end(t, b, s)
	}
}

// TestResume: a player of a killed program plays on in the next one, without a join.
func TestResume(t *testing.T) {
	step.Machine(t, step.Loopback())
	name := filepath.Join(t.TempDir(), "pond")
	pond, _, server := startProgram(t, "127.0.0.1:0", "-checkpoints", name)
	ada := enter(t, server, "ada", "lobby")
	ada.send([]byte("shello"))
	ada.hear(kindSaid)
	ada.hear(kindPlaces)
	ada.hear(kindPlaces) // the tick before has a checkpoint
	second := exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-checkpoints", name)
	second.Env = append(os.Environ(), "POND=1")
	text, err := second.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(text), fmt.Sprintf("process %d has it", pond.Process.Pid))
	require.NoError(t, pond.Process.Kill())
	_ = pond.Wait()

	next, lines, again := startProgram(t, server.String(), "-checkpoints", name)
	require.Equal(t, server.String(), again.String())
	ada.send([]byte{kindHop, 0, 1, 0, 2})
	for places := ada.hear(kindPlaces); string(places[4:]) != "\x00\x00\x01\x00\x02"; {
		places = ada.hear(kindPlaces)
		ada.send([]byte{kindHop, 0, 1, 0, 2})
	}
	bob := enter(t, server, "bob", "lobby")
	assert.Equal(t, "\x03adahello", string(bob.hear(kindSaid)))
	for _, c := range []*client{ada, bob} {
		c.send([]byte{kindLeave})
		c.hear(kindEnd)
	}
	require.NoError(t, next.Process.Signal(syscall.SIGTERM))
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	assert.NoError(t, next.Wait(), said)
	assert.Contains(t, said, "joined:1 resumed:1 ")
	c := keeper(t, name, 16)
	for slot := range c.All() {
		t.Error("a room that ended has a checkpoint: ", slot)
	}
}

// TestMoreRooms: an upgrade to more slots keeps all rooms, and one to fewer the others.
func TestMoreRooms(t *testing.T) {
	step.Machine(t, step.Loopback())
	name := filepath.Join(t.TempDir(), "pond")
	hashes := map[string]uint64{}
	for _, slots := range []int{2, 4, 3, 1} {
		b, s, err := scriptServer(name, slots)
		require.NoError(t, err)
		open := 0
		for _, room := range s.rooms {
			if room == nil {
				continue
			}
			hash, err := room.ring.Hash(uint64(room.hall.Tick))
			require.NoError(t, err)
			assert.Equal(t, hashes[room.name.String()], hash)
			open++
		}
		assert.Equal(t, min(slots, len(hashes)), open)
		for number := range slots {
			scriptTick(s, number)
		}
		s.step()
		for _, room := range s.rooms {
			hashes[room.name.String()], err = room.ring.Hash(uint64(room.hall.Tick))
			require.NoError(t, err)
		}
		end(t, b, s)
	}
	assert.FileExists(t, name+".old")
	assert.NoFileExists(t, name+".refused")
}

// TestKilledInAMove: a kill between the checkpoints of two rooms, while a player goes from one to
// the other, loses neither room.
func TestKilledInAMove(t *testing.T) {
	step.Machine(t, step.Loopback())
	for moves := range 2 { // to the room that resumes first, or second
		name := filepath.Join(t.TempDir(), "pond")
		b, s, err := scriptServer(name, 2)
		require.NoError(t, err)
		scriptTick(s, 0)
		scriptTick(s, 1)
		s.step()
		seats := s.seats.Len()
		from, to := s.rooms[1-moves], s.rooms[moves]
		var ann Address
		for _, p := range from.players.All() {
			ann = p.From
		}
		s.handle(ann, []byte{kindLeave})
		s.handle(ann, append([]byte{kindJoin, 3}, "ann"+to.name.String()...))
		to.hall.Tick++
		require.NoError(t, to.checkpoint.Write(uint64(to.hall.Tick), to.name.Bytes()))
		end(t, b, s)

		b, s, err = scriptServer(name, 2)
		require.NoError(t, err)
		require.NotNil(t, s.rooms[0])
		require.NotNil(t, s.rooms[1])
		assert.Equal(t, seats, s.seats.Len())
		seat := s.seats.Get(ann)
		require.NotNil(t, seat)
		assert.Equal(t, ann, s.rooms[seat.Room].players.At(seat.Player).From)
		end(t, b, s)
	}
}

// TestRefusedCheckpoints: a server starts with the rooms that are whole, and puts a file aside that
// is cut.
func TestRefusedCheckpoints(t *testing.T) {
	step.Machine(t, step.Loopback())
	name := filepath.Join(t.TempDir(), "pond")
	b, s, err := scriptServer(name, 2)
	require.NoError(t, err)
	for range 5 {
		scriptTick(s, 0)
		scriptTick(s, 1)
		s.step()
	}
	end(t, b, s)
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	size := (len(good) - 4096) / 4
	forged := func(change func(file []byte)) (*budget.Budget, *Server) {
		file := append([]byte(nil), good...)
		change(file)
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(file)
		require.NoError(t, errors.Join(err, f.Close()))
		b, s, err := scriptServer(name, 2)
		require.NoError(t, err)
		return b, s
	}
	for what, change := range map[string]func(file []byte){
		"both are whole": func(file []byte) {},
		"own bytes":      func(file []byte) { file[4096+64], file[4096+size+64] = 7, 7 },
		"the name of another": func(file []byte) {
			copy(file[4096+64:], "room 1")
			copy(file[4096+size+64:], "room 1")
		},
		"bytes of the state": func(file []byte) {
			clear(file[4096+2000:][:4000])
			clear(file[4096+size+2000:][:4000])
		},
	} {
		b, s := forged(change)
		want := 7
		if what != "both are whole" {
			want = s.seats.Len()
			assert.Contains(t, []int{3, 4}, want, what)
		}
		assert.Equal(t, want, s.seats.Len(), what)
		for range 3 { // and then plays both
			scriptTick(s, 0)
			scriptTick(s, 1)
			s.step()
		}
		if what != "the name of another" { // the players of room 0 are in room 1
			assert.Equal(t, 7, s.seats.Len(), what)
		}
		end(t, b, s)
	}
	require.NoError(t, os.WriteFile(name, good[:9999], 0o600))
	b, s, err = scriptServer(name, 2)
	require.NoError(t, err)
	assert.Zero(t, s.seats.Len())
	end(t, b, s)
	assert.FileExists(t, name+".refused")
	_, err = run0(filepath.Dir(name))
	assert.ErrorContains(t, err, "is a directory")
}

// run0 runs the program's function with checkpoints that can't be opened.
func run0(name string) (net.Addr, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	return conn.LocalAddr(), run(context.Background(), conn, 0, name)
}
