package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

// playScript plays with the checkpoints of a file until the process is killed. It is set on Linux.
var playScript func(name string) error

// TestMain runs the program itself if POND is set, a script with the checkpoints of a file if
// POND_SCRIPT names one, and the tests otherwise.
func TestMain(m *testing.M) {
	if os.Getenv("POND") != "" {
		main()
		return
	}
	if name := os.Getenv("POND_SCRIPT"); name != "" {
		log.Fatal(playScript(name))
	}
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

func listen(t *testing.T) *net.UDPConn {
	t.Helper()
	step.Machine(t, step.Loopback())
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	return conn
}

// planOf returns the program's plan with the number of rooms changed.
func planOf(t *testing.T, rooms int, keeps bool) budget.Plan {
	t.Helper()
	plan, err := parsePlan(keeps)
	require.NoError(t, err)
	plan.Regions[1].Slots = rooms
	return plan
}

// start runs a server, whose ticks the test plays. At the end of the test it checks that nothing
// has leaked.
func start(t *testing.T, rooms int) (*budget.Budget, *Server) {
	t.Helper()
	return startOn(t, planOf(t, rooms, true), listen(t))
}

// startOn starts a server with checkpoints if its rooms are states.
func startOn(t *testing.T, plan budget.Plan, conn *net.UDPConn) (*budget.Budget, *Server) {
	t.Helper()
	b := budgettest.Open(t, plan)
	var c *save.Checkpoints
	if plan.Regions[1].State {
		c = keeper(t, filepath.Join(t.TempDir(), "pond"), plan.Regions[1].Slots)
	}
	s, err := newServer(b, conn, c)
	require.NoError(t, err)
	require.NoError(t, b.Seal())
	var receiver sync.WaitGroup
	receiver.Go(s.receive)
	t.Cleanup(func() {
		assert.True(t, s.drain(true))
		s.conn.Close()
		receiver.Wait()
		assert.Equal(t, plan.Regions[1].Slots, s.slots.Available())
	})
	return b, s
}

// keeper returns the checkpoints of a file, or nil on a system without them.
func keeper(t *testing.T, name string, rooms int) *save.Checkpoints {
	t.Helper()
	c, err := openCheckpoints(name, rooms)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

type client struct {
	t      *testing.T
	conn   *net.UDPConn
	asks   []byte // the join
	packet [2048]byte
}

// ask returns a client that has sent a join.
func ask(t *testing.T, server net.Addr, name, room string) *client {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, server.(*net.UDPAddr))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	asks := append([]byte{kindJoin, byte(len(name))}, name+room...)
	c := &client{t: t, conn: conn, asks: asks}
	c.send(c.asks)
	return c
}

func enter(t *testing.T, server net.Addr, name, room string) *client {
	t.Helper()
	c := ask(t, server, name, room)
	c.hear(kindWelcome)
	return c
}

func (c *client) send(packet []byte) {
	if _, err := c.conn.Write(packet); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next packet of a kind, without its kind.
func (c *client) hear(kind byte) []byte {
	for {
		n, err := c.conn.Read(c.packet[:])
		if err != nil {
			c.t.Fatalf("waits for %c: %v", kind, err)
		}
		if c.packet[0] == kind {
			return c.packet[1:n]
		}
	}
}

// settle waits until the server has handled all packets of the client.
func (c *client) settle() {
	c.send(c.asks)
	c.hear(kindWelcome)
}

// refused returns the reason why the client has no seat.
func (c *client) refused() string { return string(c.hear(kindEnd)) }

func TestJoin(t *testing.T) {
	_, s := start(t, 2)
	server := s.conn.LocalAddr()
	ada := ask(t, server, "ada", "lobby")
	assert.Equal(t, []byte{0}, ada.hear(kindWelcome))
	assert.Equal(t, "\x00\x03ada", string(ada.hear(kindNames)))
	bob := ask(t, server, "bob", "lobby")
	assert.Equal(t, []byte{1}, bob.hear(kindWelcome))
	assert.Equal(t, "\x00\x03ada\x01\x03bob", string(bob.hear(kindNames)))
	cy := enter(t, server, "ada", "attic") // names of other rooms are free

	bob.send([]byte{kindHop, 0, 2, 0xff, 0xff})
	bob.settle()
	for range 3 {
		s.step()
	}
	for tick := range uint32(3) {
		want := binary.BigEndian.AppendUint32(nil, tick+1)
		want = append(want, 0, 0, 0, 0, 0, 1, 0, uint8(min(tick+1, 2)), 0xff, 0xff)
		assert.Equal(t, want, ada.hear(kindPlaces))
	}
	assert.Len(t, cy.hear(kindPlaces), 4+5)

	assert.Equal(t, string(rune(whyNameTaken)), ask(t, server, "bob", "lobby").refused())
	bob.send([]byte{kindLeave})
	assert.Equal(t, string(rune(whyLeft)), bob.refused())
	bob.send([]byte{kindHop, 0, 0, 0, 0})
	assert.Equal(t, string(rune(whyNoSeat)), bob.refused())
	enter(t, server, "bob", "lobby")
}

// TestAddresses: players use IPv4 and IPv6, also on one socket.
func TestAddresses(t *testing.T) {
	step.Machine(t, step.Loopback())
	for _, server := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		conn, err := net.ListenPacket("udp", server)
		if err != nil {
			t.Log(err) // a machine without IPv6
			continue
		}
		_, s := startOn(t, planOf(t, 1, true), conn.(*net.UDPConn))
		at := *conn.LocalAddr().(*net.UDPAddr)
		if at.IP.IsUnspecified() {
			at.IP = net.IPv4(127, 0, 0, 1)
			enter(t, &at, "ada", "lobby")
			at.IP = net.IPv6loopback
		}
		bob := enter(t, &at, "bob", "lobby")
		s.step()
		assert.NotEmpty(t, bob.hear(kindPlaces))
	}
}

func TestChat(t *testing.T) {
	_, s := start(t, 1)
	server := s.conn.LocalAddr()
	ada, bob := enter(t, server, "ada", "lobby"), enter(t, server, "bob", "lobby")
	for i := range linesMost + 8 {
		ada.send(fmt.Appendf(nil, "%chello %d", kindSay, i))
		assert.Equal(t, fmt.Sprintf("\x03adahello %d", i), string(bob.hear(kindSaid)))
		assert.Equal(t, fmt.Sprintf("\x03adahello %d", i), string(ada.hear(kindSaid)))
		ada.send([]byte{kindSay, '!'}) // dropped: one line a tick
		ada.settle()
		s.step()
	}
	longest := strings.Repeat("é", textMost/2)
	bob.send([]byte(string(rune(kindSay)) + longest))
	assert.Equal(t, "\x03bob"+longest, string(ada.hear(kindSaid)))

	cy := enter(t, server, "cy", "lobby")
	for i := range linesMost - 1 {
		assert.Equal(t, fmt.Sprintf("\x03adahello %d", 9+i), string(cy.hear(kindSaid)))
	}
	assert.Equal(t, "\x03bob"+longest, string(cy.hear(kindSaid)))
}

func TestRoomFull(t *testing.T) {
	_, s := start(t, 2)
	server := s.conn.LocalAddr()
	var inside []*client
	for i := range playersMost {
		inside = append(inside, enter(t, server, fmt.Sprintf("player %d", i), "lobby"))
	}
	late := ask(t, server, "late", "lobby")
	assert.Equal(t, string(rune(whyRoomFull)), late.refused())
	enter(t, server, "late", "attic")
	inside[7].send([]byte{kindLeave})
	inside[7].refused()
	late.send(late.asks)
	assert.Equal(t, []byte{7}, late.hear(kindWelcome))
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1, s.counts.roomFull)
}

