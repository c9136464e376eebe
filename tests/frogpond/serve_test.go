//go:build linux && !race && !asan && !checked && !upfront_cgo

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/bots"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/serve"
	"github.com/upfront-mem/upfront/tests/step"
)

// badNetwork makes the bots' network lossy, slow and out of order.
var badNetwork = []string{"-loss", "2", "-jitter", "50ms", "-dup", "1", "-reorder", "1"}

// besideBudget is a server's memory outside of the budget and the Go heap's share: pages of the
// program's file and of C libraries. The share covers the Go heap, which is largest while maps
// load, and the runtime.
const besideBudget = 16 << 20

// checkMemory checks that a server's memory stayed within its plan, and that play allocated none.
func checkMemory(t *testing.T, r *serve.Result) {
	t.Helper()
	assert.Zero(t, r.GoAllocs, strings.Join(r.AllocatedBy, "\n"))
	assert.Zero(t, r.Collections)
	require.NotNil(t, r.BudgetFaults)
	assert.Zero(t, *r.BudgetFaults)
	assert.LessOrEqual(t, r.ResidentAfter, r.ResidentBefore+4<<20)
	require.NotNil(t, r.ResidentPeak)
	assert.LessOrEqual(t, *r.ResidentPeak, r.BudgetBytes+r.GoShare+besideBudget)
	assert.Zero(t, r.Faults+r.Unloaded+r.Lost+r.Unrecorded)
}

// checkPlayed checks that n bots joined, that no bot was refused, lost or sent wrong states, and
// that they saw n*states states.
func checkPlayed(t *testing.T, r bots.Result, n, states int) {
	t.Helper()
	assert.EqualValues(t, n, r.Joined)
	assert.Zero(t, r.Refused+r.Lost+r.WrongStates+r.RoomsEnded)
	assert.GreaterOrEqual(t, r.States, uint64(n*states))
}

// A server whose players have a bad network takes no memory during play. Its records replay to its
// last states.
func TestServe(t *testing.T) {
	beside(t)
	dir, rooms, states := t.TempDir(), step.Pick(2, 4, 64), step.Pick(20, 70, minute)
	step.Machine(t, step.Files(uint64(2*rooms)+32)) // inputs and saves of each
	s := startServer(t, "-rooms", strconv.Itoa(rooms), "-inputs", filepath.Join(dir, "inputs"),
		"-saves", filepath.Join(dir, "saves"), "-save-every", "1s", "-scores", filepath.Join(dir, "scores"),
		"-checkpoints", filepath.Join(dir, "checkpoints"))
	saw := s.bots(16*rooms, states, badNetwork...).saw()
	r := s.end()
	checkPlayed(t, saw, 16*rooms, states)
	checkMemory(t, &r)
	if step.Now() >= step.Check { // in earlier steps inputs are sent too far ahead to be late
		assert.NotZero(t, r.Rollbacks)
	}
	assert.EqualValues(t, 16*rooms, r.Joined)
	again := offline(t, filepath.Join(dir, "inputs"))
	assert.Equal(t, r.Hash, again.Hash)
	assert.Len(t, again.Records, rooms)
	figures(t, &r)
}

// figures logs a server's result in soak.
func figures(t *testing.T, r *serve.Result) {
	if step.Now() == step.Soak {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		t.Logf("%s", text)
	}
}

// Maps change while players play. Each record replays to the same state each time, and the last of
// each room to the server's last state.
func TestServeRotates(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	dir := t.TempDir()
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-map-time", "1s", "-inputs", dir)
	states := step.Pick(0, 90, minute)
	saw := s.bots(32, states, badNetwork...).saw()
	r := s.end()
	checkPlayed(t, saw, 32, states)
	assert.Zero(t, r.Collections)
	assert.Zero(t, *r.BudgetFaults)
	assert.Zero(t, r.Faults+r.Unloaded+r.Lost+r.Unrecorded)
	again := offline(t, "-wad", doom.Builtin, dir)
	assert.Equal(t, r.Hash, again.Hash)
	assert.Greater(t, len(again.Records), 4)
	assert.Equal(t, again, offline(t, "-wad", doom.Builtin, dir))
}

