//go:build linux

package serve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/bots"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
	"github.com/upfront-mem/upfront/tests/step"
)

// asServer is the environment variable that makes the test binary a server: its options as words.
const asServer = "FROGPOND_SERVER"

// outlivingOptions are the options of the servers of a test: a folder, an address and a number of
// rooms. Each room is for two players.
func outlivingOptions(words []string) *Options {
	rooms, _ := strconv.Atoi(words[2])
	o := &Options{Address: words[1], Buffer: 4 << 20, Rooms: rooms, Players: 2, Rollback: 8, Bytes: 480, Every: 2,
		MapTime: time.Hour, SaveEvery: time.Hour, Timeout: silence, Say: os.Stderr,
		Checkpoints: filepath.Join(words[0], "place"), Inputs: filepath.Join(words[0], "inputs")}
	o.Upgrade = slices.Contains(words, "upgrade")
	o.Options = game.Options{WADs: []string{doom.Builtin}, Maps: "all", Log: os.DevNull, Seed: 1, Workers: 2,
		Snapshots: 9}
	if slices.Contains(words, "other") { // other maps of the same names
		o.Seed = 2
	}
	o.Plan = func() (budget.Plan, error) {
		plan := smallPlan(rooms + 1)
		plan.Regions[1].Size = 32 * budget.MiB
		return plan, nil
	}
	return o
}

// serveAsChild serves until SIGTERM. It returns the exit code.
func serveAsChild(words []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	result, err := Run(ctx, outlivingOptions(words))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "joined", result.Joined)
	fmt.Fprintln(os.Stderr, "dropped", result.Dropped["kernel"], result.Dropped["unsent"])
	return 0
}

// child is a server in a process of its own.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  said
	ended chan struct{}
}

func startChild(t *testing.T, words ...string) *child {
	c := &child{t: t, cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), asServer+"="+strings.Join(words, " "))
	c.cmd.Stderr = &c.said
	require.NoError(t, step.Start(c.cmd))
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// listens waits until the server listens.
func (c *child) listens() {
	c.t.Helper()
	c.until(func() bool { return listens.MatchString(c.said.String()) })
}

// plays waits until the server listens or has ended, and reports whether it listens.
func (c *child) plays() bool {
	for {
		select {
		case <-c.ended:
			return false
		case <-time.After(time.Millisecond):
			if listens.MatchString(c.said.String()) {
				return true
			}
		}
	}
}

func (c *child) until(happened func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		select {
		case <-c.ended:
			require.Fail(c.t, "the server ended", "%s", &c.said)
		default:
		}
		require.True(c.t, time.Now().Before(end), "%s", &c.said)
	}
}

// resident returns the resident memory of the server in MiB.
func (c *child) resident() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.cmd.Process.Pid))
	pages, _ := strconv.Atoi(strings.Fields(string(text) + " 0 0")[1])
	return pages * os.Getpagesize() >> 20
}

// freeAddress returns an address that no other program gets by chance in the meantime.
func freeAddress(t *testing.T) *net.UDPAddr {
	for {
		at := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20_000 + rand.IntN(10_000)}
		if c, err := net.ListenUDP("udp", at); err == nil {
			require.NoError(t, c.Close())
			return at
		}
	}
}

// players are the players of a test: two bots for each room, and a watcher that measures the
// silence.
type players struct {
	bots    int
	watcher *player
	stop    context.CancelFunc
	ended   sync.WaitGroup
	result  *bots.Result
	mu      sync.Mutex
	silence time.Duration // the longest since the last call of silent
}

func startPlayers(t *testing.T, address *net.UDPAddr, count int) *players {
	s := &server{t: t, address: address, said: &said{}}
	c := &players{bots: count, watcher: s.joins(client.Options{Name: "watcher", Room: 0, Watch: true, Seed: 99})}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	play := make(chan struct{})
	c.ended.Go(func() {
		var err error
		c.result, err = bots.Run(ctx, bots.Options{Address: address.String(), Count: count, For: time.Hour, Room: -1,
			Rate: 1, Every: 2, Timeout: silence, Seed: 1, Playing: func() { close(play) }})
		assert.NoError(t, err)
	})
	t.Cleanup(func() { stop(); c.ended.Wait() })
	select {
	case <-play:
	case <-time.After(patience):
		require.Fail(t, "not all bots play")
	}
	s.until("the watcher sees", c.watcher.saw(5))
	c.ended.Go(func() { c.measure(ctx) })
	return c
}

func (c *players) measure(ctx context.Context) {
	states, heard := uint64(0), time.Now()
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		c.watcher.with(func(w *client.Client) bool {
			if w.States != states {
				c.mu.Lock()
				c.silence = max(c.silence, time.Since(heard))
				c.mu.Unlock()
				states, heard = w.States, time.Now()
			}
			return true
		})()
	}
}

// silent returns the longest silence since the last call.
func (c *players) silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.silence = 0 }()
	return c.silence
}

