//go:build linux

package serve

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// smallPlan returns a plan with that many slots for built-in maps.
func smallPlan(slots int) budget.Plan {
	return budget.Plan{Name: "test", Regions: []budget.RegionPlan{
		{Name: "init", Size: 4 * budget.MiB}, {Name: "systems", Size: 16 * budget.MiB},
		{Name: "level", Size: budget.MiB, Slots: slots, State: true}},
		Scratch: budget.ScratchPlan{Workers: 3, Each: 2, Size: 64 * budget.KiB}}
}

func TestMain(m *testing.M) {
	if words := os.Getenv(asServer); words != "" {
		os.Exit(serveAsChild(strings.Fields(words)))
	}
	if err := flag.Set("test.parallel", "16"); err != nil { // most tests wait for clocks of players
		panic(err)
	}
	os.Exit(m.Run())
}

type server struct {
	t       *testing.T
	o       *Options
	stop    context.CancelFunc
	said    *said
	address *net.UDPAddr
	ended   chan struct{}
	result  *Result
	err     error
}

// said is the output of a server, as it arrives.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

var listens = regexp.MustCompile(`players on ([^;]+);`)

// begin starts a server of built-in maps and waits until it listens.
func begin(t *testing.T, change func(o *Options)) *server {
	t.Helper()
	step.Machine(t, step.Loopback(), step.Files(512)) // of the servers of parallel tests
	o := &Options{Address: "127.0.0.1:0", Buffer: 1 << 20, Rooms: 2, Players: 4, Rollback: 8, Bytes: 480, Every: 1,
		MapTime: time.Hour, SaveEvery: time.Hour, Timeout: silence}
	o.Options = game.Options{WADs: []string{doom.Builtin}, Maps: "all", Log: os.DevNull, Seed: 1, Workers: 2}
	o.Plan = func() (budget.Plan, error) { return smallPlan(o.Rooms + 1), nil }
	if change != nil {
		change(o)
	}
	o.Snapshots = o.Rollback + 1
	s := &server{t: t, o: o, said: &said{}, ended: make(chan struct{})}
	o.Say = s.said
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	go func() {
		defer close(s.ended)
		s.result, s.err = Run(ctx, o)
	}()
	t.Cleanup(func() { s.stop(); <-s.ended })
	s.until("listening", func() bool {
		select {
		case <-s.ended:
			require.NoError(t, s.err)
		default:
		}
		return listens.MatchString(s.said.String())
	})
	var err error
	s.address, err = net.ResolveUDPAddr("udp", listens.FindStringSubmatch(s.said.String())[1])
	require.NoError(t, err)
	return s
}

// patience is far longer than any step of a test. silence is a timeout longer than a busy machine
// keeps a player from sending.
const (
	patience = 5 * time.Minute
	silence  = 30 * time.Second
)

func (s *server) until(what string, happened func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		require.True(s.t, time.Now().Before(end), "%s: not within %v; the server said: %s", what, patience, s.said)
	}
}

func (s *server) end() *Result {
	s.t.Helper()
	s.stop()
	<-s.ended
	require.NoError(s.t, s.err, s.said.String())
	return s.result
}

type player struct {
	*client.Client
	mu    sync.Mutex
	conn  *net.UDPConn
	start time.Time
	quit  chan struct{}
	done  chan struct{}

	receivers sync.WaitGroup
}

// joins starts a player that walks in circles and spawns frogs.
func (s *server) joins(o client.Options) *player {
	s.t.Helper()
	o.Timeout = silence
	conn, err := net.DialUDP("udp", nil, s.address)
	require.NoError(s.t, err)
	p := &player{Client: client.New(o), conn: conn, start: time.Now(), quit: make(chan struct{}),
		done: make(chan struct{})}
	p.receivers.Go(p.receive)
	go p.play()
	s.t.Cleanup(p.leave)
	return p
}