// With three times the players that the plan admits, those inside play on. The others get a refusal
// once a second.
func TestServeOverload(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-health", "127.0.0.1:0")
	const places, seconds = 32, 3
	in := s.botsFor(places, patience)
	s.inside(places)
	out := s.botsFor(2*places, seconds*time.Second, "-seed", "2").saw()
	in.signal(syscall.SIGTERM)
	checkPlayed(t, in.saw(), places, 1)
	assert.Zero(t, out.Joined+out.Lost+out.States)
	r := s.end()
	assert.EqualValues(t, places, r.Joined)
	assert.NotZero(t, out.Refused)
	assert.GreaterOrEqual(t, r.Refused, out.Refused, "some were gone when the answer came")
	if step.Now() == step.Soak {
		assert.InDelta(t, 2*places*seconds, out.Refused, 2*places, "a knock a second")
		assert.InDelta(t, out.Refused, r.Refused, 2*places)
	}
	assert.Zero(t, *r.BudgetFaults)
}

// Players of one IP address get at most -per-address places. More players are refused.
func TestServeOneAddress(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-per-address", "3", "-health", "127.0.0.1:0")
	in := s.botsFor(3, patience)
	s.inside(3)
	out := s.botsFor(2, time.Second, "-seed", "2").saw()
	assert.Zero(t, out.Joined+out.Lost+out.States)
	in.signal(syscall.SIGTERM)
	checkPlayed(t, in.saw(), 3, 1)
	assert.EqualValues(t, 3, s.end().Joined)
}

