package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// recorder plays rooms as a server does, and records them.
type recorder struct {
	t      *testing.T
	dir    string
	server *game.Server
	crew   *game.Crew
}

func newRecorder(t *testing.T) *recorder { return recorderOf(t, doom.Builtin) }

func recorderOf(t *testing.T, wads ...string) *recorder {
	t.Helper()
	plan, err := budget.ParsePlan(defaultServePlan)
	require.NoError(t, err)
	plan.GoHeap = 0 // two open budgets can't both govern the Go heap
	plan.Regions[2].Slots = 1
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	s, err := game.Open(t.Context(), game.Options{WADs: wads, Maps: "all",
		Log: os.DevNull, Seed: 1}, b)
	require.NoError(t, err)
	return &recorder{t, t.TempDir(), s, game.Alone(b, 0)}
}

// play plays a room and records each half as an epoch of its own; the second begins with a saved
// state. It returns the hash after each half.
func (r *recorder) play(room, epoch uint32, m, players, ticks int) (first, last string) {
	t := r.t
	region, err := r.server.Budget.Slots("level").Acquire()
	require.NoError(t, err)
	level, err := r.server.LoadInto(t.Context(), region, r.crew, r.server.Maps[m], players)
	require.NoError(t, err)
	seed := uint64(room)<<32 | uint64(epoch)
	g, err := r.server.BeginEmpty(level, seed)
	require.NoError(t, err)
	head := disk.RecordHead{Room: room, Epoch: epoch, Seed: seed, Players: uint32(players)}
	copy(head.Map[:], level.Name)
	head.MapSum = level.Sum
	first = r.record(g, &head, nil, ticks/2)

	var state bytes.Buffer
	require.NoError(t, level.Snapshots.Take(uint64(level.Room.Tick)))
	require.NoError(t, level.Snapshots.Write(&state, uint64(level.Room.Tick)))
	head.Epoch, head.FirstTick = epoch+1, level.Room.Tick
	last = r.record(g, &head, state.Bytes(), ticks-ticks/2)
	require.NoError(t, region.Release(t.Context()))
	return first, last
}

// record records ticks with players that come, go and act at random.
func (r *recorder) record(g *game.Game, head *disk.RecordHead, state []byte, ticks int) string {
	file, err := disk.CreateRecord(r.dir, head, state)
	require.NoError(r.t, err)
	draw := rand.New(rand.NewPCG(head.Seed, uint64(head.Epoch)))
	inputs := make([]game.Input, head.Players)
	for tick := range ticks {
		for i := range inputs {
			inputs[i] = game.Input{Heading: uint8(draw.Uint32()), Flags: game.Walk}
			switch {
			case tick == i:
				inputs[i].Flags |= game.Enter | game.Fresh
			case draw.IntN(40) == 0:
				inputs[i].Flags |= game.Leave
			case draw.IntN(20) == 0:
				inputs[i].Flags |= game.Enter
			}
			if p := g.Level.Players.At(i); draw.IntN(4) == 0 {
				inputs[i].SpawnAt = p.At.Step(draw.Uint32(), 100)
				inputs[i].Flags |= game.Spawn | game.Use
			}
		}
		block := make([]byte, disk.TickSize(len(inputs)))
		_, err := binary.Encode(block, binary.LittleEndian, inputs)
		require.NoError(r.t, err)
		require.NoError(r.t, file.Append(block))
		require.NoError(r.t, g.StepBy(r.crew, inputs))
	}
	require.NoError(r.t, file.Close())
	return fmt.Sprintf("%016x", uint64(g.Hash()))
}

func offlineOf(t *testing.T, code int, args ...string) (r Offline, stderr string) {
	t.Helper()
	var stdout, errors bytes.Buffer
	args = append([]string{"offline", "-json", "-wad", doom.Builtin}, args...)
	require.Equal(t, code, run(t.Context(), args, &stdout, &errors), errors.String())
	if code == 0 || stdout.Len() > 0 { // it printed the records before a bad one
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &r))
	}
	return r, errors.String()
}