func (p *player) receive() {
	buffer := make([]byte, 2000)
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			if op, ok := err.(*net.OpError); ok && op.Err.Error() == net.ErrClosed.Error() {
				return
			}
			continue // the port is closed now
		}
		p.mu.Lock()
		p.Handle(buffer[:n], time.Since(p.start))
		p.mu.Unlock()
	}
}

func (p *player) play() {
	defer close(p.done)
	for tick := 0; ; tick++ {
		select {
		case <-p.quit:
			return
		case <-time.After(tickTime):
		}
		p.mu.Lock()
		in := wire.Input{Heading: uint8(tick / 40 & 15), Flags: uint8(game.Walk)}
		if v := p.View(); v != nil && tick%3 == 0 {
			in.Flags |= uint8(game.Spawn)
			in.X, in.Y = int16(v.Self.X>>16)+int16(tick%9-4)*20, int16(v.Self.Y>>16)+80
		}
		if packet := p.Tick(time.Since(p.start), in); packet != nil {
			_, _ = p.conn.Write(packet)
		}
		p.mu.Unlock()
	}
}

// stops ends the player without a Leave.
func (p *player) stops() {
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	<-p.done
}

func (p *player) leave() {
	p.stops()
	p.mu.Lock()
	if packet := p.Leave(); packet != nil {
		_, _ = p.conn.Write(packet)
	}
	p.conn.Close()
	p.mu.Unlock()
	p.receivers.Wait()
}

// with returns a function that calls look with the client, under the player's lock.
func (p *player) with(look func(c *client.Client) bool) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return look(p.Client)
	}
}

func (p *player) saw(states uint64) func() bool {
	return p.with(func(c *client.Client) bool { return c.States >= states })
}

// sees is saw for states from now on.
func (p *player) sees(states uint64) func() bool {
	p.with(func(c *client.Client) bool { states += c.States; return true })()
	return p.saw(states)
}

func TestPlay(t *testing.T) {
	t.Parallel()
	records := filepath.Join(t.TempDir(), "inputs")
	s := begin(t, func(o *Options) { o.Inputs = records })
	var list []*player
	for i := range 6 {
		list = append(list, s.joins(client.Options{Name: fmt.Sprint("player ", i), Room: i % 2, Seed: uint64(i)}))
	}
	watcher := s.joins(client.Options{Name: "watcher", Room: 0, Watch: true, Seed: 99})
	for _, p := range append(list, watcher) {
		s.until("states", p.saw(step.Pick[uint64](20, 100, 100)))
	}
	frogs := list[0].with(func(c *client.Client) bool { return c.View().Self.Frogs > 0 })
	s.until("frogs", frogs)
	seen := watcher.with(func(c *client.Client) bool { return c.View().Count >= 3 })
	s.until("the watcher sees three players", seen)
	for _, p := range append(list, watcher) {
		assert.Zero(t, p.WrongStates)
		p.leave()
	}
	r := s.end()
	assert.EqualValues(t, 7, r.Joined)
	assert.Zero(t, r.Refused+r.TimedOut+r.Faults+r.Lost+r.Unrecorded)
	assert.NotZero(t, r.Ticks)
	assert.Len(t, r.Hash, 2)
}

// One socket serves IPv4 and, if the machine has it, IPv6.
func TestAddresses(t *testing.T) {
	t.Parallel()
	if c, err := net.ListenPacket("udp", "[::1]:0"); err != nil {
		t.Skip(step.Unproven+"no IPv6: ", err)
	} else {
		c.Close()
	}
	s := begin(t, func(o *Options) { o.Address = ":0" })
	port := s.address.Port
	for i, ip := range []string{"127.0.0.1", "::1"} {
		s.address = &net.UDPAddr{IP: net.ParseIP(ip), Port: port}
		p := s.joins(client.Options{Name: ip, Room: i, Seed: uint64(i + 1)})
		s.until(ip+" plays", p.saw(10))
		p.leave()
	}
	r := s.end()
	assert.EqualValues(t, 2, r.Joined)
	assert.Zero(t, r.Dropped[wire.BadAddress.String()])
}