// A tick costs the players inside the same, with or without a crowd outside.
func TestServeOverloadCost(t *testing.T) {
	step.Needs(t, step.Soak)
	const rooms, pairs, d = 8, 3, 10 * time.Second
	var cost, late [2][]float64
	for range pairs {
		for crowd := range 2 {
			s := startServer(t, "-rooms", strconv.Itoa(rooms), "-health", "127.0.0.1:0")
			in := s.botsFor(16*rooms, d+3*time.Second)
			s.inside(16 * rooms)
			if crowd == 1 {
				assert.Zero(t, s.botsFor(2*16*rooms, d, "-seed", "2").saw().Joined)
			}
			checkPlayed(t, in.saw(), 16*rooms, 5)
			r := s.end()
			cost[crowd] = append(cost[crowd], r.CPUMean)
			late[crowd] = append(late[crowd], float64(r.LateTicks)/float64(r.Ticks))
		}
	}
	t.Logf("a tick's CPU time in us, alone %.1f, with a crowd %.1f; late, alone %.4f, with a "+
		"crowd %.4f", cost[0], cost[1], late[0], late[1])
	assert.LessOrEqual(t, median(cost[1]), 1.1*median(cost[0]))
	// The number of late ticks depends on the rest of the machine: one in a hundred more is
	// allowed.
	assert.LessOrEqual(t, median(late[1]), float64(1.1*median(late[0]))+0.01)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// Attackers of each kind, one kind after the other, don't disturb players that behave.
func TestServeHostile(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	const rooms, behaving = 2, 16
	s := startServer(t, "-wad", doom.Builtin, "-rooms", strconv.Itoa(rooms), "-health", "127.0.0.1:0")
	each := step.Pick(0, time.Second, time.Minute)
	well := s.botsFor(behaving, time.Hour)
	s.inside(behaving)
	for _, kind := range bots.Kinds() {
		for attacked := false; !attacked; { // a busy machine may delay the attack
			saw := s.botsFor(2, each, "-hostile", kind).saw()
			require.NotNil(t, saw.GotIn, kind)
			assert.Zero(t, *saw.GotIn, kind)
			attacked = saw.Sent[kind] > 0 && (kind != "replay" || saw.Joined > 0)
		}
	}
	well.signal(syscall.SIGTERM)
	checkPlayed(t, well.saw(), behaving, 1)
	r := s.end()
	checkMemory(t, &r)
	for _, reason := range []string{"cookie", "session", "kind", "malformed", "replay"} {
		assert.NotZero(t, r.Dropped[reason], reason)
	}
	if step.Now() == step.Soak {
		const half = 35 / 2 // half of the ticks a second on an idle machine
		assert.Greater(t, r.Ticks, uint64(rooms*half*int(each.Seconds())*len(bots.Kinds())))
	}
	figures(t, &r)
}

// A killed server goes on from its saves. Its records replay, even if torn, and its scores are
// whole except for the last second.
func TestServeKilled(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	dir := t.TempDir()
	inputs, saves := filepath.Join(dir, "inputs"), filepath.Join(dir, "saves")
	scores := filepath.Join(dir, "scores")
	args := []string{"-wad", doom.Builtin, "-rooms", "2", "-inputs", inputs, "-saves", saves,
		"-save-every", "200ms", "-scores", scores}
	s := startServer(t, args...)
	s.botsFor(32, patience, badNetwork...) // killed at the end
	s.until("both saves of both rooms, and scores", func() bool {
		for _, name := range []string{"room-00.a", "room-00.b", "room-01.a", "room-01.b"} {
			if _, err := os.Stat(filepath.Join(saves, name)); err != nil {
				return false
			}
		}
		list, _, err := readScores(scores)
		return err == nil && len(list) > 0 && list[len(list)-1].Ticks > 4*35
	})
	s.kill()
	saved := savedTicks(t, saves, 2)
	before, _, err := readScores(scores)
	require.NoError(t, err)
	first := offline(t, "-wad", doom.Builtin, inputs)
	require.Len(t, first.Records, 2)
	for i, r := range first.Records {
		if step.Now() == step.Soak {
			assert.GreaterOrEqual(t, r.First+uint32(r.Ticks)+64, saved[i], "its save isn't far ahead")
		}
	}
	checkScores(t, inputs, before)
	tear(t, scores, "FSC1 and some")
	tear(t, filepath.Join(inputs, "room-00-0000.inputs"), "half a tick")

	s = startServer(t, args...)
	assert.Contains(t, s.stderr.String(), "were no whole score: they are cut off")
	const states = 20
	saw := s.bots(32, states).saw()
	r := s.end()
	checkPlayed(t, saw, 32, states)
	for i, tick := range saved {
		assert.Greater(t, r.TickCount[i], tick)
	}
	checkMemory(t, &r)
	after, torn, err := readScores(scores)
	require.NoError(t, err)
	assert.Zero(t, torn)
	require.GreaterOrEqual(t, len(after), len(before))
	assert.Equal(t, before, after[:len(before)])
	again := offline(t, "-wad", doom.Builtin, inputs)
	assert.Equal(t, r.Hash, again.Hash)
	require.Len(t, again.Records, 4)
	assert.NotZero(t, again.Records[0].Torn)
	assert.Equal(t, first.Records[1], again.Records[2], "of room 1")
}

// A server of another process takes over with -upgrade. The players stay, and neither server
// allocates on the Go heap during play.
func TestServeUpgrade(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	args := []string{"-wad", doom.Builtin, "-rooms", "2", "-health", "127.0.0.1:0", "-saves", t.TempDir(),
		"-checkpoints", filepath.Join(t.TempDir(), "checkpoints")}
	s := startServer(t, args...)
	players := s.botsFor(32, patience)
	s.inside(32)
	heir := startServer(t, append(args, "-upgrade")...)
	var first serve.Result
	s.result(&first)
	assert.Equal(t, s.address, heir.address)
	assert.Zero(t, first.GoAllocs, strings.Join(first.AllocatedBy, "\n"))
	assert.EqualValues(t, 32, first.Joined)
	heir.inside(32)
	players.signal(syscall.SIGTERM)
	checkPlayed(t, players.saw(), 32, 1)
	second := heir.end()
	checkMemory(t, &second)
	assert.Zero(t, second.Joined)
	alone := startServer(t, append(args, "-upgrade")...)
	assert.Contains(t, alone.stderr.String(), "-upgrade: no server has")
	alone.end()
}

// checkScores replays the records up to a second before the room's newest score, since late inputs
// may undo later scores. The scores must cover the players' results at that tick. In soak it
// replays up to two seconds before the end of the record, as scores are written within one.
func checkScores(t *testing.T, inputs string, list []disk.Score) {
	t.Helper()
	type player struct{ room, number uint32 }
	last, newest := map[player]disk.Score{}, map[uint32]int{}
	for _, c := range list {
		last[player{c.Room, c.Player}], newest[c.Room] = c, int(c.Ticks)
	}
	rec := newRecorder(t)
	files, err := disk.Records(inputs)
	require.NoError(t, err)
	points := uint32(0)
	for _, file := range files {
		replay, err := disk.OpenReplay(file.Name)
		require.NoError(t, err)
		replay.Ticks = max(0, step.Pick(0, min(replay.Ticks, newest[file.Room]-35), replay.Ticks-2*35))
		for i, p := range rec.playersAfter(replay) {
			c := last[player{file.Room, uint32(i)}]
			assert.GreaterOrEqual(t, c.Caught, p.Caught, "room %d, player %d", file.Room, i)
			assert.GreaterOrEqual(t, c.Deaths, p.Deaths, "room %d, player %d", file.Room, i)
			assert.GreaterOrEqual(t, c.Exits, p.Exits, "room %d, player %d", file.Room, i)
			points += p.Caught + p.Deaths + p.Exits
		}
	}
	assert.NotZero(t, points, "there was something to lose")
}

// playersAfter returns the players after the last tick of a record that began without a state.
func (r *recorder) playersAfter(replay *disk.Replay) (list []game.Player) {
	t := r.t
	t.Helper()
	region, err := r.server.Budget.Slots("level").Acquire()
	require.NoError(t, err)
	m, err := mapNamed(r.server.Maps, printable(replay.Head.Map[:]))
	require.NoError(t, err)
	level, err := r.server.LoadInto(t.Context(), region, r.crew, m, int(replay.Head.Players))
	require.NoError(t, err)
	g, err := r.server.BeginEmpty(level, replay.Head.Seed)
	require.NoError(t, err)
	inputs := make([]game.Input, replay.Head.Players)
	for i := range replay.Ticks {
		_, err := binary.Decode(replay.Inputs(i), binary.LittleEndian, inputs)
		require.NoError(t, err)
		require.NoError(t, g.StepBy(r.crew, inputs))
	}
	for i := range inputs {
		list = append(list, *level.Players.At(i))
	}
	require.NoError(t, region.Release(t.Context()))
	return list
}

// savedTicks returns the ticks of the newest saves.
func savedTicks(t *testing.T, dir string, rooms int) (ticks []uint32) {
	t.Helper()
	saves, err := disk.OpenSaves(dir, rooms)
	require.NoError(t, err)
	defer saves.Close()
	for i := range rooms {
		h, _, found, err := saves.Read(i)
		require.NoError(t, err)
		require.True(t, found)
		ticks = append(ticks, h.Tick)
	}
	return ticks
}

// tear appends bytes that a crash may leave at the end of a file.
func tear(t *testing.T, name, tail string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(tail)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// The Python client of the protocol's page joins, walks, and reads each state.
func TestServePython(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		step.Lacks(t, "python3", "python3")
	}
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "1")
	const states = 40
	frogs := s.bots(8, states)
	out, err := exec.Command(python, "testdata/client.py", s.address, "3").Output()
	require.NoError(t, err)
	var saw struct {
		Joined, Refused, States, Wrong int
		Moved                          float64
	}
	require.NoError(t, json.Unmarshal(out, &saw), string(out))
	assert.Equal(t, 1, saw.Joined)
	assert.Zero(t, saw.Refused+saw.Wrong)
	assert.Greater(t, saw.States, 20)
	assert.Greater(t, saw.Moved, 10.0)
	checkPlayed(t, frogs.saw(), 8, states)
	s.end()
}