// leaves ends the players. None has lost its session for another one. A client that heard nothing
// for 1.5 seconds asks for its session, so there may be more accepts than players.
func (c *players) leaves(t *testing.T) {
	t.Helper()
	c.stop()
	c.ended.Wait()
	assert.GreaterOrEqual(t, c.result.Joined, uint64(c.bots))
	assert.Zero(t, c.result.Refused+c.result.Lost+c.result.WrongStates+c.result.RoomsEnded)
	c.watcher.leave()
	assert.Zero(t, c.watcher.Losses+c.watcher.WrongStates+c.watcher.RoomsEnded)
}

// replay plays the inputs of a server again, from its start on, and compares the states with those
// of its last checkpoints. It returns the number of rooms that it compared. A record may end too
// long before the checkpoint, whose inputs have the last 32 ticks.
func replay(t *testing.T, words []string) (rooms, compared int) {
	t.Helper()
	s := built(t, func(o *Options) {
		*o = *outlivingOptions(words)
		o.Inputs, o.Say = "", &said{}
	})
	require.Empty(t, s.o.Say.(*said).String())
	files, err := disk.Records(filepath.Join(words[0], "inputs"))
	require.NoError(t, err)
	newest := map[uint32]string{}
	for _, f := range files {
		newest[f.Room] = f.Name
	}
	for _, r := range s.rooms {
		require.True(t, r.play.isOutlived)
		record, err := disk.OpenReplay(newest[uint32(r.number)])
		require.NoError(t, err)
		again := s.loader.again(t, record)
		tick, last := record.Head.FirstTick, r.play.tick
		for i := 0; i < record.Ticks && tick < last; i++ {
			require.NoError(t, again.game.StepBy(s.loader.crew, inputsOf(record.Inputs(i))))
			tick++
		}
		if last-tick < window-ahead {
			for ; tick < last; tick++ {
				require.NoError(t, again.game.StepBy(s.loader.crew, r.inputs.of(tick)))
			}
			require.Equal(t, again.game.Hash(), r.play.game.Hash(), "room %d, tick %d", r.number, tick)
			compared++
		}
		require.NoError(t, again.region.Release(t.Context()))
	}
	rooms = len(s.rooms)
	s.killed(t)
	return rooms, compared
}

// again loads the map of a record, with its first state.
func (l *loader) again(t *testing.T, record *disk.Replay) *play {
	had := l.s.checkpoints
	l.s.checkpoints = nil // it is no room's
	defer func() { l.s.checkpoints = had }()
	p, err := l.loadNamed(&room{}, record.Head.Map, record.Head.Epoch, func(p *play) ([]byte, error) {
		if len(record.State) == 0 {
			return nil, nil
		}
		return nil, p.restore(record.Head.FirstTick, record.State)
	})
	require.NoError(t, err)
	return p
}

func inputsOf(raw []byte) []game.Input {
	list := make([]game.Input, len(raw)/int(unsafe.Sizeof(game.Input{})))
	copy(bytesOf(list), raw)
	return list
}

