package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/step"
)

// levels are maps to play again, each for a number of ticks.
type levels struct {
	name  string
	args  []string
	ticks int
}

// again returns the maps to play again: a few, or all of them in soak.
func again(t *testing.T, soak int) []levels {
	t.Helper()
	own := levels{doom.Builtin, []string{"-wad", doom.Builtin}, 70}
	installed := levels{"freedoom", []string{"-maps", "E1M1,MAP20"}, 70}
	switch {
	case build == "release" && step.Now() == step.Soak:
		own.ticks, installed.ticks, installed.args = soak, soak, nil
	case step.Now() < step.Check:
		own.ticks, installed.ticks = 25, 25
		own.args = append(own.args, "-maps", "MAP01,MAP07")
	}
	return []levels{own, installed}
}

func eachLevels(t *testing.T, soak int, fn func(t *testing.T, l levels)) {
	for _, l := range again(t, soak) {
		t.Run(l.name, func(t *testing.T) {
			if l.name != doom.Builtin {
				needsFreedoom(t)
			}
			fn(t, l)
		})
	}
}

// A player whose inputs come up to seven ticks late goes back, plays again, and ends in the same
// state as with inputs in time. The number of workers makes no difference, and play leaves the Go
// heap alone.
func TestRollback(t *testing.T) {
	eachLevels(t, 3500, func(t *testing.T, l levels) {
		for _, workers := range []string{"1", "2", "4"} {
			t.Run(workers, func(t *testing.T) {
				args := slices.Concat(l.args,
					[]string{"-ticks", strconv.Itoa(l.ticks), "-workers", workers})
				straight, _ := play(t, 0, args...)
				args = append(args, "-rollback", "8")
				late, stderr := play(t, 0, args...)
				assert.Empty(t, stderr)
				checkRun(t, late, l.ticks, int(workers[0]-'0'), args...)
				require.Equal(t, len(straight.Levels), len(late.Levels))
				for i, level := range late.Levels {
					assert.Zero(t, *level.Desyncs, level.Name)
					assert.Empty(t, level.FirstDifference, level.Name)
					assert.Positive(t, *level.Rollbacks, level.Name)
					assert.Greater(t, *level.Resimulated, *level.Rollbacks, level.Name)
					assert.LessOrEqual(t, *level.StateBytes, uint64(96<<10), level.Name)
					assert.Equal(t, *straight.Levels[i].Hash, *level.Hash, level.Name)
					assert.Equal(t, *straight.Levels[i].StateHash, *level.StateHash, level.Name)
				}
			})
		}
	})
}