// A server on all of the machine's addresses answers from the address of the request.
func TestServeAtEachAddress(t *testing.T) {
	beside(t)
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "1", "-addr", ":0")
	_, port, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	const states = 5
	for _, asked := range []string{"127.0.0.1", "127.0.0.2"} {
		s.address = net.JoinHostPort(asked, port)
		checkPlayed(t, s.bots(2, states).saw(), 2, states)
	}
	checkMemory(t, new(s.end()))
}

// A server plays on when the reader of its stderr is gone: it reports the end of a room, and saves
// at its own end.
func TestServeNobodyReadsStderr(t *testing.T) {
	beside(t)
	step.Machine(t, step.Loopback())
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	s := &serving{process: startInto(t, nil, w, "serve", "-json", "-addr", "127.0.0.1:0", "-wad", doom.Builtin,
		"-rooms", "1", "-saves", dir, "-plant", "panic:0:10")}
	lines := bufio.NewReader(r)
	for s.address == "" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if m := listensOn.FindStringSubmatch(line); m != nil {
			s.address = m[1]
		}
	}
	require.NoError(t, errors.Join(r.Close(), w.Close()))
	player := s.bots(1, 30)
	select {
	case <-s.ended:
		require.Fail(t, "the server is gone", s.cmd.ProcessState)
	case <-player.ended:
	}
	saw := player.saw()
	assert.EqualValues(t, 1, saw.RoomsEnded)
	assert.EqualValues(t, 2, saw.Joined)
	s.signal(syscall.SIGTERM)
	<-s.ended
	assert.Equal(t, 1, s.cmd.ProcessState.ExitCode(), "as a room was unwound: %s", s.cmd.ProcessState)
	var result serve.Result
	require.NoError(t, json.Unmarshal(s.stdout.Bytes(), &result))
	assert.EqualValues(t, 1, result.Faults)
	assert.Equal(t, result.TickCount, savedTicks(t, dir, 1))
}