// Records are enough to reproduce the states, from the start and from a save. A torn record ends a
// tick early. A changed input or a flipped bit is detected.
func TestOffline(t *testing.T) {
	rec := newRecorder(t)
	a, b := rec.play(2, 8, 3, 16, 90)
	c, d := rec.play(0, 1, 0, 1, 40)
	r, _ := offlineOf(t, 0, rec.dir)
	assert.Equal(t, Offline{3, []string{d, "", b}, []OfflineRecord{
		{0, 1, "MAP01", 0, 20, c, 0}, {0, 2, "MAP01", 20, 20, d, 0},
		{2, 8, "MAP04", 0, 45, a, 0}, {2, 9, "MAP04", 45, 45, b, 0},
	}}, r)
	wide := filepath.Join(t.TempDir(), "plan.json") // with the same name, which the state contains
	text := bytes.Replace(widePlan, []byte("handheld"), []byte("serve"), 1)
	require.NoError(t, os.WriteFile(wide, text, 0o644))
	same, _ := offlineOf(t, 0, "-plan", wide, rec.dir)
	assert.Equal(t, r, same, "with a plan without slots")
	var table bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"offline", rec.dir, "-wad", doom.Builtin}, &table,
		io.Discard))
	assert.Regexp(t, `(?m)^2 +9 +MAP04 +45 +45 +`+b+` +0$`, table.String())

	name := filepath.Join(rec.dir, "room-02-0009.inputs")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	size := disk.TickSize(16)
	require.NoError(t, os.WriteFile(name, data[:len(data)-1], 0o644))
	r, _ = offlineOf(t, 0, rec.dir)
	torn := r.Records[3]
	assert.Equal(t, []int{44, size - 1}, []int{torn.Ticks, torn.Torn})
	assert.NotEqual(t, b, torn.Hash)

	data[len(data)-2*size]++
	require.NoError(t, os.WriteFile(name, data, 0o644))
	before, stderr := offlineOf(t, 1, rec.dir)
	assert.Equal(t, r.Records[:3], before.Records, "what it played before")
	assert.Equal(t, fmt.Sprintf("frogpond: %s: byte %d: tick 88 is damaged, and tick 89 is not\n",
		name, len(data)-2*size), stderr)
}

func TestOfflineRefuses(t *testing.T) {
	rec := newRecorder(t)
	rec.play(0, 1, 0, 1, 4)
	first, second := filepath.Join(rec.dir, "room-00-0001.inputs"),
		filepath.Join(rec.dir, "room-00-0002.inputs")
	saved, err := disk.OpenReplay(second)
	require.NoError(t, err)
	for want, change := range map[string]func(h *disk.RecordHead){
		`it is of map "MAP77", which no WAD file has`: func(h *disk.RecordHead) {
			copy(h.Map[:], "MAP77")
		},
		"its head says tick 3, and its state is of tick 2": func(h *disk.RecordHead) {
			h.FirstTick = 3
		},
		"it is of another program, plan or data": func(h *disk.RecordHead) { h.Players = 2 },
	} {
		dir, head := t.TempDir(), saved.Head
		change(&head)
		file, err := disk.CreateRecord(dir, &head, saved.State)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		_, stderr := offlineOf(t, 1, dir)
		assert.Contains(t, stderr, "room-00-0002.inputs: ")
		assert.Contains(t, stderr, want)
	}
	// seed 2 makes other maps of the same names
	none, stderr := offlineOf(t, 1, "-seed", "2", rec.dir)
	assert.Empty(t, none)
	assert.Regexp(t, `^frogpond: .*room-00-0001.inputs: it is of a map MAP01 of sum 0x[0-9a-f]{16}, `+
		`and that in builtin has sum 0x[0-9a-f]{16}\n$`, stderr)
	require.NoError(t, os.Rename(first, second))
	_, stderr = offlineOf(t, 1, rec.dir)
	assert.Equal(t, "frogpond: "+second+": it is of room 0, epoch 1\n", stderr)

	r, _ := offlineOf(t, 0, t.TempDir())
	assert.Equal(t, Offline{0, []string{}, []OfflineRecord{}}, r)
	_, stderr = offlineOf(t, 1, filepath.Join(rec.dir, "absent"))
	assert.Contains(t, stderr, refusal(filepath.Join(rec.dir, "absent")))
	_, stderr = offlineOf(t, 1, "-plan", "testdata/hashes/builtin.txt", rec.dir)
	assert.Contains(t, stderr, "builtin.txt")
}