// TestServerFull: a server with one slot opens no second room. The log has the key of the plan,
// once.
func TestServerFull(t *testing.T) {
	var text bytes.Buffer
	log.SetOutput(&text)
	defer log.SetOutput(io.Discard)
	_, s := start(t, 1)
	server := s.conn.LocalAddr()
	ada := enter(t, server, "ada", "lobby")
	bob := ask(t, server, "bob", "attic")
	assert.Equal(t, string(rune(whyServerFull)), bob.refused())
	bob.send(bob.asks)
	assert.Equal(t, string(rune(whyServerFull)), bob.refused())
	s.mu.Lock()
	said := text.String()
	s.mu.Unlock()
	assert.Equal(t, 1, strings.Count(said, "raise regions[1].slots in the plan to 2 or more"))
	enter(t, server, "bob", "lobby")
	ada.settle()
}

// TestTooSmall: a room that a slot is too small for isn't a full server, to the player and in the
// log.
func TestTooSmall(t *testing.T) {
	var text bytes.Buffer
	log.SetOutput(&text)
	defer log.SetOutput(io.Discard)
	plan := planOf(t, 1, true)
	plan.Regions[1].Size = 4 * budget.KiB
	_, s := startOn(t, plan, listen(t))
	bob := ask(t, s.conn.LocalAddr(), "bob", "attic")
	assert.Equal(t, string(rune(whyTooSmall)), bob.refused())
	bob.send(bob.asks)
	assert.Equal(t, string(rune(whyTooSmall)), bob.refused())
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1, strings.Count(text.String(), "raise regions[1].size in the plan to "))
	assert.Equal(t, []int{0, 2}, []int{s.counts.serverFull, s.counts.tooSmall})
}