// The ring is as long as the longest rollback, from one tick to more than eight.
func TestRollbackLengths(t *testing.T) {
	for _, n := range []string{"2", "20"} {
		r, _ := play(t, 0, "-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "60", "-rollback", n)
		assert.Zero(t, *r.Levels[0].Desyncs, n)
		assert.Positive(t, *r.Levels[0].Rollbacks, n)
	}
}

// Each input comes once, within the bound on lateness, and replaces the guess. A right guess needs
// no rollback.
func TestWire(t *testing.T) {
	const players, ticks, late = 3, 60, 4
	real := inputs{players: players}
	for i := range players * ticks {
		real.list = append(real.list, game.Input{Heading: uint8(i / players / 10), Flags: game.Walk})
		if i%7 == 0 {
			real.list[i].Flags |= game.Spawn
		}
	}
	w := newWire(real, late, 1)
	came, lateness := make([]bool, len(real.list)), map[int]int{}
	wentBack, right := 0, 0
	for now := range ticks + late + 1 {
		before := slices.Clone(w.used.list)
		wrong := w.deliver(now)
		assert.GreaterOrEqual(t, wrong, now-late)
		first := now
		for i := range came {
			tick, player := i/players, i%players
			due := tick+w.lateness(tick, player) <= now
			require.Equal(t, due, w.known[i], "tick %d of player %d, at %d", tick, player, now)
			if due == came[i] {
				require.Equal(t, before[i], w.used.list[i], "what has come stays, and nothing else comes")
				continue
			}
			came[i] = true
			lateness[now-tick]++
			require.Equal(t, real.list[i], w.used.list[i])
			if before[i] != real.list[i] {
				first = min(first, tick)
			} else {
				right++
			}
		}
		require.Equal(t, first, wrong)
		if wrong < now {
			wentBack++
		}
		for tick := wrong; tick <= min(now, ticks-1); tick++ {
			for p, in := range w.guess(tick) {
				assert.True(t, w.known[tick*players+p] || in.Flags&game.Spawn == 0,
					"a guess lets no frog appear")
			}
		}
	}
	assert.Equal(t, real.list, w.used.list)
	assert.NotContains(t, came, false)
	assert.Len(t, lateness, late+1, "from 0 ticks to the most")
	assert.Positive(t, wentBack)
	assert.Positive(t, right)
}

// Each tick, played twice from the same state, ends in the same state.
func TestSyncTest(t *testing.T) {
	eachLevels(t, 700, func(t *testing.T, l levels) {
		args := slices.Concat(l.args, []string{"-ticks", strconv.Itoa(l.ticks), "-workers", "4"})
		straight, _ := play(t, 0, args...)
		twice, stderr := play(t, 0, append(args, "-synctest")...)
		assert.Empty(t, stderr)
		for i, level := range twice.Levels {
			assert.Zero(t, *level.Desyncs, level.Name)
			assert.Nil(t, level.Rollbacks, level.Name)
			assert.Equal(t, *straight.Levels[i].StateHash, *level.StateHash, level.Name)
			assert.Nil(t, straight.Levels[i].Desyncs, "nothing was compared")
		}
	})
}

// If a planted fault makes a tick end differently the second time, the message names the field. In
// a checked build it also names the line that allocated the object.
func TestPlants(t *testing.T) {
	for plant, field := range map[string]string{
		"address": `: Room\.counts\.Voices: \d+ in A, \d+ in B \(uint64 of game\.Room`,
		"reset": `: chunk 0 of the pool of game\.Player, field Secrets: \d+ in A, \d+ in B ` +
			`\(uint32 of game\.Player`,
		"order": `: chunk \d of the pool of game\.Player, field Heading: \d+ in A, \d+ in B ` +
			`\(uint32 of game\.Player`,
	} {
		t.Run(plant, func(t *testing.T) {
			r, stderr := play(t, 1, "-wad", doom.Builtin, "-maps", "MAP03", "-ticks", "30", "-synctest",
				"-plant", plant)
			l := r.Levels[0]
			assert.Positive(t, *l.Desyncs)
			assert.Regexp(t, `^after tick \d+: region level`+field, l.FirstDifference)
			if build == "checked" {
				assert.Regexp(t, `/room\.go:\d+`, l.FirstDifference)
			}
			assert.Contains(t, stderr, "frogpond: MAP03: played again, "+strconv.Itoa(*l.Desyncs)+
				" states differ; the first "+l.FirstDifference+"\n")
		})
	}
}

// The summary reports games that were played again.
func TestTellAgain(t *testing.T) {
	for _, test := range []struct {
		args, said string
		code       int
	}{
		{"-rollback 8", `\nWith inputs up to 7 ticks late it went back \d+ times, and played \d+ ` +
			`ticks again: all states are equal\.\n\n`, 0},
		{"-synctest", `\nEach tick was played twice from the same state: all states are equal\.\n\n`,
			0},
		{"-synctest -plant reset", `\nEach tick was played twice .*: 20 states differ\.\n\n`, 1},
	} {
		var stdout bytes.Buffer
		args := strings.Fields("-wad builtin -maps MAP01 -ticks 20 " + test.args)
		assert.Equal(t, test.code, run(t.Context(), args, &stdout, io.Discard), test.args)
		assert.Regexp(t, test.said, stdout.String(), test.args)
	}
	assert.Equal(t, "1 state differs", differ(1))
}

// If the level has no room for the ring, the error is an ErrFull that names the key to raise.
func TestRingFull(t *testing.T) {
	for n, knob := range map[string]string{
		"200":                 `raise regions\[2\]\.size in the plan to \d{7} or more`,
		"2000000000":          "no plan has as much",
		"9000000000000000000": "no plan has as much",
	} {
		if strconv.IntSize == 32 && knob == "no plan has as much" {
			continue // of 64 bits
		}
		r, stderr := play(t, 3, "-wad", doom.Builtin, "-maps", "MAP01", "-rollback", n)
		assert.Regexp(t, `region level is full: .*; `+knob+`$`, r.Levels[0].Error)
		assert.Contains(t, stderr, r.Levels[0].Error)
		assert.Zero(t, r.Leaks)
		assert.True(t, r.IdentityOK)
	}
}

// Ctrl-C in the second play keeps the result of the first, and reports that no state was compared.
func TestInterruptedRollback(t *testing.T) {
	t.Chdir(t.TempDir())
	page, begun := make([]byte, 4096), []byte("MAP07 loaded")
	for try := range 20 {
		watched, err := os.Create("log")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ReadAt allocates nothing; SealStrict would report it
			defer close(done)
			for n := 0; bytes.Count(page[:n], begun) < 2 && ctx.Err() == nil; {
				time.Sleep(time.Millisecond)
				n, _ = watched.ReadAt(page, 0)
			}
			cancel()
		}()
		var stdout, stderr bytes.Buffer
		code := run(ctx, strings.Fields("-json -wad builtin -maps MAP07 -rollback 8 -log log -ticks "+
			strconv.Itoa(100<<try)), &stdout, &stderr)
		cancel()
		<-done
		watched.Close()
		require.Equal(t, 0, code, stderr.String())
		assert.Empty(t, stderr.String())
		var r Result
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &r))
		assert.Equal(t, 100<<try, *r.Levels[0].Ticks)
		if r.Levels[0].Rollbacks == nil {
			assert.Nil(t, r.Levels[0].Desyncs)
			return
		}
		assert.Zero(t, *r.Levels[0].Desyncs, "it was over before")
	}
	t.Fatal("never interrupted")
}