// A server whose result has no reader has already saved. It fails with the reason.
func TestServeNobodyReadsStdout(t *testing.T) {
	beside(t)
	step.Machine(t, step.Loopback())
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	s := startInto(t, w, nil, "serve", "-json", "-addr", "127.0.0.1:0", "-wad", doom.Builtin, "-rooms", "1",
		"-saves", dir)
	require.NoError(t, w.Close())
	s.says("players on", 1)
	s.signal(syscall.SIGTERM)
	<-s.ended
	assert.Equal(t, 1, s.cmd.ProcessState.ExitCode(), s.cmd.ProcessState)
	assert.Contains(t, s.stderr.String(), "broken pipe")
	savedTicks(t, dir, 1)
}

// Signals that the page doesn't name don't end a server.
func TestServeOtherSignals(t *testing.T) {
	beside(t)
	dir := t.TempDir()
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "1", "-saves", dir)
	for _, other := range []syscall.Signal{syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGIO, syscall.SIGPWR, syscall.SIGXCPU, syscall.SIGXFSZ,
		syscall.SIGURG, syscall.SIGCHLD, syscall.SIGWINCH, syscall.SIGCONT, 40} {
		s.signal(other)
	}
	const states = 5
	checkPlayed(t, s.bots(1, states).saw(), 1, states)
	r := s.end()
	assert.Equal(t, r.TickCount, savedTicks(t, dir, 1))
}

// A second signal ends a drain at once, without a result.
func TestServeSecondSignal(t *testing.T) {
	beside(t)
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "1", "-drain", "1h", "-health", "127.0.0.1:0")
	player := s.botsFor(1, patience)
	s.inside(1)
	player.kill() // without a Leave, so the server waits for it
	s.signal(syscall.SIGTERM)
	for over := false; !over; {
		select {
		case <-s.ended:
			over = true
		case <-time.After(50 * time.Millisecond):
			_ = s.cmd.Process.Signal(syscall.SIGTERM) // an error if it has ended
		}
	}
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	assert.True(t, status.Signaled(), s.cmd.ProcessState)
	assert.Empty(t, s.stdout.String())
}

// At SIGHUP a server reads its plan file again and goes on with that plan. If the plan is too
// small, the old one stays.
func TestServeAnotherPlan(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	const states = 10
	name := filepath.Join(t.TempDir(), "plan.json")
	write := func(pairs ...string) {
		plan := strings.NewReplacer(pairs...).Replace(string(defaultServePlan))
		for i := 1; i < len(pairs); i += 2 {
			require.Contains(t, plan, pairs[i])
		}
		require.NoError(t, os.WriteFile(name, []byte(plan), 0o600))
	}
	write()
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-plan", name)
	checkPlayed(t, s.bots(4, states).saw(), 4, states)
	write("48MiB", "53376KiB", "1792KiB", "1728KiB") // the same sum, with 66 slots
	s.signal(syscall.SIGHUP)
	s.says("players on", 2)
	assert.NotContains(t, s.stderr.String(), "the old one stays")
	checkPlayed(t, s.bots(4, states).saw(), 4, states)
	write("48MiB", "4KiB")
	s.signal(syscall.SIGHUP)
	s.says("the old one stays", 1)
	s.says("players on", 3)
	checkPlayed(t, s.bots(4, states).saw(), 4, states)
	r := s.end()
	assert.Equal(t, 3, r.Plans)
	assert.EqualValues(t, 12, r.Joined)
}

// A server records the use of its rooms without allocating. With -flight it also keeps a trace of
// the seconds before an ErrFull.
func TestServeRecords(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	const states = 30
	dir := t.TempDir()
	file, flights := filepath.Join(dir, "timeline.json"), filepath.Join(dir, "flights")
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-timeline", file)
	saw := s.bots(4, states).saw()
	r := s.end()
	checkPlayed(t, saw, 4, states)
	checkMemory(t, &r)
	d, room := readTimeline(t, file, "level 0")
	assert.NotZero(t, d.Ticks)
	if step.Now() == step.Soak {
		assert.InDelta(t, 35*r.Seconds, d.Ticks, 35, "one in a 35th of a second")
	}
	assert.NotZero(t, slices.Max(room.Most))

	s = startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-flight", flights, "-plant", "full:0:10")
	s.bots(4, states).saw()
	s.says("the last seconds are in "+flights, 1)
	s.signal(syscall.SIGTERM)
	<-s.ended
	files, err := os.ReadDir(flights)
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are more if ticks were late")
	out, err := exec.Command("go", "tool", "trace", "-d=parsed",
		filepath.Join(flights, files[0].Name())).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), `Category="frogpond.flight"`)
}