func TestMalformed(t *testing.T) {
	_, s := start(t, 2)
	ada := enter(t, s.conn.LocalAddr(), "ada", "lobby")
	malformed := []string{
		"", "x", "w\x00", "j", "j\x00lobby", "j\x03ada", "j\x03ad", "j\xffada", "j\x03ad\nlobby",
		"j\x03ad\xfflobby", "j\x03adalob\x00by", "j\x11" + strings.Repeat("a", 17) + "lobby",
		"j\x03ada" + strings.Repeat("a", 17), "h", "h\x00\x01\x00", "h\x00\x01\x00\x01\x00",
		"s", "s\x00", "s\xc3", "s\x1b[2J", "s" + strings.Repeat("a", textMost+1),
		"s" + strings.Repeat("a", 1500), "l\x00", "s\u009b2J", "j\x04ad\u0085lobby", "j\x03adalob\u009dby",
	}
	for i, packet := range malformed {
		ada.send([]byte(packet))
		ada.settle()
		s.mu.Lock()
		assert.Equal(t, i+1, s.counts.malformed, "%q", packet)
		s.mu.Unlock()
	}
	s.step()
	assert.Len(t, ada.hear(kindPlaces), 4+5)
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1, s.counts.joined)
}

func TestSilent(t *testing.T) {
	_, s := start(t, 1)
	server := s.conn.LocalAddr()
	ada, bob := enter(t, server, "ada", "lobby"), enter(t, server, "bob", "lobby")
	for range silentMost {
		s.step()
	}
	ada.settle()
	s.step()
	assert.Equal(t, string(rune(whySilent)), bob.refused())
	ada.settle()
	s.mu.Lock()
	assert.Equal(t, 2, s.counts.joined, "ada kept her seat")
	s.mu.Unlock()
	for range silentMost + 1 {
		s.step()
	}
	assert.Equal(t, string(rune(whySilent)), ada.refused())
	assert.Equal(t, 1, s.slots.Available(), "an empty room ends")
}

// TestRoomEnds: one slot is used for three rooms in turn, and each starts empty.
func TestRoomEnds(t *testing.T) {
	b, s := start(t, 1)
	server := s.conn.LocalAddr()
	used := uint64(0)
	for i, room := range []string{"lobby", "attic", "lobby"} {
		ada := ask(t, server, "ada", room)
		assert.Equal(t, []byte{0}, ada.hear(kindWelcome))
		assert.Equal(t, "\x00\x03ada", string(ada.hear(kindNames)))
		s.mu.Lock()
		require.NotNil(t, s.rooms[0])
		assert.Zero(t, s.rooms[0].lines.Len())
		held := b.Published().Arenas[1]
		s.mu.Unlock()
		assert.NotZero(t, held.Used)
		assert.Equal(t, held.Used, held.Peak)
		if i > 0 {
			assert.Equal(t, used, held.Used)
		}
		used = held.Used
		ada.send([]byte{kindSay, '!'})
		ada.hear(kindSaid)
		ada.send([]byte{kindLeave})
		assert.Equal(t, string(rune(whyLeft)), ada.refused())
		s.mu.Lock()
		assert.Nil(t, s.rooms[0])
		assert.Zero(t, b.Published().Arenas[1].Used)
		s.mu.Unlock()
	}
}

// TestRandom sends random packets. After each, every seat belongs to a live player, every room has
// at least one player, and no two players of a room have the same name.
func TestRandom(t *testing.T) {
	const rooms, addresses = 4, 100
	_, s := start(t, rooms)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		from := Address{Port: uint16(random.IntN(addresses))}
		packet := fmt.Appendf(nil, "j\x02%02droom %d", random.IntN(addresses), random.IntN(rooms+1))
		switch random.IntN(8) {
		case 0:
			packet = []byte{kindLeave}
		case 1:
			packet = []byte("shello")
		case 2:
			packet[random.IntN(len(packet))] = byte(random.Uint32())
		case 3:
			packet = packet[:random.IntN(len(packet)+1)]
		case 4:
			s.step()
		}
		s.handle(from, packet)
		live, open := 0, 0
		for number, room := range s.rooms {
			if room == nil {
				continue
			}
			open++
			require.NotZero(t, room.players.Live())
			require.Equal(t, uint32(number), *s.byName.Get(room.name.String()))
			inside := map[Name]bool{}
			for player, p := range room.players.All() {
				live++
				inside[p.Name] = true
				require.Equal(t, Seat{uint32(number), player}, *s.seats.Get(p.From))
			}
			require.Len(t, inside, room.players.Live())
		}
		require.Equal(t, s.seats.Len(), live)
		require.Equal(t, s.byName.Len(), open)
		require.Equal(t, rooms-open, s.slots.Available())
	}
	for _, n := range []int{s.counts.roomFull, s.counts.serverFull, s.counts.malformed} {
		assert.NotZero(t, n)
	}
}