// TestKilled kills a server with players in each room, again and again. Each room goes on from its
// last checkpoint, whose state is that of its inputs. No player joins again.
func TestKilled(t *testing.T) {
	step.Needs(t, step.Check)
	address, rooms, kills := freeAddress(t), 64, step.Pick(0, 5, 50)
	words := []string{t.TempDir(), address.String(), strconv.Itoa(rooms)}
	c := startChild(t, words...)
	c.listens()
	crowd := startPlayers(t, address, 2*rooms)
	began, size := c.resident(), sizeOf(t, words)
	states, compared, longest := 0, 0, time.Duration(0)
	for kill := range kills {
		time.Sleep(time.Duration(rand.IntN(int(time.Second))))
		c.kill()
		crowd.silent()
		if kill%2 == 1 { // a server in this process goes on before the next one
			all, n := replay(t, words)
			states, compared = states+all, compared+n
		}
		c = startChild(t, words...)
		c.listens()
		c.until(crowd.watcher.sees(3))
		if kill%2 == 0 {
			longest = max(longest, crowd.silent())
		}
		require.NotContains(t, c.said.String(), "checkpoint", "none is refused")
		require.Equal(t, size, sizeOf(t, words))
	}
	t.Logf("%d kills of %d rooms: %d of %d states compared; the longest silence was %v; resident at the start %d MiB, "+
		"at the end %d MiB", kills, rooms, compared, states, longest, began, c.resident())
	crowd.leaves(t)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	<-c.ended
	assert.Zero(t, c.cmd.ProcessState.ExitCode(), "%s", &c.said)
	assert.Contains(t, c.said.String(), "joined 0\n")
	all, n := replay(t, words)
	assert.Equal(t, all, n, "after an end by a signal the records are whole")
	files, err := os.ReadDir(words[0])
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

// TestUpgrade lets one process after the other take over a server with players in each room. No
// player is lost, and no round trip.
func TestUpgrade(t *testing.T) {
	step.Needs(t, step.Check)
	address, rooms, upgrades := freeAddress(t), 64, step.Pick(0, 3, 100)
	words := []string{t.TempDir(), address.String(), strconv.Itoa(rooms)}
	c := startChild(t, words...)
	c.listens()
	if granted := grantedBy(t, c); granted < 4<<20 {
		t.Skip(step.Unproven+"packets may be lost: the system grants a receive buffer of only ", granted)
	}
	crowd := startPlayers(t, address, 2*rooms)
	p := startProbe(t, address)
	began, longest := c.resident(), time.Duration(0)
	for upgrade := range upgrades {
		if upgrade == 1 { // refused in words
			other := slices.Concat(words, []string{"upgrade", "other"})
			less := slices.Concat(words[:2], []string{strconv.Itoa(rooms - 1), "upgrade"})
			for i, words := range [][]string{other, less} {
				heir := startChild(t, words...)
				require.False(t, heir.plays(), "%s", &heir.said)
				assert.Equal(t, 1, heir.cmd.ProcessState.ExitCode())
				if i == 1 { // before the server stops
					assert.Contains(t, heir.said.String(), fmt.Sprintf("the server has %d rooms", rooms))
					continue
				}
				const why = "room 0: its checkpoint: "
				assert.Contains(t, heir.said.String(), why)
				c.until(func() bool { return strings.Contains(c.said.String(), "plays on") })
				assert.Regexp(t, "the other process doesn't take over: .*"+why, c.said.String())
			}
			assert.NoFileExists(t, filepath.Join(words[0], "place.refused"))
		}
		crowd.silent()
		heir := startChild(t, append(words, "upgrade")...)
		heir.listens()
		select {
		case <-c.ended:
		case <-time.After(patience):
			require.Fail(t, "the server doesn't end", "%s", &c.said)
		}
		require.Zero(t, c.cmd.ProcessState.ExitCode(), "%s", &c.said)
		c.droppedNothing()
		if upgrade > 0 {
			assert.Contains(t, c.said.String(), "joined 0\n")
		}
		c = heir
		c.until(crowd.watcher.sees(3))
		longest = max(longest, crowd.silent())
	}
	trips, lost := p.end()
	t.Logf("%d upgrades of %d rooms with %d players: %d round trips, the longest %v; the longest silence was %v; "+
		"resident at the start %d MiB, at the end %d MiB", upgrades, rooms, 2*rooms, trips, p.longest, longest, began,
		c.resident())
	crowd.leaves(t)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	<-c.ended
	assert.Zero(t, c.cmd.ProcessState.ExitCode(), "%s", &c.said)
	c.droppedNothing()
	assert.Empty(t, lost, "round trips, of %d", trips)
	all, n := replay(t, words)
	assert.Equal(t, all, n)
}

// droppedNothing skips the test if the system dropped datagrams of a server that has ended: if the
// machine stalls for seconds, the socket's buffer is full.
func (c *child) droppedNothing() {
	if !strings.Contains(c.said.String(), "dropped 0 0\n") {
		c.t.Skip(step.Unproven+"the machine is too slow: the system dropped datagrams: ", &c.said)
	}
}

func grantedBy(t *testing.T, c *child) (bytes int) {
	_, after, _ := strings.Cut(c.said.String(), "requested, ")
	_, err := fmt.Sscan(after, &bytes)
	require.NoError(t, err, "%s", &c.said)
	return bytes
}

// probe sends a Hello each five milliseconds, and counts the answers.
type probe struct {
	conn          *net.UDPConn
	quit          chan struct{}
	sending, done sync.WaitGroup
	mu            sync.Mutex
	sent          []time.Time // zero: answered
	came          int
	longest       time.Duration
}

func startProbe(t *testing.T, to *net.UDPAddr) *probe {
	conn, err := net.DialUDP("udp", nil, to)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadBuffer(4<<20))
	p := &probe{conn: conn, quit: make(chan struct{})}
	t.Cleanup(func() { conn.Close(); p.done.Wait() })
	p.sending.Go(func() {
		for {
			select {
			case <-p.quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
			p.mu.Lock()
			p.sent = append(p.sent, time.Now())
			n := len(p.sent)
			p.mu.Unlock()
			if _, err := conn.Write(wire.AppendHello(nil, wire.Nonce(n))); err != nil {
				return // the test has ended
			}
		}
	})
	p.done.Go(func() {
		buffer := make([]byte, 2000)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			nonce, _, reason := wire.ParseChallenge(buffer[:n])
			p.mu.Lock()
			if reason == 0 {
				p.came++
				p.longest = max(p.longest, time.Since(p.sent[nonce-1]))
				p.sent[nonce-1] = time.Time{}
			}
			p.mu.Unlock()
		}
	})
	return p
}

// end returns the number of round trips, when all are over, and the numbers of those that were
// lost.
func (p *probe) end() (trips int, lost []int) {
	close(p.quit)
	p.sending.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		isOver := p.came == len(p.sent) || time.Now().After(end)
		p.mu.Unlock()
		if isOver {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sent {
		if !p.sent[i].IsZero() {
			lost = append(lost, i)
		}
	}
	return len(p.sent), lost
}

func sizeOf(t *testing.T, words []string) int64 {
	info, err := os.Stat(filepath.Join(words[0], "place"))
	require.NoError(t, err)
	return info.Size()
}