// TestPlan: with 16 rooms, plan.json has room for the fullest server, and at most a fifth more. So
// has the plan with checkpoints.
func TestPlan(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		plan := planOf(t, 16, keeps)
		conn := listen(t)
		defer conn.Close()
		var c *save.Checkpoints
		if keeps {
			if c = keeper(t, filepath.Join(t.TempDir(), "pond"), 16); c == nil {
				break
			}
		}
		report, err := budget.Measure(plan, func(b *budget.Budget) error {
			s, err := newServer(b, conn, c)
			if err != nil {
				return err
			}
			for i := range plan.Regions[1].Slots * playersMost {
				from := Address{Port: uint16(i + 1)} // no client has this address
				s.handle(from, fmt.Appendf(nil, "j\x10player%10droom%12d", i, i/playersMost))
				for range linesMost {
					s.handle(from, []byte("shello"))
					s.rooms[i/playersMost].hall.Tick++
				}
			}
			if s.counts.joined != plan.Regions[1].Slots*playersMost {
				return errors.New("a player wasn't let in")
			}
			s.step()
			s.drain(true)
			return nil
		})
		require.NoError(t, err)
		for i, need := range report.Plan.Regions {
			planned := plan.Regions[i].Size
			assert.GreaterOrEqual(t, planned, need.Size, need.Name)
			assert.LessOrEqual(t, planned, need.Size*12/10, need.Name)
		}
	}
}

// TestDrain: a server that drains refuses joins. The others play until the last one leaves or the
// time is over.
func TestDrain(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		conn := listen(t)
		server := conn.LocalAddr()
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		drain := time.Millisecond
		if leaves {
			drain = time.Hour
		}
		go func() { ended <- run(ctx, conn, drain, "") }()
		ada := enter(t, server, "ada", "lobby")
		stop()
		if leaves {
			bob := ask(t, server, "bob", "lobby")
			bob.send([]byte{kindLeave}) // until the server drains, it lets bob in
			for bob.refused() != string(rune(whyServerEnds)) {
				bob.send(bob.asks)
				bob.send([]byte{kindLeave})
			}
			ada.hear(kindPlaces)
			ada.send([]byte{kindLeave})
			assert.Equal(t, string(rune(whyLeft)), ada.refused())
		} else {
			assert.Equal(t, string(rune(whyServerEnds)), ada.refused())
		}
		assert.NoError(t, <-ended)
	}
}

// TestSignal: the program drains at SIGTERM, and prints its counts and report at the end.
func TestSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signal for another process: on Linux, go test ./tests/pond runs it")
	}
	step.Machine(t, step.Loopback())
	pond, lines, server := startProgram(t, "127.0.0.1:0", "-drain", "50ms")
	ada := enter(t, server, "ada", "lobby")
	require.NoError(t, pond.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, string(rune(whyServerEnds)), ada.refused())
	text := ""
	for lines.Scan() {
		text += lines.Text() + "\n"
	}
	assert.NoError(t, pond.Wait(), text)
	assert.Contains(t, text, "joined:1 ")
}

// startProgram starts the program itself, and returns its lines after the address.
func startProgram(t *testing.T, address string, args ...string) (*exec.Cmd, *bufio.Scanner, net.Addr) {
	t.Helper()
	pond := exec.Command(os.Args[0], append([]string{"-addr", address}, args...)...)
	pond.Env = append(os.Environ(), "POND=1")
	said, err := pond.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, step.Start(pond))
	t.Cleanup(func() { _ = pond.Process.Kill() })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listens on "); ok {
			server, err := net.ResolveUDPAddr("udp", address)
			require.NoError(t, err)
			return pond, lines, server
		}
	}
	t.Fatal("the program doesn't listen")
	return nil, nil, nil
}
